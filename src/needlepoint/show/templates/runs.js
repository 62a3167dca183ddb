// Runs, their cells and their trials: where everything is found. What is not known is null.

const RUNS = DATA.runs;
const OUTCOMES = Object.keys(DATA.outcomes);
const isValid = (outcome) => DATA.outcomes[outcome] === true;
const nameOf = (subset) => WORDS[`n_${subset}`] || subset;
const outcomeName = (outcome) => WORDS[`o_${outcome}`] || outcome;
const place = (subset, length, depthPercent) => `${subset}|${length}|${depthPercent}`;
const text = (n) => (n === null || n === undefined ? null : DATA.texts[n]);

function at(run, name, i) {
  const column = run.trials.columns[name];
  if (column === undefined) return null;
  return Array.isArray(column) ? column[i] : column.all;
}

const TEXT_COLUMNS = ["subset", "layout", "boundary", "question", "outcome", "reason", "scorer", "finish", "error"];

/** One trial as an object; texts resolved. */
function trialOf(run, i) {
  const found = {i, run};
  for (const name of Object.keys(run.trials.columns)) found[name] = at(run, name, i);
  for (const name of TEXT_COLUMNS) found[name] = text(found[name]);
  found.needles = (run.trials.needle_sets[found.needles] || []).map(([needle, answers]) => ({
    text: text(needle), answers: answers.map(text),
  }));
  return found;
}

/** A trial's place as `needlepoint show` takes it. */
function cellName(trial) {
  let name = `${trial.subset}:${trial.length}:${Number(trial.depth)}`;
  if (trial.replicate || trial.repeat) name += `:${trial.replicate}`;
  return trial.repeat ? `${name}.${trial.repeat}` : name;
}

const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

RUNS.forEach((run, n) => {
  run.n = n;
  run.label = RUNS.filter((other) => other.model === run.model).length > 1 ? `${run.model} (${n + 1})` : run.model;
  run.places = new Map();
  for (let i = 0; i < run.trials.n; i++) {
    const key = place(text(at(run, "subset", i)), at(run, "length", i), at(run, "depth", i));
    const there = run.places.get(key);
    if (there) there.push(i);
    else run.places.set(key, [i]);
  }
  for (const subset of run.subsets) {
    subset.cells = (subset.cells || []).filter((cell) => cell.context_length !== null && cell.depth_percent !== null);
    subset.byPlace = new Map(subset.cells.map((cell) => [place(subset.name, cell.context_length, cell.depth_percent), cell]));
  }
});

const SUBSETS = [...new Set(RUNS.flatMap((run) => run.subsets.map((subset) => subset.name)))];
const uniqueTexts = (name) => [...new Set(RUNS.flatMap((run) => {
  const column = run.trials.columns[name];
  if (column === undefined) return [];
  return (Array.isArray(column) ? [...new Set(column)] : [column.all]).map(text);
}))].filter((word) => word !== null);
const LAYOUTS = uniqueTexts("layout");
const SEEN = OUTCOMES.filter((outcome) => RUNS.some((run) => run.outcomes[outcome]));

// --- what people chose ----------------------------------------------------------------------------------------------

const state = {subset: "", outcome: "", layout: "", run: "", numbers: null, scale: DATA.scale, chosen: null};
const listeners = {};

/** Tell those who listen: "filter" (which trials), "look" (how maps are drawn), "chosen" (a cell). */
const tell = (kind) => (listeners[kind] || []).forEach((listener) => listener());
const listen = (kind, listener) => (listeners[kind] ||= []).push(listener);

function passes(run, i) {
  return (!state.run || String(run.n) === state.run)
    && (!state.subset || text(at(run, "subset", i)) === state.subset)
    && (!state.outcome || text(at(run, "outcome", i)) === state.outcome)
    && (!state.layout || text(at(run, "layout", i)) === state.layout);
}

const shownSubsets = (run) => run.subsets.filter((subset) => !state.subset || subset.name === state.subset);
const shownRuns = () => RUNS.filter((run) => !state.run || String(run.n) === state.run);

// --- colours --------------------------------------------------------------------------------------------------------

const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
const hex = (parts) => "#" + parts.map((part) => Math.round(part).toString(16).padStart(2, "0")).join("");
const mixed = (one, other, share) => hex(rgb(one).map((low, i) => low + (rgb(other)[i] - low) * share));

/** The colour of a score from 0 to 1: the same anchors as the terminal and the charts. */
function colour(score) {
  const anchors = DATA.colours[state.scale];
  const where = Math.min(Math.max(score, 0), 1) * (anchors.length - 1);
  const below = Math.min(Math.floor(where), anchors.length - 2);
  return mixed(anchors[below], anchors[below + 1], where - below);
}

/** Black or white: what is read better on a colour (WCAG 2.2, relative luminance). */
function ink(background) {
  const [red, green, blue] = rgb(background).map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000000" : "#ffffff";
}
