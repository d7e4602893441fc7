// Calls of the server. An answer that is no success becomes an Error whose message is the server's own sentence.

const KEY = "topnrank key";

export class ServerError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }

  /** Whether a key, or another key, would help. */
  get needsKey() {
    return this.status === 401 || this.status === 403;
  }
}

export const hasKey = () => sessionStorage.getItem(KEY) !== null;

/** Kept until the tab is closed, sent with every call, and never put in the address or in the code that is shown. */
export function keepKey(key) {
  if (key) sessionStorage.setItem(KEY, key);
  else sessionStorage.removeItem(KEY);
}

async function call(path, options = {}) {
  const headers = { ...options.headers };
  if (hasKey()) headers.Authorization = `Bearer ${sessionStorage.getItem(KEY)}`;
  let [answer, body] = [];
  try {
    answer = await fetch(path, { ...options, headers });
    const text = await answer.text();
    body = answer.ok || text.startsWith("{") ? JSON.parse(text) : {}; // an error of a proxy is no JSON
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError(0, "The server does not answer; is it still running?");
  }
  if (!answer.ok) throw new ServerError(answer.status, body.detail ?? body.title ?? `The server answered ${answer.status}.`);
  return body;
}

export function get(path, parameters = {}, signal = undefined) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined);
  const query = new URLSearchParams(given).toString();
  return call(query ? `${path}?${query}` : path, { signal });
}

export const post = (path, body, signal = undefined) =>
  call(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal });
