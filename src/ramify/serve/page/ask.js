// Ask as you type, and see why.

import { post } from "./api.js";
import { clearProblem, count, element, find, percent, showProblem, title } from "./dom.js";
import { isChosen, noteText, suggest, toggle } from "./teach.js";

const PAUSE = 120; // milliseconds without a key before the text is sent
const SHOWN = 8;
const OF_TEXT = ["answers", "why"]; // about another text until the answer comes
let waiting = 0;
let running = null;
let explained = null; // the label of the explanation that is shown
let isPicked = false; // by hand: otherwise the best label is explained
let shares = new Map(); // probabilities of the last answer, by label

export function startAsking() {
  find("text").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => ask(), PAUSE);
    for (const id of OF_TEXT) find(id).setAttribute("aria-busy", "true");
    noteText();
  });
  document.addEventListener("chosen", markChosen);
}

export const currentText = () => find("text").value.trim();

// With `fresh` the live model answers; the answer then shows what has changed since the last one.
export async function ask({ fresh = false } = {}) {
  const text = currentText();
  running?.abort();
  if (!text) {
    show([], "");
    return;
  }
  running = new AbortController();
  try {
    const answer = await post("/v1/predict", { texts: [text], top_k: SHOWN, fresh }, { signal: running.signal });
    clearProblem();
    const labels = answer.results[0].labels;
    show(labels, text, fresh ? shares : new Map());
    shares = new Map(labels.map((one) => [one.label, one.probability]));
    isPicked &&= labels.some((one) => one.label === explained);
    if (labels.length) await explain(isPicked ? explained : labels[0].label, fresh);
    else hideWhy();
  } catch (error) {
    showProblem(error);
  }
}

function show(labels, text, before = new Map()) {
  find("answers").replaceChildren(...labels.map((entry) => row(entry, before)));
  find("answers").removeAttribute("aria-busy");
  find("hint").hidden = text !== "";
  find("no-answers").hidden = labels.length > 0 || !text;
  const best = labels[0];
  find("status").textContent = best ? `Best: ${title(best)}, ${percent(best.probability)}.` : "";
  suggest(labels.filter((one) => one.probability >= 0.5), text, labels.length > 0);
  if (!text) hideWhy();
}

function row(entry, before) {
  const why = element(
    "button",
    { type: "button", className: "answer", title: "Show why", "aria-pressed": String(entry.label === explained) },
    element("progress", { max: 1, value: entry.probability, "aria-hidden": "true" }),
    element("span", { className: "name" }, String(entry.label), element("small", {}, entry.name ? ` ${entry.name}` : "")),
    ...change(entry, before),
    element("span", { className: "share" }, percent(entry.probability)),
  );
  why.setAttribute("aria-controls", "why");
  why.addEventListener("click", async () => {
    isPicked = true;
    await explain(entry.label);
    find("why").scrollIntoView({ block: "nearest" }); // below the rest on a narrow screen
  });
  const pick = element("button", { type: "button", className: "icon pick" });
  pick.addEventListener("click", () => toggle(entry));
  pick.dataset.label = JSON.stringify(entry.label);
  const item = element("li", {}, why, pick);
  labelPick(pick, title(entry));
  return item;
}

// What teaching has changed: the probability before, if the label was in the list then.
function change(entry, before) {
  if (!before.size) return [];
  const old = before.get(entry.label);
  if (old === undefined) return [element("span", { className: "change rose" }, "new in the list")];
  if (percent(old) === percent(entry.probability)) return [];
  const rose = entry.probability > old;
  const words = element("span", { className: "unseen" }, `${rose ? "rose" : "fell"} from ${percent(old)} to`);
  const picture = element("span", { "aria-hidden": "true" }, `${percent(old)} ${rose ? "↗" : "↘"}`);
  return [element("span", { className: rose ? "change rose" : "change fell" }, words, picture)];
}

function labelPick(pick, name) {
  const chosen = isChosen(JSON.parse(pick.dataset.label));
  pick.textContent = chosen ? "✓" : "+";
  pick.setAttribute("aria-pressed", String(chosen));
  pick.title = chosen ? "Remove from the labels to teach" : "Add to the labels to teach";
  if (name) pick.dataset.name = name;
  pick.setAttribute("aria-label", `${chosen ? "Remove" : "Accept"} ${pick.dataset.name}`);
  pick.hidden = find("teach").hidden;
}

function markChosen() {
  for (const pick of document.querySelectorAll(".pick")) labelPick(pick);
}

async function explain(label, fresh = false) {
  explained = label;
  const text = find("text").value;
  try {
    const answer = await post("/v1/explain", { text, label, fresh });
    if (label !== explained || text !== find("text").value) return; // another one was asked for meanwhile
    find("why-label").textContent = title(answer.explanation);
    find("marked").replaceChildren(...marked(text, answer.spans));
    find("path").replaceChildren(...(answer.explanation.paths?.[0] || []).map(step));
    find("why").hidden = false;
    find("why").removeAttribute("aria-busy");
    for (const button of document.querySelectorAll(".answer")) {
      const pick = button.nextElementSibling;
      button.setAttribute("aria-pressed", String(pick.dataset.label === JSON.stringify(label)));
    }
  } catch (error) {
    showProblem(error);
  }
}

function hideWhy() {
  explained = null;
  isPicked = false;
  find("why").hidden = true;
}

// The text with the spans for and against the label; a later span inside an earlier one is left out.
// Positions count characters as Python does, which are not always JavaScript's units.
function marked(text, spans) {
  const characters = [...text];
  const parts = [];
  let end = 0;
  for (const span of spans) {
    if (span.start < end) continue;
    parts.push(characters.slice(end, span.start).join(""));
    const kind = span.weight > 0 ? "for" : "against";
    const words = characters.slice(span.start, span.end).join("");
    parts.push(element("mark", { className: kind, title: `${kind}: ${span.weight.toFixed(2)}` }, words));
    end = span.end;
  }
  parts.push(characters.slice(end).join(""));
  return parts;
}

function step(one) {
  const inner = one.n_labels > 1;
  const name = inner ? `${count(one.n_labels)} labels: ${one.labels.join(", ")}${one.labels.length < one.n_labels ? ", …" : ""}` : one.labels[0];
  const words = one.contributions.map((part) => `${part.feature} ${part.value >= 0 ? "+" : "−"}${Math.abs(part.value).toFixed(2)}`);
  const item = element(
    "li",
    {},
    element("div", { className: "step", title: name }, element("span", { className: "share" }, percent(one.probability)), name),
    element("div", { className: "quiet" }, words.join(", ") || "no known word here"),
  );
  if (inner) {
    const open = element("button", { type: "button", className: "link", "aria-label": `Show these ${count(one.n_labels)} labels in the tree` }, "Show in the tree");
    open.addEventListener("click", () => document.dispatchEvent(new CustomEvent("open-node", { detail: one.node })));
    item.append(open);
  }
  return item;
}
