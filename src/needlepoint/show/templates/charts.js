// Small charts, drawn here so that they follow the theme, the language and the width of the screen.

const isNarrow = () => matchMedia("(max-width: 640px)").matches;
const size = () => (isNarrow() ? {width: 340, height: 230} : {width: 540, height: 270});
const MARGIN = {left: 48, right: 14, top: 14, bottom: 40};

/** Lengths that grow by a factor are spread evenly on a logarithm, others as they are. */
function isGeometric(values) {
  if (values.length < 3 || values[0] <= 0) return false;
  const [first, second] = [values[1] - values[0], values.at(-1) - values.at(-2)];
  return second / first > values.length && values.at(-1) / values[0] > 4;
}

function scale(values, low, high) {
  const change = isGeometric(values) ? Math.log : (value) => value;
  const [from, to] = [change(values[0]), change(values.at(-1))];
  return (value) => (to === from ? (low + high) / 2 : low + (high - low) * (change(value) - from) / (to - from));
}

/** Labels that do not run into each other. */
function spaced(values, where, gap) {
  let last = -Infinity;
  const kept = values.filter((value) => {
    if (where(value) - last < gap) return false;
    last = where(value);
    return true;
  });
  const end = values.at(-1);
  if (kept.at(-1) !== end) {
    if (where(end) - where(kept.at(-1)) < gap) kept.pop();
    kept.push(end);
  }
  return kept;
}

function frame({label, xs, xFormat, xTitle, floor = 0, top, yFormat, x, y, width, height}) {
  const bottom = height - MARGIN.bottom;
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) => floor + share * (top - floor));
  return [
    s("title", {}, label),
    ticks.map((tick) => [
      s("line", {class: "rule", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(tick), y2: y(tick)}),
      s("text", {x: MARGIN.left - 8, y: y(tick) + 4, "text-anchor": "end"}, yFormat(tick)),
    ]),
    spaced(xs, x, 38).map((value) => s("text", {x: x(value), y: bottom + 18, "text-anchor": "middle"}, xFormat(value))),
    s("text", {class: "title", x: (MARGIN.left + width - MARGIN.right) / 2, y: height - 4, "text-anchor": "middle"}, xTitle),
  ];
}

const swatch = (n) => h("i", {class: `swatch c${n % 6}`, "aria-hidden": "true"});

/** The ends of an axis with four even steps that holds 0 and both values: [floor, top]. */
function ends(low, high) {
  const size = 10 ** Math.floor(Math.log10(Math.max(high, 0) - Math.min(low, 0) || 1) - 1);
  for (const step of [2, 2.5, 4, 5, 10, 20, 25, 50].map((factor) => factor * size)) {
    const floor = Math.floor(Math.min(low, 0) / step) * step;
    if (floor + 4 * step >= high) return [floor, floor + 4 * step];
  }
  return [low, high];
}

