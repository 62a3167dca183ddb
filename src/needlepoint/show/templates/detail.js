// What a chosen cell holds: its numbers and its trials.

const detail = h("section", {class: "detail", id: "detail", "aria-labelledby": "detail-title"});
const live = h("p", {class: "unseen", role: "status"});

function showDetail(chosen) {
  const {run, subset, cell, td, byKey} = chosen;
  const all = run.places.get(place(subset.name, cell.context_length, cell.depth_percent)) || [];
  const some = all.filter((i) => passes(run, i));
  const title = `${tokens(cell.context_length)} · ${say("at_depth", {depth: depth(cell.depth_percent)})}`;
  const heading = h("h2", {id: "detail-title", tabindex: -1}, title);
  const empty = all.length ? say("none_pass") : cell.n ? say("no_trials_kept") : say("no_trials");
  replace(detail,
    h("p", {class: "quiet"}, RUNS.length > 1 ? [h("bdi", {}, run.label), " · "] : null, foreign(nameOf(subset.name))),
    heading,
    h("p", {class: "cell-facts"}, cellLines(subset, cell).slice(1).join(" · ")),
    some.length < all.length ? h("p", {class: "quiet"}, say("filtered", {n: number(some.length), all: number(all.length)})) : null,
    paged(some.length, 6, (n) => card(run, some[n], {where: false}), empty),
    td ? h("button", {type: "button", class: "back", onclick: () => td.focus()}, say("back")) : null,
  );
  detail.scrollTop = 0;
  live.textContent = `${title}: ${cellLines(subset, cell).slice(1).join(", ")}. ${say("n_trials", {n: number(some.length)})}`;
  detail.classList.add("full");
  const box = heading.getBoundingClientRect();
  const narrow = matchMedia("(max-width: 1079px)").matches;
  if (narrow && !byKey && (box.top < 0 || box.bottom > innerHeight)) {
    detail.scrollIntoView({behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth", block: "start"});
  }
}

detail.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && state.chosen && state.chosen.td) state.chosen.td.focus();
});

function emptyDetail() {
  replace(detail, h("h2", {id: "detail-title"}, say("cell")), h("p", {class: "quiet"}, say("choose")));
  detail.classList.remove("full");
}

listen("filter", () => {
  if (state.chosen) showDetail({...state.chosen, byKey: true});
});
