// The page: which view is shown, the key, and the line about the model.

import { get, useKey } from "./api.js";
import { ask, startAsking } from "./ask.js";
import { clearProblem, count, find, showProblem } from "./dom.js";
import { showLearning } from "./learning.js";
import { startTeaching } from "./teach.js";
import { showNode, startTree } from "./tree.js";

const VIEWS = ["ask", "learning", "tree"];
let timer = 0;
let isUnreachable = false;

async function refresh() {
  try {
    const progress = await get("/v1/progress");
    if (isUnreachable) clearProblem();
    isUnreachable = false;
    find("model-name").textContent = progress.model;
    document.title = `${progress.model} · ramify`;
    const learned = progress.learns ? `${count(progress.n_examples)} examples learned, ` : "";
    find("summary").textContent = `${learned}${count(progress.n_labels)} labels`;
    find("teach").hidden = !progress.learns;
    if (!find("view-learning").hidden) await showLearning(progress);
    return progress;
  } catch (error) {
    isUnreachable = error.status === undefined;
    showProblem(error);
  }
}

async function follow() {
  clearTimeout(timer);
  if (!document.hidden) await refresh();
  timer = setTimeout(follow, find("view-learning").hidden ? 5000 : 1000);
}

function viewOfAddress() {
  const view = location.hash.slice(1);
  return VIEWS.includes(view) ? view : "ask";
}

function show(view, node = 0) {
  for (const name of VIEWS) {
    find(`view-${name}`).hidden = name !== view;
    document.querySelector(`[data-view=${name}]`).setAttribute("aria-pressed", String(name === view));
  }
  clearProblem();
  if (location.hash.slice(1) !== view) history.pushState(null, "", `#${view}`);
  if (view === "tree") showNode(node);
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
window.addEventListener("popstate", () => show(viewOfAddress()));
document.addEventListener("open-node", (event) => {
  show("tree", event.detail);
  find("tree-title").focus();
});
document.addEventListener("visibilitychange", () => document.hidden || follow());

startTeaching({ onTaught: refresh });
startAsking();
startTree();
show(viewOfAddress());
