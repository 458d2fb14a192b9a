// The mark at the top: live, reconnecting, or how old the picture is. It never keeps a green that nobody confirms.

import { duration, say } from "./words.js";

/** From here on states are shown as unknown: longer than a lease of default length plus half a second. */
const STALE_AFTER = 5500;

const mark = document.querySelector("[data-mark]");
const text = mark?.querySelector("[data-mark-text]");

let since;
let ended = false;

function show(kind, words) {
  if (mark.dataset.mark !== kind) mark.dataset.mark = kind;
  if (text.textContent !== words) text.textContent = words;
}

function look() {
  if (!mark || ended || since === undefined) return;
  const age = Date.now() - since;
  document.documentElement.toggleAttribute("data-stale", age > STALE_AFTER);
  if (age > STALE_AFTER) show("old", say("old", duration(age)));
  else show("reconnecting", say("reconnecting"));
}

/** The picture is whole and follows the store. */
export function live() {
  since = undefined;
  document.documentElement.removeAttribute("data-stale");
  if (mark && !ended) show("live", say("live"));
}

/** Nothing was heard since `when`. */
export function lost(when = Date.now()) {
  since ??= when;
  look();
}

/** The session is over; only a reload helps. */
export function signedOut() {
  ended = true;
  document.documentElement.setAttribute("data-stale", "");
  if (mark) show("old", say("signedOut"));
}

export function start() {
  setInterval(look, 500);
}
