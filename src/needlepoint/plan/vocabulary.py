"""The words that drawn needles are made of, in English and Chinese; data, no logic.

All places and people are invented. Everything is concrete and neutral, so that no model knows a thing about a key
beforehand, and no sentence reads as a secret that a model would decline to repeat. The words of code phrases
(`EN_CODE_NOUNS`, `ZH_CODE_NOUNS`) name other things than the keys do. Any change here, an addition too, changes what a
seed draws, and with it the prompts that stored runs are rebuilt from.
"""

from __future__ import annotations


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# --- English ----------------------------------------------------------------------------------------------------------

EN_PLACES = _words("""
    Brenholt Corvane Dalmerry Eskerow Fallowmark Garristow Halvendale Istermoor Jorvelle Keldrith Lornwick Marrowby
    Nettlecroy Ostrelle Pellimoor Quillstead Ravelholm Sarnaby Tolverby Umberlow Vellmark Wexmoor Yarlstone Zennwick
    Aldermoss Birchwyn Cinderby Dovelow Elverdon Ferrowick Gosmere Hazelstow Inglemoor Jessamy Kittelby Larkhollow
    Merrowdale Nornstead Oakminster Pinnerow Questholm Rindlebrook Silverstow Thornavy Ulmerdale Varrowby Willowmark
    Yewcombe Ambervale Brackenwyn Coppermere Drummelow Elmsworthy Fenniwick Gannetby Heronstow Islemarsh Junivale
    Kestermoor Lindenhow Mosswater Northavel Otterlow Plumstow Quennerby Rushavel Saltwyn Tarnholt Uskerdale Vintersby
    Wrenmarsh Yarrowlin Ashavel Bellmarrow Curlowick Dunnamere Eiderby Foxhollin Grenadale Hollinmere Ivelstow
    Jackdale Kelpmoor Loamby Mallowick Nutholm Orrisdale Pebblewyn Quarrelow Roanmarsh Sedgeholt Teaselby Underlin
    Velvenmoor Wickenlow Yaffleby Alverstow Bramblin Clovermark Dapplemere
""")

EN_BUILDINGS = (
    "lighthouse at",
    "windmill at",
    "watermill at",
    "ferry landing at",
    "signal tower at",
    "weather station at",
    "observatory at",
    "boathouse at",
    "toll house at",
    "granary at",
    "pumping station at",
    "railway station at",
    "canal lock at",
    "swing bridge at",
    "footbridge at",
    "aqueduct at",
    "reservoir at",
    "ice house at",
    "sawmill at",
    "paper mill at",
    "shipyard at",
    "greenhouse at",
    "seed vault at",
    "mountain hut at",
    "cable car station at",
    "lifeboat station at",
    "bird hide at",
    "tile kiln at",
    "clock tower in",
    "bakery in",
    "town library in",
    "post office in",
    "bell foundry in",
    "glassworks in",
    "tannery in",
    "pottery in",
    "bookbindery in",
    "rope walk in",
    "dairy in",
    "clock museum in",
    "map archive in",
    "concert hall in",
    "puppet theatre in",
    "cinema in",
    "tea house in",
    "market hall in",
    "weaving school in",
    "aquarium in",
    "planetarium in",
    "guesthouse in",
    "fire station in",
    "town hall in",
    "bandstand in",
    "dye house in",
    "printing house in",
    "grain exchange in",
)
"""Each with the preposition that its place takes."""

