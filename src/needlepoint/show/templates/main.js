// The page, put together.

function tools() {
  const root = document.documentElement;
  const themes = [["", say("theme_auto")], ["light", say("theme_light")], ["dark", say("theme_dark")]];
  const scales = [["default", say("scale_default")], ["classic", say("scale_classic")]];
  const most = Math.max(0, ...RUNS.flatMap((run) => run.subsets.map((subset) => sorted(subset.cells.map((cell) => cell.context_length)).length)));
  document.getElementById("tools").append(
    check(say("numbers"), most <= 11, (value) => { state.numbers = value; tell("look"); }),
    select(say("scale"), scales, state.scale, (value) => { state.scale = value; tell("look"); }),
    select(say("theme"), themes, "", (value) => {
      if (value) root.dataset.theme = value;
      else delete root.dataset.theme;
    }),
  );
}

/** The cell that the address names, as #0:english:32000:50. */
function chooseFromAddress() {
  const [n, name, length, depthPercent] = location.hash.slice(1).split(":");
  const run = RUNS[Number(n)];
  if (!run || depthPercent === undefined) return;
  let wanted;
  try {
    wanted = decodeURIComponent(name);
  } catch {
    return;
  }
  const subset = run.subsets.find((each) => each.name === wanted);
  const cell = subset && subset.byPlace.get(place(wanted, Number(length), Number(depthPercent)));
  const made = run.maps && run.maps.get(wanted);
  if (!cell || !made) return;
  const td = made.rows.flat().find((each) => each.place[0] === Number(length) && each.place[1] === Number(depthPercent));
  choose({run, subset, cell, td, byKey: true});
}

function build() {
  const main = document.getElementById("main");
  tools();
  emptyDetail();
  const maps = h("div", {class: RUNS.length > 1 ? "maps several" : "maps"},
    SUBSETS.flatMap((name) => RUNS.flatMap((run) => run.subsets.filter((subset) => subset.name === name).map((subset) => scoreMap(run, subset)))));
  if (!maps.children.length) maps.append(h("p", {class: "quiet"}, say("nothing_to_draw")));
  fill(main, {}, [
    figures(),
    notes(),
    h("div", {class: "board"},
      h("section", {id: "maps", "aria-label": say("heatmaps")}, h("h2", {}, say("heatmaps")), filters(), maps, legend(), h("p", {class: "quiet keys-help"}, say("keys_help"))),
      detail),
    live,
    outcomeBars(),
    comparison(),
    chartSection(),
    gallery(),
    madeWith(),
  ]);
  document.getElementById("foot").append(h("p", {class: "quiet"}, say("foot", {
    version: (RUNS[0] && (RUNS[0].settings.find(([group]) => group === "versions") || [null, []])[1].find(([name]) => name === "needlepoint") || [null, ""])[1],
    date: RUNS.map((run) => (run.created || "").slice(0, 10)).filter(Boolean).join(", "),
  })));
  document.body.append(tip);
  chooseFromAddress();
  window.addEventListener("hashchange", chooseFromAddress);
}

build();
document.documentElement.dataset.ready = "yes";
