// Heatmaps: real tables, one stop of the Tab key each, arrow keys inside. Used for scores and for differences.

const sorted = (values) => [...new Set(values)].sort((a, b) => a - b);

/** A grid of cells. `draw(td, length, depth)` fills one and returns whether there is anything to choose. */
function grid({label, lengths, depths, draw, onChoose, onPoint}) {
  const rows = [];
  const body = depths.map((row, y) => {
    const cells = lengths.map((column, x) => {
      const cell = h("td", {role: "gridcell", tabindex: -1});
      cell.x = x;
      cell.y = y;
      cell.place = [column, row];
      draw(cell, column, row);
      return cell;
    });
    rows.push(cells);
    return h("tr", {role: "row"}, h("th", {scope: "row", role: "rowheader"}, h("span", {}, depth(row))), cells);
  });
  const every = Math.max(1, Math.ceil(lengths.length / 12));
  const thin = (n) => (n % every === 0 || n === lengths.length - 1 ? null : "thin");
  const head = h("tr", {role: "row"}, h("th", {role: "columnheader", scope: "col", class: "corner"}, h("span", {class: "unseen"}, say("depth"))),
    lengths.map((length, n) => h("th", {scope: "col", role: "columnheader", class: thin(n)}, h("span", {}, tokens(length)))));
  const dense = lengths.length > 26 || depths.length > 32;
  const table = h("table", {role: "grid", "aria-label": label, class: dense ? "grid dense" : "grid"},
    h("thead", {role: "rowgroup"}, head), h("tbody", {role: "rowgroup"}, body));
  let current = rows[0] && rows[0][0];
  if (current) current.tabIndex = 0;

  const go = (cell) => {
    current.tabIndex = -1;
    current = cell;
    current.tabIndex = 0;
    current.focus();
  };
  table.addEventListener("keydown", (event) => {
    const {x, y} = current;
    const [right, bottom] = [lengths.length - 1, depths.length - 1];
    const whole = event.ctrlKey || event.metaKey;
    const moves = {
      ArrowLeft: [x - 1, y], ArrowRight: [x + 1, y], ArrowUp: [x, y - 1], ArrowDown: [x, y + 1],
      Home: [0, whole ? 0 : y], End: [right, whole ? bottom : y], PageUp: [x, 0], PageDown: [x, bottom],
    };
    if (event.altKey || (whole && !["Home", "End"].includes(event.key))) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      onChoose(current, true);
    } else if (moves[event.key]) {
      event.preventDefault();
      const [toX, toY] = moves[event.key];
      go(rows[Math.min(Math.max(toY, 0), bottom)][Math.min(Math.max(toX, 0), right)]);
    }
  });
  const cellOf = (event) => event.target.closest("td");
  table.addEventListener("click", (event) => {
    const cell = cellOf(event);
    if (cell) {
      go(cell);
      onChoose(cell, false);
    }
  });
  table.addEventListener("pointerover", (event) => onPoint(cellOf(event)));
  table.addEventListener("pointerleave", () => onPoint(null));
  table.addEventListener("focusin", (event) => onPoint(cellOf(event)));
  table.addEventListener("focusout", () => onPoint(null));
  return {table, rows, focus: go};
}

// --- a tooltip for whatever is pointed at -----------------------------------------------------------------------------

const tip = h("div", {class: "tip", "aria-hidden": "true", hidden: true});

function showTip(cell, lines) {
  if (!cell || !lines) {
    tip.hidden = true;
    return;
  }
  replace(tip, ...lines.map((line, n) => h("div", {class: n === 0 ? "strong" : null}, line)));
  tip.hidden = false;
  const box = cell.getBoundingClientRect();
  const own = tip.getBoundingClientRect();
  const left = Math.min(Math.max(box.left + box.width / 2 - own.width / 2, 8), document.documentElement.clientWidth - own.width - 8);
  const above = box.top - own.height - 8;
  tip.style.left = `${left}px`;
  tip.style.top = `${above < 8 ? box.bottom + 8 : above}px`;
}

window.addEventListener("scroll", () => showTip(null), {passive: true});

// --- the score of a run ---------------------------------------------------------------------------------------------

function cellLines(subset, cell) {
  const lines = [`${tokens(cell.context_length)} · ${say("at_depth", {depth: depth(cell.depth_percent)})}`];
  if (cell.score === null) lines.push(say("nothing_valid"));
  else lines.push(`${say("score")} ${percentExact(cell.score)}${cell.interval ? ` ${interval(cell.interval)}` : ""}`);
  if (cell.n !== null && cell.n !== undefined) {
    lines.push(say("valid_of", {valid: number(cell.valid), n: number(cell.n)}));
  }
  const outcomes = OUTCOMES.filter((outcome) => (cell.outcomes || {})[outcome]);
  if (outcomes.length) lines.push(outcomes.map((outcome) => `${number(cell.outcomes[outcome])} ${outcomeName(outcome)}`).join(" · "));
  return lines;
}

