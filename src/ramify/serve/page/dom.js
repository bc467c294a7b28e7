// Small helpers. Data only ever becomes text nodes and properties, never markup.

export const find = (id) => document.getElementById(id);

export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [property, value] of Object.entries(properties)) {
    if (property.startsWith("aria-") || property === "role") made.setAttribute(property, value);
    else made[property] = value;
  }
  made.append(...children);
  return made;
}

export const percent = (share) =>
  share > 0 && share < 0.0005 ? "< 0.1 %" : `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
export const count = (number) => number.toLocaleString("en");
export const title = (entry) => (entry.name ? `${entry.label} ${entry.name}` : String(entry.label));

export function showProblem(error) {
  if (error.name === "AbortError") return;
  const place = find("problem");
  if (error.status === 401) find("key-panel").hidden = false;
  place.textContent = error.message;
  place.hidden = false;
}

export function clearProblem() {
  find("problem").hidden = true;
}
