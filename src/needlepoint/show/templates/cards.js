// One trial, as a card: the question, the needle where it stands, what was answered and what decided.

const badge = (outcome) => h("span", {class: `badge ${isValid(outcome) ? "" : "hatched"}`},
  h("i", {class: `dot o-${OUTCOMES.includes(outcome) ? outcome : "other"}`, "aria-hidden": "true"}), outcomeName(outcome));

const cutNote = (left) => (left ? h("span", {class: "cut"}, say("cut", {n: number(left)})) : null);

function answerText(answer) {
  if (answer === null) return null;
  if (typeof answer === "string") {
    return answer.trim() ? h("div", {class: "said", dir: "auto"}, answer) : h("p", {class: "quiet"}, say("empty_answer"));
  }
  const [before, hit, after, left] = answer;
  return h("div", {class: "said", dir: "auto"}, before, hit ? h("mark", {class: "hit"}, hit) : null, after, cutNote(left));
}

function needleTexts(trial) {
  return trial.needles.map((needle, n) => {
    const excerpt = trial.excerpts && trial.excerpts[n];
    const [before, after] = (excerpt || []).map(text);
    const bare = needle.text.trim();
    const start = needle.text.indexOf(bare); // line ends around the needle are not marked
    return h("blockquote", {class: "excerpt", dir: "auto"}, before ? ["…", before] : null, needle.text.slice(0, start),
      h("mark", {}, bare), needle.text.slice(start + bare.length), after ? [after, "…"] : null);
  });
}

/** Where the needles stand in the prompt, as a line with a mark at each. */
function whereabouts(trial) {
  const spots = (trial.placements || []).map(([asked, achieved]) => achieved ?? asked);
  if (!spots.length && trial.depth !== null) spots.push(trial.achieved_depth ?? trial.depth);
  const known = spots.filter((spot) => spot !== null);
  if (!known.length) return null;
  const line = h("span", {class: "line", "aria-hidden": "true"});
  for (const spot of known) {
    const mark = h("i", {});
    mark.style.left = `${Math.min(Math.max(spot, 0), 100)}%`;
    line.append(mark);
  }
  return line;
}

function facts(trial) {
  const rows = [];
  const add = (name, value, more) => {
    if (value !== null && value !== undefined && value !== "") rows.push([say(name), value, more]);
  };
  if (trial.length !== null) {
    add("f_length", trial.achieved_length === null ? null : number(trial.achieved_length),
      `${say("asked_for", {value: number(trial.length)})}${trial.proven ? "" : `, ${say("unproven")}`}`);
  }
  if (trial.depth !== null) {
    add("f_depth", trial.achieved_depth === null ? null : depth(trial.achieved_depth),
      `${say("asked_for", {value: depth(trial.depth)})}${trial.boundary ? `, ${WORDS[`b_${trial.boundary}`] || trial.boundary}` : ""}`);
  }
  if (trial.margin) {
    const [gold, wrong, rival] = trial.margin;
    add("f_margin", say("nats", {n: nats(gold - wrong)}), say("margin_of", {gold: nats(gold), rival: text(rival), wrong: nats(wrong)}));
  }
  add("f_prompt", trial.prompt === null ? null : number(trial.prompt),
    trial.sent !== null && trial.sent !== trial.prompt ? say("f_sent", {n: number(trial.sent)}) : null);
  add("f_cached", trial.cached === null ? null : number(trial.cached),
    trial.cached !== null && trial.prompt ? percent(trial.cached / trial.prompt) : null);
  add("f_answer_tokens", trial.completion === null ? null : number(trial.completion),
    trial.thought ? say("f_thought", {n: number(trial.thought)}) : null);
  add("f_time", trial.total === null ? null : seconds(trial.total),
    trial.first !== null ? say("f_first", {time: seconds(trial.first)}) : null);
  if (trial.attempts > 1) add("f_attempts", number(trial.attempts));
  if (trial.finish && trial.finish !== "stop") add("f_finish", trial.finish);
  if (trial.error) add("f_error", trial.error);
  return rows.length ? h("dl", {class: "facts"}, rows.map(([name, value, more]) =>
    h("div", {}, h("dt", {}, name), h("dd", {}, foreign(value), more ? h("span", {class: "quiet"}, ` ${more}`) : null)))) : null;
}

function command(line) {
  const code = h("code", {}, line);
  const said = h("span", {class: "unseen", role: "status"});
  const button = h("button", {
    type: "button",
    class: "copy",
    onclick: async () => {
      try {
        await navigator.clipboard.writeText(line);
        button.textContent = say("copied");
        said.textContent = say("copied");
      } catch {
        getSelection().selectAllChildren(code);
        button.textContent = say("selected");
      }
    },
  }, say("copy"));
  return h("div", {class: "command"}, code, button, said);
}

/** How a scorer arrived at its word: `rules`, or a judge's 7 of 1–10. */
function scorerOf(trial) {
  if (!trial.scorer) return null;
  const raw = trial.raw === null ? "" : ` · ${trial.raw}${trial.scale ? ` (${trial.scale.join("–")})` : ""}`;
  const name = WORDS[`s_${trial.scorer}`] || trial.scorer;
  return `${say("scored_by", {name})}${raw}`;
}

function card(run, i, {where}) {
  const trial = trialOf(run, i);
  const part = (name, ...content) => (content.flat().some((child) => child !== null && child !== undefined)
    ? h("div", {class: "part"}, h("h5", {}, say(name)), content) : null);
  const title = [];
  if (where && RUNS.length > 1) title.push(run.label);
  if (where) title.push(nameOf(trial.subset), trial.length === null ? null : tokens(trial.length), trial.depth === null ? null : depth(trial.depth));
  if (trial.replicate) title.push(say("replicate", {n: trial.replicate}));
  if (trial.repeat) title.push(say("repeat", {n: trial.repeat}));
  if (!title.length) title.push(say("trial"));
  const answer = trial.error ? null : answerText(trial.answer);
  const place = trial.placements || trial.achieved_depth !== null ? whereabouts(trial) : null;
  return h("article", {class: "card"},
    h("header", {}, h("h4", {}, foreign(title.filter((word) => word !== null).join(" · "))), badge(trial.outcome)),
    part("question", trial.question ? h("p", {dir: "auto"}, trial.question) : null),
    part(trial.needles.length > 1 ? "needles" : "needle", needleTexts(trial), place),
    part("answer", answer),
    part("verdict", trial.reason ? h("p", {dir: "auto"}, trial.reason) : null,
      scorerOf(trial) ? h("p", {class: "quiet"}, foreign(scorerOf(trial))) : null),
    trial.reasoning ? h("details", {}, h("summary", {}, say("reasoning")),
      h("div", {class: "said", dir: "auto"}, cutNote(trial.reasoning[1]), trial.reasoning[0])) : null,
    facts(trial),
    run.folder ? h("details", {}, h("summary", {}, say("reproduce")),
      h("p", {class: "quiet"}, say("reproduce_how")),
      command(`needlepoint show ${quoted(run.folder)} ${quoted(cellName(trial))}`),
      h("p", {class: "quiet"}, say("trial_id"), " ", h("code", {}, trial.id))) : null);
}