/** The heatmap of one subset of one run, as a figure. */
function scoreMap(run, subset) {
  const lengths = sorted(subset.cells.map((cell) => cell.context_length));
  const depths = sorted(subset.cells.map((cell) => cell.depth_percent));
  const name = RUNS.length > 1 ? `${run.label} · ${nameOf(subset.name)}` : nameOf(subset.name);
  const caption = h("figcaption", {},
    h("h3", {}, RUNS.length > 1 ? [h("bdi", {}, run.label), h("span", {class: "quiet"}, " · ", foreign(nameOf(subset.name)))] : foreign(nameOf(subset.name))),
    h("p", {class: "quiet"}, h("b", {}, percentExact(subset.score)), subset.interval ? ` ${interval(subset.interval)}` : "",
      ` · ${say("coverage")} ${percent(subset.coverage)} · ${say("n_questions", {n: number(subset.n)})}`));
  if (!subset.cells.length) return h("figure", {class: "map"}, caption, h("p", {class: "quiet"}, say("no_cells")));
  const many = lengths.length > 11;
  const cellAt = (length, depthPercent) => subset.byPlace.get(place(subset.name, length, depthPercent));

  const draw = (td, length, depthPercent) => {
    const cell = cellAt(length, depthPercent);
    delete td.dataset.shown;
    td.className = "";
    td.style.backgroundColor = td.style.color = "";
    td.setAttribute("aria-selected", "false");
    if (!cell) {
      td.className = "empty";
      td.setAttribute("aria-label", `${tokens(length)}, ${say("at_depth", {depth: depth(depthPercent)})}: ${say("not_asked")}`);
      return;
    }
    td.setAttribute("aria-label", cellLines(subset, cell).join(", "));
    if (cell.score === null) {
      td.className = "invalid";
    } else {
      const behind = colour(cell.score);
      td.style.backgroundColor = behind;
      td.style.color = ink(behind);
      if (cell.coverage !== null && cell.coverage !== undefined && cell.coverage < 1) td.classList.add("partial");
      if (state.numbers === null ? !many : state.numbers) td.dataset.shown = points(cell.score);
    }
    const there = run.places.get(place(subset.name, length, depthPercent)) || [];
    if ((state.outcome || state.layout) && !there.some((i) => passes(run, i))) td.classList.add("dim");
    const chosen = state.chosen;
    if (chosen && chosen.run === run && chosen.subset === subset && chosen.cell === cell) {
      td.classList.add("chosen");
      td.setAttribute("aria-selected", "true");
    }
  };
  const made = grid({
    label: say("map_label", {name}),
    lengths,
    depths,
    draw,
    onChoose: (td, byKey) => {
      const cell = cellAt(...td.place);
      if (cell) choose({run, subset, cell, td, byKey});
    },
    onPoint: (td) => {
      const cell = td && cellAt(...td.place);
      showTip(td, cell ? cellLines(subset, cell) : null);
    },
  });
  const redraw = () => made.rows.flat().forEach((td) => draw(td, ...td.place));
  listen("look", redraw);
  listen("filter", redraw);
  listen("chosen", redraw);
  run.maps = run.maps || new Map();
  run.maps.set(subset.name, made);
  const figure = h("figure", {class: "map"}, caption,
    h("p", {class: "axis across"}, say("axis_length")),
    h("div", {class: "with-axis"}, h("p", {class: "axis up", "aria-hidden": "true"}, say("axis_depth")), h("div", {class: "scroll"}, made.table)));
  listen("filter", () => {
    figure.hidden = !(shownRuns().includes(run) && shownSubsets(run).includes(subset));
  });
  return figure;
}

/** What the colours mean. */
function legend() {
  const steps = h("span", {class: "ramp", "aria-hidden": "true"});
  const paint = () => replace(steps, ...Array.from({length: 21}, (_, n) => {
    const step = h("i", {});
    step.style.backgroundColor = colour(n / 20);
    return step;
  }));
  paint();
  listen("look", paint);
  return h("p", {class: "legend"}, h("span", {}, "0"), steps, h("span", {}, `100%`),
    ["invalid", "partial", "empty"].map((kind) =>
      h("span", {}, h("i", {class: `key ${kind}`, "aria-hidden": "true"}), h("span", {}, say(`key_${kind}`)))));
}

function choose(chosen) {
  state.chosen = chosen;
  tell("chosen");
  const {run, subset, cell} = chosen;
  const hash = `#${run.n}:${encodeURIComponent(subset.name)}:${cell.context_length}:${cell.depth_percent}`;
  history.replaceState(null, "", hash);
  showDetail(chosen);
}
