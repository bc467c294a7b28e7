// Watch the model learn: numbers, curves, frequent labels.

import { get } from "./api.js";
import { count, element, find, percent, title } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";

export async function showLearning(progress) {
  if (!progress.learns) {
    find("numbers").replaceChildren(...entry("Labels", count(progress.n_labels)), ...entry("Learning", "a batch model"));
    return;
  }
  const last = progress.windows[progress.windows.length - 1];
  find("numbers").replaceChildren(
    ...entry("Examples", count(progress.n_examples)),
    ...entry("Labels", count(progress.n_labels)),
    ...entry("P@1 so far", percent(progress.precision[1])),
    ...entry("P@1 lately", percent(progress.recent_precision[1])),
    ...entry("P@5 so far", percent(progress.precision[5])),
    ...entry("Examples per second", last ? count(Math.round(last.examples_per_second)) : "–"),
  );
  const x = progress.windows.map((window) => window.n_examples);
  find("charts").replaceChildren(
    chart("Precision of the best label (P@1)", x, progress.windows.map((window) => window.precision[1]), percent, 1),
    chart("Labels", x, progress.windows.map((window) => window.n_labels), count),
    chart("Examples learned per second", x, progress.windows.map((window) => Math.round(window.examples_per_second)), count),
  );
  const frequent = await get("/v1/labels", { sort: "frequency", limit: 10 });
  find("frequent").replaceChildren(
    ...frequent.labels.map((one) => element("li", {}, element("span", {}, title(one)), element("span", { className: "quiet" }, count(one.n_examples)))),
  );
}

const entry = (name, value) => [element("div", {}, element("dt", {}, name), element("dd", {}, value))];

function chart(name, x, y, format, top = Math.max(...y, 1)) {
  const last = y.length ? format(y[y.length - 1]) : "nothing yet";
  const figure = element("figure", {}, element("figcaption", {}, `${name}: ${last}`));
  const picture = document.createElementNS(SVG, "svg");
  picture.setAttribute("viewBox", "0 0 100 100");
  picture.setAttribute("preserveAspectRatio", "none");
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", `${name} over ${count(x[x.length - 1] || 0)} examples, now ${last}, scale to ${format(top)}`);
  const line = document.createElementNS(SVG, "polyline");
  const left = x.length > 1 ? x[0] : 0;
  const width = (x[x.length - 1] || 1) - left || 1;
  const points = x.map((at, place) => `${(100 * (at - left)) / width},${100 - (100 * y[place]) / top}`);
  line.setAttribute("points", (points.length === 1 ? [`0,${points[0].split(",")[1]}`, ...points] : points).join(" "));
  picture.append(line);
  figure.append(picture);
  return figure;
}