/** Lines with bands. `series`: [{name, points: [{x, y, low, high}]}]; `marks`: [{x | y, label}]. */
function lineChart({title, series, xFormat, xTitle, yFormat, floor = 0, top, marks = [], note}) {
  const drawn = series.filter((one) => one.points.length);
  if (!drawn.length) return null;
  const xs = sorted(drawn.flatMap((one) => one.points.map((point) => point.x)));
  const {width, height} = size();
  const x = scale(xs, MARGIN.left + 8, width - MARGIN.right - 8);
  const bottom = height - MARGIN.bottom;
  const y = (value) => bottom - (bottom - MARGIN.top) * Math.min(Math.max((value - floor) / (top - floor), 0), 1);
  const path = (points) => points.map(([px, py], n) => `${n ? "L" : "M"}${px.toFixed(1)} ${py.toFixed(1)}`).join("");
  const chart = s("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title, class: "chart"},
    frame({label: title, xs, xFormat, xTitle, floor, top, yFormat, x, y, width, height}),
    drawn.map((one, n) => {
      const banded = one.points.filter((point) => point.low !== null && point.low !== undefined);
      const edge = [...banded.map((p) => [x(p.x), y(p.high)]), ...banded.toReversed().map((p) => [x(p.x), y(p.low)])];
      return banded.length > 1 ? s("path", {class: `band c${n % 6}`, d: `${path(edge)}Z`}) : null;
    }),
    marks.map((mark) => (mark.y !== undefined
      ? s("line", {class: "mark", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(mark.y), y2: y(mark.y)})
      : s("line", {class: "mark", x1: x(mark.x), x2: x(mark.x), y1: MARGIN.top, y2: bottom}))),
    drawn.map((one, n) => [
      s("path", {class: `line c${n % 6}`, d: path(one.points.map((point) => [x(point.x), y(point.y)]))}),
      one.points.map((point) => s("circle", {class: `c${n % 6}`, cx: x(point.x), cy: y(point.y), r: one.points.length > 30 ? 2 : 3.5},
        s("title", {}, `${one.name} · ${xFormat(point.x)}: ${point.said}`))),
    ]),
    marks.map((mark, n) => {  // above the lines: they are to be read
      const right = mark.y !== undefined || x(mark.x) > width * 0.6;
      const at = mark.y !== undefined ? {x: width - MARGIN.right - 4, y: y(mark.y) + 14} : {x: x(mark.x) + (right ? -5 : 5), y: bottom + 8 - 14 * n};
      return s("text", {class: "mark", ...at, "text-anchor": right ? "end" : "start"}, mark.label);
    }));
  const names = drawn.length > 1 || drawn[0].name ? h("p", {class: "names"}, drawn.map((one, n) => h("span", {}, swatch(n), foreign(one.name)))) : null;
  return h("figure", {class: "plot"}, h("figcaption", {}, h("h3", {}, title), note ? h("p", {class: "quiet"}, note) : null), names, chart,
    asTable(title, xTitle, drawn, xs, xFormat));
}

/** The same numbers, for those who read instead of looking. */
function asTable(title, xTitle, series, xs, xFormat) {
  const rows = () => xs.map((value) => h("tr", {}, h("th", {scope: "row"}, xFormat(value)), series.map((one) => {
    const point = one.points.find((each) => each.x === value);
    return h("td", {}, point ? point.said : "–");
  })));
  return lazyTable(title, () => h("table", {class: "plain"},
    h("thead", {}, h("tr", {}, h("th", {scope: "col"}, xTitle), series.map((one) => h("th", {scope: "col"}, foreign(one.name || title))))),
    h("tbody", {}, rows())));
}

function lazyTable(title, make) {
  const details = h("details", {class: "numbers"}, h("summary", {}, say("as_table"), h("span", {class: "unseen"}, `: ${title}`)));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) {
      details.append(h("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": title}, make()));
    }
  });
  return details;
}

/** Bars of shares. `rows`: [{x, outcomes: {name: count}}]. */
function stackChart({title, rows, xFormat, xTitle}) {
  if (!rows.length) return null;
  const {width, height} = size();
  const bottom = height - MARGIN.bottom;
  const step = (width - MARGIN.left - MARGIN.right) / rows.length;
  const x = (n) => MARGIN.left + step * (n + 0.5);
  const y = (share) => bottom - (bottom - MARGIN.top) * share;
  const kinds = OUTCOMES.filter((outcome) => rows.some((row) => row.outcomes[outcome]));
  const xs = rows.map((_, n) => n);
  const chart = s("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title, class: "chart"},
    frame({label: title, xs, xFormat: (n) => xFormat(rows[n].x), xTitle, top: 1, yFormat: percent, x, y, width, height}),
    rows.map((row, n) => {
      const whole = kinds.reduce((sum, kind) => sum + (row.outcomes[kind] || 0), 0);
      let from = 0;
      return kinds.filter((kind) => row.outcomes[kind]).map((kind) => {
        const share = row.outcomes[kind] / whole;
        const bar = s("rect", {
          class: `o-${kind}`, x: x(n) - step * 0.39, width: step * 0.78, y: y(from + share), height: Math.max(0, y(from) - y(from + share) - 0.75),
        }, s("title", {}, `${xFormat(row.x)}: ${number(row.outcomes[kind])} ${outcomeName(kind)}`));
        from += share;
        return bar;
      });
    }));
  return h("figure", {class: "plot"}, h("figcaption", {}, h("h3", {}, title)),
    h("p", {class: "names"}, kinds.map((kind) => h("span", {}, h("i", {class: `dot o-${kind}`, "aria-hidden": "true"}), outcomeName(kind)))), chart,
    lazyTable(title, () => h("table", {class: "plain"},
      h("thead", {}, h("tr", {}, h("th", {scope: "col"}, xTitle), kinds.map((kind) => h("th", {scope: "col"}, outcomeName(kind))))),
      h("tbody", {}, rows.map((row) => h("tr", {}, h("th", {scope: "row"}, xFormat(row.x)), kinds.map((kind) => h("td", {}, number(row.outcomes[kind] || 0)))))))));
}