EN_OBJECTS = (
    "copper lantern",
    "brass compass",
    "oak chest",
    "silver hand mirror",
    "porcelain inkwell",
    "walnut writing desk",
    "pewter jug",
    "iron weathervane",
    "brass sextant",
    "leather satchel",
    "birchwood sledge",
    "glass paperweight",
    "stone sundial",
    "bronze hand bell",
    "tin whistle",
    "woollen tapestry",
    "linen sea chart",
    "cherrywood clock",
    "silver pocket watch",
    "bone-handled penknife",
    "enamel teapot",
    "brass letter scale",
    "rosewood music box",
    "brass telescope",
    "clay oil lamp",
    "wicker fishing creel",
    "cast-iron stove",
    "mahogany barometer",
    "painted globe",
    "steel typewriter",
    "pinewood rocking chair",
    "ebony chess set",
    "brass door knocker",
    "silk folding screen",
    "lacquered tray",
    "maplewood violin",
    "tin milk churn",
    "stoneware butter dish",
    "silver sugar bowl",
    "copper cauldron",
    "granite mortar",
    "ashwood loom",
    "brass microscope",
    "leather-bound ledger",
    "brass-bound hourglass",
    "iron door hinge",
    "wooden ship model",
    "embroidered quilt",
    "soapstone seal",
    "brass candlestick",
    "copper kettle",
    "beechwood cradle",
    "slate writing tablet",
    "marble chess table",
    "felt riding hat",
    "silver candle snuffer",
    "zinc watering can",
    "elm bench",
    "brass ship's bell",
    "ceramic tile panel",
)

EN_FIRST_NAMES = _words("""
    Ottilie Mirabel Anselm Corin Delphine Edda Fenna Gisela Hollis Isaura Joren Katrin Leander Maren Nils Odette
    Perrin Quilla Rosalind Soren Tamsin Ulric Vesna Wendel Yannis Zelie Alaric Beatrix Cassian Dorrit Emeric Fiora
    Gareth Hedda Ivo Jessamine Kasimir Linnea Matthias Nerys Oswin Pernille Quentin Romilly Sabine Torben Ursula
    Valentin Wilmot Yvaine Adela Bertram Clemence Dagmar Eluned Florian Gunnar Hester Ingram Judith Konrad Lavinia
    Magnus Noor Orla Pascal Rainer Saskia Tobias Verena Willa Andor Bettina Cyprian Evander Greta Henrik Isbel Jorun
""")

EN_SURNAMES = _words("""
    Aldenholt Brandmoor Cawthrey Dewhollow Eddersley Farrowmont Greyfell Hathersby Inkerwell Jolliwick Kernshaw
    Larchmead Mossgrave Nettlefern Ormsdale Penhollin Quarrowby Rookesby Silverlock Thistlewyn Umberlain Vanterpole
    Wetherlow Yellowley Ashgrain Birchenow Coldwether Dunnerdale Elderkin Fennimark Gatherwood Hollowbarn Ivelchester
    Juniperley Kettlewyn Lindenroth Marlowick Northacre Oatsheaf Pebblehurst Quickthorn Ravelstone Saltonbury
    Tarnbrook Underhay Verriman Wickenhow Yarnspinner Ambersett Bellweather Cloverdeen Drystone Emberly Foxgarth
    Goldfinchley Heronsgard Islewright Jackdawley Kindleroy Loamfield Merribank Nutbourne Orchardson Plumbrook
    Quillfeather Reedmace Sandpiper Teasdalen Uplander Vellacombe Willowherd Yewbarrow Applehythe Brackenhythe
    Coppergate Dovecrest
""")

EN_CODE_ADJECTIVES = _words("""
    amber cobalt crimson indigo scarlet turquoise velvet quilted striped dotted gentle quiet sleepy frosty misty windy
    mellow crooked polished knitted rusty dusty speckled tangled wandering drifting floating spinning patient curious
    distant hidden lucky nimble plain rustic tidy borrowed chilly clever coral dappled damp early emerald feathered
    fluffy freckled glowing grassy humble icy jolly lazy lilac little merry modest narrow olive orange pale patched
    pearly purple puzzled rolling rounded sandy shaggy shiny silent slanted smoky snowy solemn sparkling stormy sturdy
    sunny tall tame thirsty tilted tiny upright vivid wobbly
""")

