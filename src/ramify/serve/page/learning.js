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
  const share = (value) => (last ? percent(value) : "–"); // nothing was tested yet
  find("numbers").replaceChildren(
    ...entry("Examples", count(progress.n_examples)),
    ...entry("Labels", count(progress.n_labels)),
    ...entry("P@1 so far", share(progress.precision[1])),
    ...entry("P@1 lately", share(progress.recent_precision[1])),
    ...entry("P@5 so far", share(progress.precision[5])),
    ...entry("Learned per second", last ? count(Math.round(last.examples_per_second)) : "–"),
  );
  find("no-charts").hidden = progress.windows.length > 1;
  find("no-charts").textContent = "Curves begin after the first hundred examples.";
  const x = progress.windows.map((window) => window.n_examples);
  find("charts").hidden = progress.windows.length < 2;
  find("charts").replaceChildren(
    chart("Precision of the best label (P@1)", x, progress.windows.map((window) => window.precision[1]), percent, 1),
    chart("Labels", x, progress.windows.map((window) => window.n_labels), count),
    chart("Examples learned per second", x, progress.windows.map((window) => Math.round(window.examples_per_second)), count),
  );
  const frequent = await get("/v1/labels", { sort: "frequency", limit: 10 });
  find("no-frequent").hidden = frequent.labels.length > 0;
  find("frequent").replaceChildren(
    ...frequent.labels.map((one) => element("li", {}, element("span", {}, title(one)), element("span", { className: "quiet" }, count(one.n_examples)))),
  );
}

const entry = (name, value) => [element("div", {}, element("dt", {}, name), element("dd", {}, value))];

function chart(name, x, y, format, top = roundUp(Math.max(...y, 1))) {
  const last = y.length ? format(y[y.length - 1]) : "nothing yet";
  const picture = document.createElementNS(SVG, "svg");
  picture.setAttribute("viewBox", "0 0 100 100");
  picture.setAttribute("preserveAspectRatio", "none");
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", `${name} over ${count(x[x.length - 1] || 0)} examples, now ${last}, scale to ${format(top)}`);
  const left = x.length > 1 ? x[0] : 0;
  const width = (x[x.length - 1] || 1) - left || 1;
  const points = x.map((at, place) => `${(100 * (at - left)) / width},${100 - (100 * y[place]) / top}`);
  picture.append(line("0,50 100,50", "half"), line(points.join(" "), "curve"));
  // The scales are for the eye; a screen reader has the label of the picture.
  const scale = (className, ...words) =>
    element("div", { className, "aria-hidden": "true" }, ...words.map((word) => element("span", {}, word)));
  const figure = element("figure", {}, element("figcaption", {}, `${name}: ${last}`));
  figure.append(
    element("div", { className: "plot" }, scale("up", format(top), format(top / 2), format(0)), picture),
    scale("along", `${count(left)} examples`, count(x[x.length - 1] || 0)),
  );
  return figure;
}

function line(points, className) {
  const made = document.createElementNS(SVG, "polyline");
  made.setAttribute("points", points);
  made.setAttribute("class", className);
  return made;
}

// The next of 1, 2, 4, 6, 8, 10, 20, …: half of it is a round number, too.
function roundUp(value) {
  const size = 10 ** Math.floor(Math.log10(value));
  return size * [1, 2, 4, 6, 8, 10].find((step) => step * size >= value);
}
