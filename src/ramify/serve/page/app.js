// The page: which view is shown, the key, and the line about the model.

import { get, useKey } from "./api.js";
import { ask, startAsking } from "./ask.js";
import { clearProblem, count, find, showProblem } from "./dom.js";
import { showLearning } from "./learning.js";
import { startTeaching } from "./teach.js";
import { showNode, startTree } from "./tree.js";

const VIEWS = ["ask", "learning", "tree"];
let timer = 0;

async function refresh() {
  try {
    const progress = await get("/v1/progress");
    find("model-name").textContent = progress.model;
    const learned = progress.learns ? `${count(progress.n_examples)} examples, ` : "";
    find("summary").textContent = `${learned}${count(progress.n_labels)} labels, version ${progress.version}`;
    find("teach").hidden = !progress.learns;
    if (!find("view-learning").hidden) await showLearning(progress);
    return progress;
  } catch (error) {
    showProblem(error);
  }
}

async function follow() {
  clearTimeout(timer);
  if (!document.hidden) await refresh();
  timer = setTimeout(follow, find("view-learning").hidden ? 5000 : 1000);
}

function show(view) {
  for (const name of VIEWS) {
    find(`view-${name}`).hidden = name !== view;
    document.querySelector(`[data-view=${name}]`).setAttribute("aria-pressed", String(name === view));
  }
  clearProblem();
  location.hash = view;
  if (view === "tree") showNode(0);
  follow();
}

for (const button of document.querySelectorAll("[data-view]")) {
  button.addEventListener("click", () => show(button.dataset.view));
}
find("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  useKey(find("key").value.trim());
  find("key-panel").hidden = true;
  clearProblem();
  follow();
  ask();
});
document.addEventListener("visibilitychange", () => document.hidden || follow());

startTeaching({ onTaught: refresh });
startAsking();
startTree();
show(VIEWS.includes(location.hash.slice(1)) ? location.hash.slice(1) : "ask");
