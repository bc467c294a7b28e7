// Calls of the service: JSON in and out, problems as errors, the API key of this tab.

let key = sessionStorage.getItem("key") || "";

export class ProblemError extends Error {
  constructor(problem) {
    super(problem.detail || problem.title || "The service did not answer.");
    this.status = problem.status;
    this.retryAfter = problem.retry_after;
  }
}

export function useKey(text) {
  key = text;
  sessionStorage.setItem("key", text);
}

async function call(path, options = {}) {
  const headers = { ...options.headers };
  if (key) headers.Authorization = `Bearer ${key}`;
  let answer;
  try {
    answer = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ProblemError({ detail: "The service cannot be reached. Is it running?" });
  }
  const content = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new ProblemError({ status: answer.status, ...content });
  return content;
}

export const get = (path, parameters = {}, options = {}) =>
  call(`${path}?${new URLSearchParams(parameters)}`, options);

export const post = (path, content, options = {}) =>
  call(path, {
    ...options,
    method: "POST",
    body: JSON.stringify(content),
    headers: { "Content-Type": "application/json", ...options.headers },
  });