EN_CODE_NOUNS = _words("""
    acorn almond anchor badger barrel basket beacon beetle biscuit blanket bobbin bonnet bucket buckle button cabbage
    canoe caravan cardigan carrot cedar chestnut chimney comet cricket crumpet cucumber cushion cymbal daisy dolphin
    donkey dragonfly drizzle dumpling falcon feather ferret fiddle flamingo flannel flute garnet gazelle gecko ginger
    glacier goblet gosling hammock hamster hazelnut hedgehog honeycomb iceberg icicle ivy jackal jigsaw kayak kestrel
    ladder ladybird lemon lentil lettuce limpet lizard llama lobster magnet magpie mango marigold marmalade meadow
    meteor mitten moose mushroom mustard napkin needle nutmeg oatmeal octopus onion otter oyster paddle pancake
    parasol parsley parsnip peacock pelican penguin pepper pickle pigeon pillow pineapple piston poppy porridge
    pretzel puddle puffin pumpkin puzzle rabbit radish raisin raven ribbon robin saddle salmon sandal scarf shovel
    sparrow spinach sponge squirrel starling stirrup sunflower sweater tadpole tangerine thimble tortoise toucan
    tractor trumpet tulip tunnel turnip turtle umbrella waffle wagon walrus weasel whisker wombat yoghurt zebra zipper
""")

# --- Chinese ----------------------------------------------------------------------------------------------------------

ZH_PLACE_STEMS = _words("""
    青榆 白芦 听松 望鹤 栖梧 临漪 枕溪 桐荫 柳汀 荻花 棠梨 榆荫 雁回 苔石 乌桕 菱歌 芦雪 霜叶 晚渡 半篱 竹坞 杏坞 槐荫
    楸木 浅渚 鹭眠 鸥沙 栗树 桑柘 荞麦 藕塘 蓼花 葭月 芷汀 萝径 苇岸 梨坞 柿树 椿阴 栎林 桦影 杉隐 橡树 石楠 木樨 山樱
    野菊 远帆 归棹 渔火 双桨 小满 谷雨 白露 霜降 初雪 微澜 回澜 听泉 漱石 眠云 宿雨 新晴 暮烟 晓星 斜晖 疏影 清樾 青禾
    金穗 麦浪 豆棚 瓜架 茶烟 纸鸢 风铃 石臼 瓦窑 草亭 斗笠 藤桥 苔阶 松针 柏子 槲叶 鹿鸣 雁字 鹊巢 燕泥 蝉鸣 蛙声 鱼跃
    蟹舍 鹤影 鸠鸣 云栈 烟萝 霜桥 雪篷 露桐 星槎 月桥 泉眼 溪口 砂岸 芥田 葵圃 蕨坡
""")

ZH_BUILDINGS = {
    "镇": _words("""
        邮局 图书馆 书店 电影院 钟楼 染坊 面包房 茶馆 修表铺 戏院 裁缝铺 印刷所 消防站
        汽车站 天文馆 陶艺馆 档案馆 钟表博物馆
    """),
    "村": _words("水磨坊 粮仓 养蜂场 苗圃 豆腐坊 陶窑 竹编坊 榨油坊 水塔 石拱桥 花圃 果园 打谷场"),
    "湾": _words("灯塔 码头 造船厂 渔市 候船室 海洋馆 潮位站 救生站 船坞"),
    "岭": _words("气象站 观测站 瞭望塔 缆车站 天文台 林场 茶场 山间旅舍"),
    "坪": _words("温室 种子库 植物园 露营地 牧场"),
}
"""What kind of place, and what stands there."""

ZH_OBJECTS = _words("""
    把铜水壶 盏铁油灯 只樟木箱 架铜座钟 台旧打字机 幅羊毛挂毯 只白瓷茶壶 面铜镜 口铸铁钟 把藤椅 张榉木书桌
    架黄铜望远镜 台木织机 只银怀表 方石砚 枚玉印章 把红木算盘 只锡酒壶 副云石棋子 艘木船模型 只竹提篮 顶草编斗笠
    条刺绣腰带 床拼布被面 块雕花木匾 台手摇缝纫机 台旧留声机 把枫木小提琴 支紫竹笛 面牛皮鼓 只黑陶罐 只青瓷花瓶
    盏走马灯 座石日晷 架黄铜天平 只铜罗盘 把檀木折扇 张桐木古琴 架漆木屏风 只珐琅手炉 枚银顶针 把铜锁 串琉璃珠
    件棕丝蓑衣 双桐木屐 根竹扁担 辆木轮推车 架梨木纺车 本线装账簿 卷手绘海图 只玻璃沙漏 台铜显微镜 座铁皮炉子
    只搪瓷脸盆
""")
"""Each with its measure word in front."""

