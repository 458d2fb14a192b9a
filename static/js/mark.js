// The mark at the top, in two parts: from this page to its node, and from that node to its store. It never keeps a
// green that nobody confirms.

import { another } from "./elsewhere.js";
import * as truth from "./truth.js";
import { announce, duration, say } from "./words.js";

/** From here on states are shown as unknown: longer than a lease of default length plus half a second. */
const STALE_AFTER = 5500;
/** A connection that comes back within this time is not worth a line at the top. */
const WORTH_A_LINE = 2000;

const mark = document.querySelector(".mark");
const text = mark?.querySelector("[data-mark-text]");
const store = mark?.querySelector("[data-store-text]");

let since;
let ended = false;

function write(element, words) {
  if (element.textContent !== words) element.textContent = words;
}

function show(kind, words) {
  if (mark.dataset.mark !== kind) mark.dataset.mark = kind;
  write(text, words);
}

function look() {
  if (!mark || ended || since === undefined) return;
  const age = Date.now() - since;
  document.documentElement.toggleAttribute("data-stale", age > STALE_AFTER);
  if (age > STALE_AFTER) show("old", say("old", duration(age)));
  else show("reconnecting", say("reconnecting"));
  const there = another();
  const line = say(there ? "nodeSilent" : "nodeAlone", duration(age));
  truth.page(age > WORTH_A_LINE ? line : "", false, there);
}

/** Green only where the whole way is open: from this page to its node, and from there to the store. */
function connected() {
  if (mark.dataset.store === "away") show("connected", say("connected"));
  else show("live", say("live"));
}

/** The picture is whole and follows the node. */
export function live() {
  since = undefined;
  document.documentElement.removeAttribute("data-stale");
  if (!mark || ended) return;
  connected();
  truth.page("");
}

/** Nothing was heard since `when`. */
export function lost(when = Date.now()) {
  since ??= when;
  look();
}

/** The session is over; only signing in helps. */
function signedOut() {
  ended = true;
  document.documentElement.setAttribute("data-stale", "");
  if (mark) show("old", say("signedOut"));
  truth.page(say("sessionOver"), true);
  announce(say("sessionOver"));
}

/** Asks whether the session ended; `goOn` when it did not, or nobody knows. */
export async function refused(goOn) {
  const answer = await fetch("/api/v1/nodes").catch(() => undefined);
  if (answer?.status === 401) signedOut();
  else goOn();
}

/** Whether the node reaches its store. */
function reaches(reachable) {
  if (!mark) return;
  mark.dataset.store = reachable ? "ok" : "away";
  write(store, say(reachable ? "store" : "storeAway"));
  if (since === undefined && !ended && mark.dataset.mark !== "still") connected();
}

export const frames = {
  store: ({ reachable }) => reaches(reachable),
  truth: (frame) => (reaches(frame.store), truth.show(frame)),
};

export function start() {
  setInterval(look, 500);
}
