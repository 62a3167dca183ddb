// The other parts of the page: figures, outcomes, failures, what it was made with.

function effectiveText(run) {
  const effective = run.effective_length;
  if (!effective || !effective.mean) return null;
  const {length, at_least: more, stopped_by: stop} = effective.mean;
  if (length === null) return ["–", say(stop === "coverage" ? "effective_no_coverage" : "effective_none", {share: percent(effective.threshold)})];
  const certified = effective.mean.certified ? `, ${say("certified", {length: tokens(effective.mean.certified)})}` : "";
  return [`${more ? "≥\u00a0" : ""}${tokens(length)}`, say("effective_at", {share: percent(effective.threshold)}) + certified];
}

function figuresOf(run) {
  const {overall, tokens: used} = run;
  const rows = [[say("score"), percentExact(overall.score), overall.interval ? interval(overall.interval) : null]];
  rows.push([say("coverage"), percentExact(overall.coverage), say("valid_of", {valid: number(overall.valid), n: number(overall.n)})]);
  const effective = effectiveText(run);
  if (effective) rows.push([say("effective"), ...effective]);
  if (used && used.prompt !== null && used.prompt !== undefined) {
    const cached = used.cached === null || used.cached === undefined ? null : say("share_cached", {share: percent(used.prompt ? used.cached / used.prompt : 0)});
    rows.push([say("tokens_read"), short(used.prompt), cached]);
  }
  if (used && used.completion !== null && used.completion !== undefined) {
    rows.push([say("tokens_written"), short(used.completion), used.reasoning ? say("f_thought", {n: short(used.reasoning)}) : null]);
  }
  if (run.cost !== null && run.cost !== undefined) rows.push([say("cost"), run.cost.toPrecision(3).replace(/\.?0+$/, ""), null]);
  return rows;
}

function figures() {
  if (RUNS.length === 1) {
    return h("dl", {class: "figures"}, figuresOf(RUNS[0]).map(([name, value, more]) =>
      h("div", {}, h("dt", {}, name), h("dd", {}, value, more ? h("span", {class: "quiet"}, more) : null))));
  }
  const tables = RUNS.map(figuresOf);
  const names = [...new Set(tables.flatMap((rows) => rows.map(([name]) => name)))];
  return h("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": say("overview")}, h("table", {class: "plain wide"},
    h("thead", {}, h("tr", {}, h("th", {scope: "col"}, say("model")), names.map((name) => h("th", {scope: "col"}, name)))),
    h("tbody", {}, RUNS.map((run, n) => h("tr", {}, h("th", {scope: "row"}, foreign(run.label)), names.map((name) => {
      const row = tables[n].find((each) => each[0] === name);
      return h("td", {}, row ? [row[1], row[2] ? h("span", {class: "quiet"}, ` ${row[2]}`) : null] : "–");
    }))))));
}

function outcomeBars() {
  const box = h("div", {class: "outcomes"});
  const buttons = new Map();
  for (const run of RUNS) {
    const whole = Object.values(run.outcomes).reduce((sum, n) => sum + n, 0);
    if (!whole) continue;
    const bar = h("div", {class: "strip", "aria-hidden": "true"}, Object.entries(run.outcomes).map(([outcome, n]) => {
      const piece = h("i", {class: `o-${OUTCOMES.includes(outcome) ? outcome : "other"}`});
      piece.style.flexGrow = n;
      return piece;
    }));
    const keys = h("ul", {class: "keys"}, Object.entries(run.outcomes).map(([outcome, n]) => {
      const pick = h("button", {
        type: "button", "aria-pressed": "false",
        onclick: () => setFilter("outcome", state.outcome === outcome ? "" : outcome),
      }, h("i", {class: `dot o-${OUTCOMES.includes(outcome) ? outcome : "other"}`, "aria-hidden": "true"}),
      h("b", {}, number(n)), ` ${outcomeName(outcome)} `, h("span", {class: "quiet"}, percentExact(n / whole)));
      buttons.set(pick, outcome);
      return h("li", {}, pick);
    }));
    box.append(h("div", {}, RUNS.length > 1 ? h("h3", {}, foreign(run.label)) : null, bar, keys));
  }
  listen("filter", () => buttons.forEach((outcome, button) => button.setAttribute("aria-pressed", String(outcome === state.outcome))));
  return box.children.length ? h("section", {id: "outcomes"}, h("h2", {}, say("outcomes")), box) : null;
}

// --- filters --------------------------------------------------------------------------------------------------------

const fields = {};

function setFilter(name, value) {
  state[name] = value;
  if (fields[name]) fields[name].querySelector("select").value = value;
  tell("filter");
}