ZH_SURNAMES = _words("""
    沈 陆 温 顾 尹 简 祁 佟 褚 阮 骆 闵 蓝 岑 庄 翁 裴 桑 祝 苗 路 卓 柳 丁 方 秦 江 池 施 叶 俞 汤 姚 汪 费 殷 鲍 邵
    孟 项 纪 葛 曲 滕 房 应 管 茅 缪 晏 尤 卜 郁 贺 常 齐 康 伍 傅 章
""")

ZH_GIVEN_NAMES = _words("""
    禾舟 闻笛 予棠 亦澄 知穗 映川 岫白 听澜 砚青 书砚 望舒 初晗 照野 沐禾 清越 逸衡 怀瑾 槿年 疏桐 念祺 嘉树 云舟 星澜
    思屿 景和 明漪 若谷 远岫 承砚 晚晴 霁川 羽岚 静姝 澄远 芷宁 溪亭 雨眠 言蹊 汀兰 南絮 北屿 乐游 恒之 维桢 彦秋 秉文
    文渊 修远 轻舟 松年 竹筠 梓微 亦帆 若澄 思衡 慕青 芳洲 锦书 慧心 以安 安歌 婉清 书宁 知远 知夏 予安 予衡 泽宇 浩川
    宇澄 俊岚 昭宁 昭远 晗川 旭衡 启明 启岚 润泽 润禾 悦宁 悦溪 立言 立衡 行之 省之 鹤鸣 鹤洲 雁秋 鹿溪 梧秋 榆宁 柏舟
    杉月 槐序 棠溪 梨川
""")

ZH_CODE_ADJECTIVES = _words("""
    墨绿 银灰 杏黄 藏青 绯红 雪白 湖蓝 橘红 米黄 绛紫 靛蓝 翠绿 枣红 天青 月白 鹅黄 豆绿 茶褐 乳白 玫红 松绿 驼色 条纹
    斑点 方格 碎花 波点 毛绒 迷你 透明 发光 水晶 彩虹 巨型
""")

ZH_CODE_NOUNS = _words("""
    松果 铁锚 风筝 陀螺 雨伞 蒲扇 铃铛 贝壳 海螺 纸船 核桃 栗子 枇杷 石榴 柿子 葫芦 南瓜 冬瓜 萝卜 莲蓬 菱角 芋头 蘑菇
    刺猬 松鼠 海獭 企鹅 鹈鹕 翠鸟 麻雀 蜻蜓 瓢虫 蜗牛 海马 河豚 章鱼 水母 海星 螃蟹 鲸鱼 海豚 枕头 毛毯 手套 围巾 纽扣
    积木 口琴 气球 帆船 雪橇 滑梯 秋千 磨盘 屋檐 台阶 窗帘 地毯 抽屉 衣架 门铃 信封 邮票 铅笔 橡皮 剪刀 台灯 闹钟 面具
    皮影 汤圆 饺子 馄饨 烧饼 年糕 粽子 月饼 麻花 馒头 蛋糕 饼干 果酱 蜂蜜 牛奶 豆浆 酸梅 花生 芝麻 玉米 土豆 番茄 茄子
    菠菜 芹菜 莴笋 丝瓜 苦瓜 豌豆 蚕豆 樱桃 草莓 葡萄 柠檬 芒果 椰子 菠萝 梨子 李子 山楂 龙眼 荔枝 仙人掌 向日葵
    牵牛花 郁金香 蒲公英 猫头鹰 啄木鸟 长颈鹿 大象 河马 斑马 羚羊 骆驼 考拉 浣熊 狐狸 兔子 山羊 绵羊 毛驴 天鹅 孔雀
    鹦鹉 鸽子 燕子 蝴蝶 蚂蚁 蟋蟀 恐龙 火车 轮船 飞艇 邮筒 水桶 扳手 螺丝 锤子 梯子 帐篷 背包
""")
