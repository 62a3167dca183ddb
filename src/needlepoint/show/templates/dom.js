// The data, words, and how elements are made. Text only ever becomes text: no HTML is parsed anywhere.

const DATA = JSON.parse(document.getElementById("data").textContent);
const WORDS = DATA.words;
const SVG = "http://www.w3.org/2000/svg";

/** A phrase of the page's language, with its {names} filled in. */
function say(key, values = {}) {
  return WORDS[key].replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

/** An HTML element: h("p", {class: "note"}, "text", otherElement, [more]). */
const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);

/** The same for SVG. */
const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

/** Puts these in the place of what an element held. */
function replace(element, ...children) {
  element.replaceChildren();
  return fill(element, {}, children);
}

/** Foreign text in a box of its own: its direction is its own affair. */
const foreign = (text, tag = "bdi") => h(tag, {dir: "auto"}, text);

function select(label, options, value, onChange) {
  const field = h("select", {onchange: () => onChange(field.value)},
    options.map(([key, name]) => h("option", {value: key, selected: key === value}, name)));
  return h("label", {class: "field"}, h("span", {}, label), field);
}

function check(label, value, onChange) {
  const box = h("input", {type: "checkbox", checked: value, onchange: () => onChange(box.checked)});
  return h("label", {class: "check"}, box, h("span", {}, label));
}

/** A list that shows its first items, and more on demand. `make` builds the item with this number. */
function paged(n, size, make, empty) {
  const list = h("div", {class: "cards"});
  const more = h("button", {type: "button", class: "more"});
  const left = h("p", {class: "quiet"});
  let shown = 0;
  const grow = (byHand) => {
    const first = shown;
    for (const end = Math.min(n, shown + size); shown < end; shown++) list.append(make(shown));
    more.hidden = shown >= n;
    more.textContent = say("more", {n: number(Math.min(size, n - shown)), left: number(n - shown)});
    if (byHand && list.children[first]) {
      list.children[first].tabIndex = -1;
      list.children[first].focus({preventScroll: true});
    }
  };
  more.addEventListener("click", () => grow(true));
  if (n === 0) left.textContent = empty;
  grow(false);
  return h("div", {}, list, n === 0 ? left : null, more);
}

// --- numbers as people read them ------------------------------------------------------------------------------------

/** Whole points; 100 and 0 only where it is so. */
function points(share) {
  const whole = Math.round(share * 100);
  return share <= 0 || share >= 1 ? whole : Math.min(Math.max(whole, 1), 99);
}

const percent = (share) => (share === null || share === undefined ? "–" : `${points(share)}%`);

/** One decimal; a whole 100 or 0 only where it is so. */
function percentExact(share) {
  if (share === null || share === undefined) return "–";
  if (share <= 0 || share >= 1) return `${Math.round(share * 100)}%`;
  return `${Math.min(Math.max(share * 100, 0.1), 99.9).toFixed(1)}%`;
}

const interval = (ends) => (ends ? `[${ends.map((end) => Math.round(end * 100)).join(",\u00a0")}]` : "");
const depth = (value) => `${Math.round(value * 10) / 10}%`;
const number = (value) => (value === null || value === undefined ? "–" : value.toLocaleString("en-US"));

const minus = (value) => String(value).replace("-", "−");
const nats = (value) => minus(value.toFixed(2));

/** For an axis: 1k, 4.4k, 131k, 1M. */
function tokens(n) {
  if (n < 1000) return String(n);
  const million = n >= 999500;
  const size = n / (million ? 1e6 : 1e3);
  const exact = Number.isInteger(size) && size < 1000;
  return (exact || size >= 9.95 ? String(Math.round(size)) : size.toFixed(1).replace(/\.0$/, "")) + (million ? "M" : "k");
}

function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 1) return `${Math.round(value * 1000)}\u00a0ms`;
  if (value < 120) return `${value.toFixed(value < 10 ? 1 : 0)}\u00a0s`;
  return `${Math.round(value / 60)}\u00a0min`;
}

function short(value) {
  for (const [unit, name] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (value >= unit * 0.9995) {
      const size = value / unit;
      return (size < 99.95 ? size.toFixed(1).replace(/\.0$/, "") : size.toFixed(0)) + name;
    }
  }
  return String(Math.round(value * 10) / 10);
}