// --- which charts there are -----------------------------------------------------------------------------------------

const scorePoint = (row, x) => ({
  x, y: row.score, low: row.interval && row.interval[0], high: row.interval && row.interval[1],
  said: `${percentExact(row.score)}${row.interval ? ` ${interval(row.interval)}` : ""}`,
});

/** One line for each subset of one run, or for each run where there are several. */
function seriesOf(rowsOf, subsetName) {
  return shownRuns().flatMap((run) => shownSubsets(run).filter((subset) => subsetName === null || subset.name === subsetName)
    .map((subset) => ({name: RUNS.length > 1 ? run.label : nameOf(subset.name), run, subset, points: rowsOf(run, subset)})));
}

function chartsOf(subsetName) {
  const suffix = subsetName === null ? "" : ` · ${nameOf(subsetName)}`;
  const by = (rowsOf) => seriesOf(rowsOf, subsetName);
  const lengthSeries = by((_, subset) => (subset.lengths || []).filter((row) => row.score !== null && row.context_length !== null)
    .map((row) => scorePoint(row, row.context_length)));
  const marks = [];
  const drawn = lengthSeries.filter((one) => one.points.length);
  drawn.forEach((one) => {
    const effective = one.subset.effective_length;
    if (!effective || !effective.mean) return;
    if (!marks.length) marks.push({y: effective.threshold, label: say("threshold", {share: percent(effective.threshold)})});
    const {length, at_least: more} = effective.mean;
    if (length !== null && one.points.some((point) => point.x === length)) {
      const same = marks.find((mark) => mark.x === length);
      const label = `${say("effective")} ${more ? "≥\u00a0" : ""}${tokens(length)}`;
      if (same) same.label += `, ${one.name}`;
      else marks.push({x: length, label: drawn.length > 1 ? `${label} · ${one.name}` : label});
    }
  });
  const curve = (subset) => (subset.position && subset.position.curve) || subset.depths || [];
  const paceOf = (run, subset) => (run.pace || []).filter((row) => row.subset === subset.name);
  const took = by((run, subset) => paceOf(run, subset).filter((row) => row.seconds).map(({context_length: x, seconds: {p10, median, p90}}) => ({
    x, y: median, low: p10, high: p90, said: `${seconds(median)} (${seconds(p10)} – ${seconds(p90)})`,
  })));
  const read = by((run, subset) => paceOf(run, subset).filter(({tokens: used}) => used && used.prompt && used.cached !== null)
    .map(({context_length: x, tokens: used}) => ({x, y: used.cached / used.prompt, said: percentExact(used.cached / used.prompt)})));
  const found = by((run, subset) => (run.recall || []).filter((row) => row.subset === subset.name)
    .map((row) => ({x: row.context_length, y: row.score, said: `${percentExact(row.score)} · ${say("all_found", {share: percentExact(row.all_found)})}`})));
  const ahead = by((run, subset) => ((((run.margin || {}).subsets || []).find((row) => row.name === subset.name) || {}).lengths || [])
    .map(({context_length: x, mean, interval: span}) => ({x, y: mean, low: span && span[0], high: span && span[1],
      said: `${nats(mean)}${span ? ` [${span.map(nats).join(",\u00a0")}]` : ""}`})));
  const reached = ahead.flatMap((one) => one.points.flatMap((point) => [point.y, point.low ?? point.y, point.high ?? point.y]));
  const [deepest, highest] = ends(Math.min(0, ...reached), Math.max(0, ...reached));
  const longest = Math.max(0, ...took.flatMap((one) => one.points.map((point) => point.high)));
  const top = [1, 2, 4, 6, 8, 10].map((step) => step * 10 ** Math.floor(Math.log10(longest || 1))).find((limit) => limit >= longest);
  const lengths = {xFormat: tokens, xTitle: say("axis_length")};
  return [
    lineChart({title: say("by_length") + suffix, series: lengthSeries, ...lengths, yFormat: percent, top: 1, marks, note: bandNote(lengthSeries)}),
    lineChart({
      title: say("by_depth") + suffix, xFormat: depth, xTitle: say("axis_depth"), yFormat: percent, top: 1,
      series: by((_, subset) => curve(subset).filter((row) => row.score !== null).map((row) => scorePoint(row, row.depth_percent))),
      note: positionNote(subsetName),
    }),
    ...shownRuns().flatMap((run) => shownSubsets(run).filter((subset) => subsetName === null || subset.name === subsetName).map((subset) => {
      const byLength = new Map();
      for (const cell of subset.cells) {
        const sum = byLength.get(cell.context_length) || byLength.set(cell.context_length, {}).get(cell.context_length);
        for (const [outcome, n] of Object.entries(cell.outcomes || {})) sum[outcome] = (sum[outcome] || 0) + n;
      }
      const rows = sorted([...byLength.keys()]).map((x) => ({x, outcomes: byLength.get(x)})).filter((row) => Object.keys(row.outcomes).length);
      return stackChart({title: `${say("outcomes_by_length")} · ${RUNS.length > 1 ? `${run.label} · ` : ""}${nameOf(subset.name)}`, rows, ...lengths});
    })),
    lineChart({title: say("recall_by_length") + suffix, series: found, ...lengths, yFormat: percent, top: 1, note: say("recall_note")}),
    lineChart({
      title: say("margin_by_length") + suffix, series: ahead, ...lengths, yFormat: (value) => minus(Math.round(value * 1e6) / 1e6),
      floor: deepest, top: highest, marks: deepest < 0 ? [{y: 0, label: ""}] : [], note: [say("margin_note"), bandNote(ahead)].filter(Boolean).join(" "),
    }),
    longest > 0 ? lineChart({title: say("latency_by_length") + suffix, series: took, ...lengths, yFormat: seconds, top, note: say("latency_note")}) : null,
    lineChart({title: say("cached_by_length") + suffix, series: read, ...lengths, yFormat: percent, top: 1}),
  ];
}

