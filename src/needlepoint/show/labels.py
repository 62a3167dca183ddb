"""The words on charts and reports, in English and Chinese. Pure."""

from __future__ import annotations

from typing import Literal

Lang = Literal["en", "zh"]

_WORDS: dict[str, tuple[str, str]] = {
    "haystack": ("Needle in a Haystack", "大海捞针"),
    "length": ("Context length (tokens)", "上下文长度（词元）"),
    "depth": ("Needle depth", "针的深度"),
    "score": ("Score", "得分"),
    "accuracy": ("Accuracy", "准确率"),
    "accuracy_by_length": ("Accuracy by context length", "各长度准确率"),
    "accuracy_by_depth": ("Accuracy by needle depth", "各深度准确率"),
    "outcomes_by_length": ("Outcomes by context length", "各长度结果"),
    "latency_by_length": ("Seconds by context length", "各长度耗时"),
    "tokens_by_length": ("Tokens by context length", "各长度词元数"),
    "recall_by_length": ("Recall of several needles", "多针召回"),
    "margin_by_length": ("Margin by context length", "各长度对数概率差"),
    "margin": ("Margin (nats)", "对数概率差（奈特）"),
    "margin_zero": ("above 0 the right value is likelier than any wrong one", "大于 0：正确值比任何错误值更可能"),
    "difference": ("Difference", "差异"),
    "difference_title": ("{b} against {a}", "{b} 对比 {a}"),
    "better": ("{name} better", "{name} 更好"),
    "same_cells": ("the same: {n}", "相同：{n}"),
    "only_one": ("hatched: not measured by both", "斜线：并非双方都有有效测量"),
    "mean_difference": ("Mean difference {points} points", "平均差异 {points} 个百分点"),
    "outlined": ("outlined: a difference that chance does not explain", "描边：差异显著"),
    "interval": ("{level:.0%} interval", "{level:.0%} 区间"),
    "band": ("band: {level:.0%} interval", "带：{level:.0%} 区间"),
    "none_at": ("no valid measurement at {places}", "{places} 处无有效测量"),
    "trials": ("Trials", "试题数"),
    "valid": ("Valid", "有效"),
    "outcome": ("Outcome", "结果"),
    "outcomes": ("Outcomes", "结果"),
    "share": ("Share of trials", "试题占比"),
    "subset": ("Subset", "子集"),
    "seconds": ("Seconds", "秒"),
    "total_time": ("whole answer", "完整回答"),
    "first_token": ("first token", "首个词元"),
    "median_spread": ("line: median; band: 10th to 90th percentile", "线：中位数；带：第 10 至 90 百分位"),
    "tokens": ("Tokens per trial (mean)", "每题词元数（均值）"),
    "tokens_prompt": ("prompt", "提示"),
    "tokens_cached": ("cached", "缓存命中"),
    "tokens_prefilled": ("prefilled", "预填充"),
    "tokens_completion": ("answer", "回答"),
    "needle": ("Needle", "针"),
    "needle_order": ("Needle, in text order", "针（按文中先后）"),
    "recall": ("Recall", "召回率"),
    "all_found": ("all needles found", "全部找到"),
    "mean_recall": ("mean recall", "平均召回"),
    "hatched": ("hatched: no valid measurement", "斜线：无有效测量"),
    "hatched_corner": ("hatched corner: some trials invalid", "角落斜线：部分试题无效"),
    "blank": ("blank: not asked", "空白：未测"),
    "effective": ("effective length", "有效长度"),
    "finds": ("Finds {score} of needles", "找到 {score} 的针"),
    "up_to": (" up to {length}", "，至 {length}"),
    "nothing_measured": ("Not one valid measurement", "没有有效测量"),
    "measured": ("{coverage} of trials measured", "{coverage} 的试题有效"),
    "effective_at": ("effective length {length} at {threshold}", "有效长度 {length}（阈值 {threshold}）"),
    "effective_none": ("no length reaches {threshold}", "没有长度达到 {threshold}"),
    "weakest": ("weakest at {depths} depth", "深度 {depths} 处最弱"),
    "certified_at": (
        "Holds {threshold} up to {length} tokens ({confidence} confidence)",
        "在 {length} 词元内保持 {threshold}（置信度 {confidence}）",
    ),
    "certified_none": ("No length is certified to hold {threshold}", "没有长度被证实保持 {threshold}"),
    "limit_about": ("the limit is about {length}", "上限约 {length}"),
    "limit_beyond": ("no limit in sight up to {length}", "至 {length} 未见上限"),
    "adaptive": ("lengths were chosen by the answers", "长度由回答决定"),
    "unproven": ("lengths unproven", "长度未经证实"),
    "mean_score": ("mean {score}", "平均 {score}"),
    "correct": ("correct", "正确"),
    "partial": ("partial", "部分正确"),
    "wrong": ("wrong", "错误"),
    "not_found": ("not found", "未找到"),
    "refused": ("refused", "拒答"),
    "overflow": ("overflow", "超长"),
    "truncated": ("truncated", "被截断"),
    "out_of_room": ("out of room", "额度用尽"),
    "failed": ("failed", "失败"),
    "unjudged": ("unjudged", "未评判"),
    "invalid": ("invalid", "无效"),
    "imported": ("imported from {tool}", "导入自 {tool}"),
}
_SUBSETS = {"english": "英文", "chinese": "中文", "all": "全部"}


def word(key: str, lang: Lang = "en", **values: object) -> str:
    """The words for `key`; an unknown key reads as itself."""
    text = _WORDS[key][lang == "zh"] if key in _WORDS else key.replace("_", " ")
    return text.format(**values) if values else text


def subset_label(name: str, lang: Lang = "en") -> str:
    """A subset's name; the two that everyone has are translated."""
    return _SUBSETS.get(name, name) if lang == "zh" else name
