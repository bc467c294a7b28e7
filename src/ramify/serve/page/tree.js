// Browse the label tree, a node at a time.

import { get } from "./api.js";
import { count, element, find, showProblem, title } from "./dom.js";

const AT_ONCE = 50;
let current = 0;
let shown = 0;

export function startTree() {
  find("more").addEventListener("click", () => showNode(current, shown));
}

export async function showNode(node, offset = 0) {
  try {
    const answer = await get("/v1/tree", { node, limit: AT_ONCE, offset });
    current = node;
    shown = offset + answer.children.length;
    find("crumbs").replaceChildren(...answer.path.map((above) => crumb(above, above === node)));
    const place = node === 0 ? "The root" : `Node ${node}`;
    find("node").textContent = `${place}: ${count(answer.n_labels)} labels below ${count(answer.n_children)} children. Open one by the first of its labels.`;
    const rows = answer.children.map(child);
    if (offset) find("children").append(...rows);
    else find("children").replaceChildren(...rows);
    find("more").hidden = shown >= answer.n_children;
  } catch (error) {
    find("children").replaceChildren();
    find("more").hidden = true;
    if (error.status === 404) find("node").textContent = error.message;
    else showProblem(error);
  }
}

function crumb(node, isCurrent) {
  const button = element("button", { type: "button", disabled: isCurrent }, node === 0 ? "root" : `node ${node}`);
  button.addEventListener("click", () => showNode(node));
  if (isCurrent) button.setAttribute("aria-current", "true");
  return button;
}

function child(one) {
  if (one.label !== undefined) return element("li", {}, element("span", {}, title(one)));
  const more = one.n_labels > one.examples.length ? ", …" : "";
  const examples = one.examples.join(", ") + more;
  const open = element("button", { type: "button", title: examples }, element("span", { className: "clamped" }, examples));
  open.addEventListener("click", () => showNode(one.node));
  return element("li", {}, open, element("span", { className: "quiet" }, `${count(one.n_labels)} labels`));
}
