// Two runs on the same questions: what one finds and the other doesn't.

/** Pairs of trial numbers [one, other] that asked the very same prompt. */
function pairsOf(one, other) {
  const byRecipe = new Map();
  for (let i = 0; i < other.trials.n; i++) {
    const recipe = at(other, "recipe", i);
    if (recipe) byRecipe.set(recipe, i);
  }
  const pairs = [];
  for (let i = 0; i < one.trials.n; i++) {
    const match = byRecipe.get(at(one, "recipe", i));
    if (match !== undefined) pairs.push([i, match]);
  }
  return pairs;
}

const scoreOf = (run, i) => (isValid(text(at(run, "outcome", i))) ? at(run, "score", i) : null);

/** -1 lost, 0 the same, 1 gained, null where one of both isn't a measurement. */
function change(one, other, [i, j]) {
  const [before, after] = [scoreOf(one, i), scoreOf(other, j)];
  return before === null || after === null ? null : Math.sign(after - before);
}

function differenceMap(one, other, subset, pairs) {
  const cells = new Map();
  for (const pair of pairs) {
    const key = place(subset, at(one, "length", pair[0]), at(one, "depth", pair[0]));
    const cell = cells.get(key) || cells.set(key, {gained: 0, lost: 0, same: 0, unknown: 0}).get(key);
    const turned = change(one, other, pair);
    cell[turned === null ? "unknown" : turned > 0 ? "gained" : turned < 0 ? "lost" : "same"] += 1;
  }
  const cellAt = (length, depthPercent) => cells.get(place(subset, length, depthPercent));
  const known = pairs.map(([i]) => [at(one, "length", i), at(one, "depth", i)]);
  const lines = (length, depthPercent) => {
    const cell = cellAt(length, depthPercent);
    const head = `${tokens(length)} · ${say("at_depth", {depth: depth(depthPercent)})}`;
    return cell ? [head, say("turned", cell)] : [head, say("not_asked")];
  };
  const made = grid({
    label: say("difference_label", {name: nameOf(subset), one: one.label, other: other.label}),
    lengths: sorted(known.map(([length]) => length)),
    depths: sorted(known.map(([, depthPercent]) => depthPercent)),
    draw: (td, length, depthPercent) => {
      const cell = cellAt(length, depthPercent);
      td.setAttribute("aria-label", lines(length, depthPercent).join(", "));
      const n = cell ? cell.gained + cell.lost + cell.same : 0;
      if (!cell) td.className = "empty";
      else if (!n) td.className = "invalid";
      else {
        const balance = (cell.gained - cell.lost) / n;
        if (!cell.gained && !cell.lost) td.className = "same";
        else {
          const anchors = DATA.colours.default;
          const behind = mixed("#f1efe9", balance < 0 ? anchors[1] : anchors.at(-1), Math.min(1, 0.25 + 0.75 * Math.abs(balance)));
          td.style.backgroundColor = behind;
          td.style.color = ink(behind);
          td.dataset.shown = [cell.gained ? `+${cell.gained}` : "", cell.lost ? `−${cell.lost}` : ""].join("");
        }
      }
    },
    onChoose: (td, byKey) => {
      const found = one.subsets.find((each) => each.name === subset);
      const cell = found && found.byPlace.get(place(subset, ...td.place));
      if (cell) choose({run: one, subset: found, cell, td, byKey});
    },
    onPoint: (td) => showTip(td, td ? lines(...td.place) : null),
  });
  return h("figure", {class: "map"}, h("figcaption", {}, h("h3", {}, foreign(nameOf(subset)))),
    h("p", {class: "axis across"}, say("axis_length")),
    h("div", {class: "with-axis"}, h("p", {class: "axis up", "aria-hidden": "true"}, say("axis_depth")), h("div", {class: "scroll"}, made.table)));
}

function flipCard(one, other, [i, j]) {
  const [before, after] = [trialOf(one, i), trialOf(other, j)];
  const side = (run, trial) => h("div", {class: "side"}, h("p", {}, h("b", {}, foreign(run.label)), " ", badge(trial.outcome)),
    trial.error ? h("p", {class: "quiet"}, foreign(trial.reason)) : answerText(trial.answer));
  const where = [nameOf(before.subset), before.length === null ? null : tokens(before.length), before.depth === null ? null : depth(before.depth)];
  if (before.replicate) where.push(say("replicate", {n: before.replicate}));
  return h("article", {class: "card"}, h("header", {}, h("h4", {}, foreign(where.filter(Boolean).join(" · "))),
    h("span", {class: "badge"}, change(one, other, [i, j]) > 0 ? `↑ ${say("gained")}` : `↓ ${say("lost")}`)),
  before.question ? h("p", {dir: "auto"}, before.question) : null, h("div", {class: "sides"}, side(one, before), side(other, after)));
}

function comparison() {
  if (RUNS.length < 2) return null;
  const chosen = {one: 0, other: 1};
  const box = h("div", {});
  const draw = () => {
    const [one, other] = [RUNS[chosen.one], RUNS[chosen.other]];
    const pairs = pairsOf(one, other).filter(([i]) => !state.subset || text(at(one, "subset", i)) === state.subset);
    if (one === other || !pairs.length) {
      replace(box, h("p", {class: "note"}, say(one === other ? "same_run" : "no_pairs")));
      return;
    }
    const turned = pairs.filter((pair) => change(one, other, pair));
    const count = (wanted) => number(pairs.filter((pair) => change(one, other, pair) === wanted).length);
    const subsets = [...new Set(pairs.map(([i]) => text(at(one, "subset", i))))];
    replace(box,
      h("p", {class: "lead"}, say("pairs", {n: number(pairs.length), one: one.label, other: other.label}), " ",
        h("b", {}, say("pairs_turned", {gained: count(1), lost: count(-1), same: count(0)})),
        pairs.some((pair) => change(one, other, pair) === null) ? ` ${say("pairs_unknown", {n: count(null)})}` : ""),
      h("div", {class: "maps"}, subsets.map((subset) => differenceMap(one, other, subset, pairs.filter(([i]) => text(at(one, "subset", i)) === subset)))),
      h("h3", {}, say("flipped", {n: number(turned.length)})),
      paged(turned.length, 6, (n) => flipCard(one, other, turned[n]), say("none_flipped")),
    );
  };
  const options = RUNS.map((run) => [String(run.n), run.label]);
  draw();
  listen("filter", draw);
  return h("section", {id: "compare"}, h("h2", {}, say("comparison")), h("div", {class: "filters"},
    select(say("from"), options, "0", (value) => { chosen.one = Number(value); draw(); }),
    select(say("to"), options, "1", (value) => { chosen.other = Number(value); draw(); })), box);
}