function bandNote(series) {
  const level = RUNS.map((run) => run.interval_level).find((value) => value);
  const banded = series.some((one) => one.points.some((point) => point.low !== null && point.low !== undefined));
  return banded && level ? say("band_note", {level: percent(level)}) : null;
}

function positionNote(subsetName) {
  if (RUNS.length > 1) return null;
  const tests = shownSubsets(RUNS[0]).filter((subset) => subsetName === null || subset.name === subsetName)
    .map((subset) => [subset.name, subset.position && subset.position.test]).filter(([, test]) => test && test.difference !== null);
  return tests.map(([name, test]) => say("position_note", {
    name: nameOf(name), difference: `${test.difference < 0 ? "−" : "+"}${Math.abs(Math.round(test.difference * 100))}`,
    interval: test.interval ? `[${test.interval.map((end) => Math.round(end * 100)).join(", ")}]` : "",
  })).join(" ") || null;
}

function chartSection() {
  const box = h("div", {class: "plots"});
  const draw = () => {
    const names = RUNS.length > 1 ? SUBSETS.filter((name) => !state.subset || name === state.subset) : [null];
    replace(box, ...names.flatMap(chartsOf).filter(Boolean));
  };
  draw();
  listen("filter", draw);
  matchMedia("(max-width: 640px)").addEventListener("change", draw);
  return box.children.length ? h("section", {id: "charts"}, h("h2", {}, say("charts")), box) : null;
}
