// The page's own interface to its server: documents that are asked for again and again, and logs as streams.

const EVERY_MS = 2000;

export class Refused extends Error {}

let signedOut = () => {};

/** `listener` is called with the reason when the server asks for a sign-in (tj serve). */
export function onSignedOut(listener) {
  signedOut = listener;
}

async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Error("The server of this page does not answer. If it was tj ui that was ended: start it again and open the address that it prints.");
  }
  const content = await answer.json().catch(() => ({}));
  if (answer.ok) return content;
  if (answer.status === 401 && content.sign_in) signedOut(content.error);
  if (answer.status === 401 || answer.status === 403)
    throw new Refused(content.error ?? "This page is no longer allowed in: open the address that tj ui printed.");
  throw new Error(content.error ?? `answer ${answer.status}`);
}

export function fetchDocument(path) {
  return ask(path, {headers: {Accept: "application/json"}});
}

export function post(path, content) {
  return ask(path, {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(content)});
}

export function jobPath(namespace, name) {
  return `/api/jobs/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
}

/** Calls `once` now and then again, while the page is seen, until what it returns is called. */
export function repeat(once) {
  let stopped = false;
  let timer = 0;
  const turn = async () => {
    if (!document.hidden) await once();
    if (!stopped) timer = setTimeout(turn, EVERY_MS);
  };
  turn();
  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}