function filters() {
  const any = [["", say("all")]];
  const add = (name, label, options) => {
    if (options.length > 1) fields[name] = select(label, [...any, ...options], "", (value) => setFilter(name, value));
  };
  add("run", say("model"), RUNS.length > 1 ? RUNS.map((run) => [String(run.n), run.label]) : []);
  add("subset", say("subset"), SUBSETS.map((name) => [name, nameOf(name)]));
  add("layout", say("layout"), LAYOUTS.map((name) => [name, name]));
  add("outcome", say("outcome"), SEEN.map((outcome) => [outcome, outcomeName(outcome)]));
  const reset = h("button", {type: "button", hidden: true, onclick: () => {
    for (const name of Object.keys(fields)) {
      state[name] = "";
      fields[name].querySelector("select").value = "";
    }
    tell("filter");
  }}, say("reset"));
  listen("filter", () => { reset.hidden = !Object.keys(fields).some((name) => state[name]); });
  return Object.keys(fields).length ? h("div", {class: "filters", role: "group", "aria-label": say("filters")}, Object.values(fields), reset) : null;
}

// --- answers, failures first ----------------------------------------------------------------------------------------

function gallery() {
  const heading = h("h2", {});
  const box = h("div", {});
  const note = h("p", {class: "quiet"});
  const draw = () => {
    const found = [];
    for (const run of RUNS) {
      for (let i = 0; i < run.trials.n; i++) {
        const outcome = text(at(run, "outcome", i));
        if ((state.outcome || outcome !== "correct") && passes(run, i)) found.push([run, i, outcome]);
      }
    }
    // valid ones first: they are the model's failures; the others are broken measurements
    const rank = ([, , outcome]) => (isValid(outcome) ? 0 : 1);
    found.sort((one, other) => rank(one) - rank(other) || at(one[0], "length", one[1]) - at(other[0], "length", other[1]));
    heading.textContent = state.outcome ? say("answers_of", {outcome: outcomeName(state.outcome)}) : say("failures");
    note.textContent = say("n_trials", {n: number(found.length)});
    note.hidden = !found.length;
    replace(box, paged(found.length, 6, (n) => card(found[n][0], found[n][1], {where: true}), say(state.outcome ? "none_pass" : "no_failures")));
  };
  draw();
  listen("filter", draw);
  return RUNS.some((run) => run.trials.n) ? h("section", {id: "failures"}, heading, note, box) : null;
}

// --- what it was made with ------------------------------------------------------------------------------------------

const rowsTable = (label, rows) => h("table", {class: "plain settings"}, h("caption", {}, label),
  h("tbody", {}, rows.map(([name, value]) => h("tr", {}, h("th", {scope: "row"}, foreign(name)), h("td", {}, foreign(value))))));

function corporaTable(run) {
  if (!run.corpora.length) return null;
  const columns = [["subset", "subset"], ["name", "corpus"], ["licence", "licence"], ["sha256", "sha256"]];
  return h("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": say("corpora")}, h("table", {class: "plain"},
    h("caption", {}, say("corpora")),
    h("thead", {}, h("tr", {}, columns.map(([, name]) => h("th", {scope: "col"}, say(name))))),
    h("tbody", {}, run.corpora.map((corpus) => h("tr", {}, columns.map(([key]) => h("td", {},
      key === "sha256" && corpus[key] ? h("code", {}, corpus[key].slice(0, 16)) : foreign(key === "subset" ? nameOf(corpus[key]) : corpus[key] || "–"))))))));
}

function notes() {
  const said = RUNS.map((run) => [...(run.notes || []), ...run.warnings]);
  const ofAll = (line) => said.every((lines) => lines.includes(line));
  const lines = RUNS.flatMap((run, n) => said[n].map((line) => (ofAll(line) ? line : `${run.label}: ${line}`)));
  RUNS.filter((run) => run.n_trials > run.trials.n).forEach((run) => lines.push(say("trials_left_out", {n: number(run.trials.n), all: number(run.n_trials)})));
  return lines.length ? h("ul", {class: "notes"}, [...new Set(lines)].map((line) => h("li", {dir: "auto"}, line))) : null;
}

function madeWith() {
  const parts = RUNS.map((run) => {
    const head = [
      ["dataset", run.dataset], ["layout", run.layout], ["length_mode", run.length_mode], ["scorer", run.scorer], ["run_folder", run.folder],
    ].filter(([, value]) => value).map(([name, value]) => [say(name), value]);
    return [
      RUNS.length > 1 ? h("h3", {}, foreign(run.label)) : null,
      corporaTable(run),
      head.length ? rowsTable(say("this_run"), head) : null,
      run.settings.map(([group, rows]) => h("details", {}, h("summary", {}, WORDS[`g_${group}`] || group), rowsTable(WORDS[`g_${group}`] || group, rows))),
    ];
  });
  return h("section", {id: "settings"}, h("h2", {}, say("settings")), parts);
}
