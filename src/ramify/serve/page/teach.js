// Correct and teach: accept, remove and add labels, then send the example.

import { get, post } from "./api.js";
import { ask, currentText } from "./ask.js";
import { clearProblem, count, element, find, showProblem, title } from "./dom.js";

const PAUSE = 150;
const SURE = 0.5; // a taught label shall be more likely than not
let chosen = []; // entries with label and name
let isEdited = false; // by hand: then answers no longer change it
let about = "";
let knowsNone = false; // a model without labels needs one to begin with
let found = [];
let selected = -1;
let waiting = 0;
let report = () => {};

export function startTeaching({ onTaught }) {
  report = onTaught;
  const add = find("add");
  add.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(search, PAUSE);
  });
  add.addEventListener("keydown", keyPressed);
  add.addEventListener("blur", () => setTimeout(close, 150));
  find("learn").addEventListener("click", teach);
  find("view-ask").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    if (find("teach").hidden) return;
    if (currentText() && !isAnswered(currentText())) find("taught").textContent = "The labels of this text are not here yet.";
    else if (!find("learn").disabled) teach();
  });
  draw();
}

export const isChosen = (label) => chosen.some((one) => one.label === label);

// The labels that the model believes in, as a start; a new text starts anew.
export function suggest(labels, text, hasAnswers) {
  knowsNone = text !== "" && !hasAnswers;
  if (isEdited && sameStart(text, about)) {
    about = text;
    draw();
    return;
  }
  isEdited = false;
  about = text;
  chosen = [...labels];
  draw();
}

// Typing on changes the text a little: what was chosen by hand stays.
const sameStart = (one, other) => one !== "" && other !== "" && (one.startsWith(other) || other.startsWith(one));

// Labels chosen for one text must not be taught with another one, of which no answer has come yet.
const isAnswered = (text) => text === about || (isEdited && sameStart(text, about));

const canTeach = (text) => text !== "" && isAnswered(text) && (chosen.length > 0 || !knowsNone);

export function noteText() {
  find("taught").textContent = "";
  find("learn").disabled = !canTeach(currentText());
}

export function toggle(entry) {
  isEdited = true;
  chosen = isChosen(entry.label) ? chosen.filter((one) => one.label !== entry.label) : [...chosen, entry];
  draw();
}

function draw() {
  find("chosen").replaceChildren(
    ...chosen.map((entry) => {
      const remove = element("button", { type: "button", "aria-label": `Remove ${title(entry)}` }, "×");
      remove.addEventListener("click", () => toggle(entry));
      return element("li", {}, title(entry), remove);
    }),
  );
  const text = currentText();
  find("learn").disabled = !canTeach(text);
  find("none-chosen").hidden = chosen.length > 0;
  find("none-chosen").textContent = !text
    ? "Type a text first. Then accept or remove labels, and teach."
    : knowsNone
      ? "None. The model knows no label yet: add its first one below."
      : "None. Accept a label with +, or add one below. If you teach now, it learns that none applies.";
  document.dispatchEvent(new Event("chosen"));
}

async function teach() {
  const text = currentText();
  const example = { text, labels: chosen.map((one) => one.label), sure: SURE };
  find("learn").disabled = true;
  find("taught").textContent = "Teaching …";
  try {
    const receipt = await post("/v1/learn", { examples: [example] }, { headers: { "Idempotency-Key": newKey() } });
    clearProblem();
    isEdited = true; // the answer changes now, the labels of this text do not
    await ask({ fresh: true });
    find("taught").textContent = `Learned and saved, as example ${count(receipt.version)} of this service.`;
    await report();
  } catch (error) {
    find("taught").textContent = "";
    showProblem(error);
  }
  draw();
}

const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

// --- search over all labels ---

async function search() {
  const words = find("add").value.trim();
  if (!words) return close();
  try {
    const answer = await get("/v1/labels", { search: words, limit: 20 });
    found = answer.labels.filter((entry) => !isChosen(entry.label));
    const same = answer.labels.find((entry) => String(entry.label) === words);
    find("taught").textContent = same && isChosen(same.label) ? `${title(same)} is chosen already.` : "";
    if (!same) found.push({ label: words, isNew: true });
    selected = found.length ? 0 : -1;
    drawFound();
  } catch (error) {
    showProblem(error);
  }
}

function drawFound() {
  const list = find("found");
  list.replaceChildren(
    ...found.map((entry, place) => {
      const words = entry.isNew ? `New label “${entry.label}”` : title(entry);
      const times = entry.n_examples ? ` (${entry.n_examples})` : "";
      const item = element("li", { id: `found-${place}`, role: "option", "aria-selected": String(place === selected) }, words + times);
      item.addEventListener("mousedown", (event) => {
        event.preventDefault();
        take(place);
      });
      return item;
    }),
  );
  list.hidden = found.length === 0;
  const add = find("add");
  add.setAttribute("aria-expanded", String(!list.hidden));
  if (selected >= 0) add.setAttribute("aria-activedescendant", `found-${selected}`);
  else add.removeAttribute("aria-activedescendant");
  list.children[selected]?.scrollIntoView({ block: "nearest" });
}

function take(place) {
  const entry = found[place];
  if (entry) toggle({ label: entry.label, name: entry.name });
  find("add").value = "";
  close();
}

function close() {
  found = [];
  selected = -1;
  drawFound();
}

async function keyPressed(event) {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) return; // teaches
  if (event.key === "Enter") {
    event.preventDefault();
    clearTimeout(waiting);
    if (!found.length) await search();
    take(selected);
  } else if (event.key === "Escape") {
    close();
  } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && found.length) {
    event.preventDefault();
    selected = (selected + (event.key === "ArrowDown" ? 1 : found.length - 1)) % found.length;
    drawFound();
  }
}
