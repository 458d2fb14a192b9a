// Output of a job as it comes: appended as text, followed unless the reader looks back, with a rule where another node
// goes on.

import { localise } from "./clock.js";
import { say } from "./words.js";

/** Lines kept on the page. */
const KEPT = 2000;

const list = document.querySelector("[data-log]");
const pause = document.querySelector("[data-pause]");

let following = true;

export const newest = () => Number(list?.dataset.newest ?? 0);

/** What to ask the server for. */
export function wanted() {
  const { follow: job } = document.querySelector("[data-follow]")?.dataset ?? {};
  return job && { type: "follow", job, after: newest() };
}

function item(className, text) {
  const rule = document.createElement("li");
  rule.className = className;
  rule.textContent = text;
  return rule;
}

function line({ seq, at, node, stream, text }) {
  const element = document.createElement("li");
  Object.assign(element.dataset, { seq, node, stream });
  const time = document.createElement("time");
  time.dateTime = at;
  Object.assign(time.dataset, { clock: "second", ms: Date.parse(at) });
  const said = document.createElement("span");
  said.className = "said";
  said.textContent = text;
  element.append(time, " ", said);
  localise(element);
  return element;
}

export function add({ job, lines, skipped }) {
  if (list?.dataset.log !== job || lines.length === 0) return;
  // A store that was emptied counts from one again.
  if (lines.at(-1).seq < newest()) list.dataset.newest = lines[0].seq - 1;
  const fresh = lines.filter((one) => one.seq > newest());
  if (fresh.length === 0) return;
  const added = document.createDocumentFragment();
  if (skipped) added.append(item("rule", say("skipped", skipped)));
  let before = list.lastElementChild?.dataset.node;
  for (const one of fresh) {
    if (before && before !== one.node) {
      const rule = item("rule", say("fromHere", one.node));
      rule.dataset.before = one.run;
      added.append(rule);
    }
    before = one.node;
    added.append(line(one));
  }
  list.append(added);
  explain();
  list.dataset.newest = fresh.at(-1).seq;
  while (list.childElementCount > KEPT) list.firstElementChild.remove();
  if (following) list.scrollTop = list.scrollHeight;
}

/** Why another node goes on is known from the history, which is read a moment later. */
function explain() {
  for (const rule of list.querySelectorAll(".rule[data-before]")) {
    const run = document.querySelector(`#runs [data-run="${CSS.escape(rule.dataset.before)}"]`);
    if (run?.dataset.rule && rule.textContent !== run.dataset.rule) rule.textContent = run.dataset.rule;
  }
}

function follow(on) {
  following = on;
  pause.setAttribute("aria-pressed", String(!on));
  pause.textContent = say(on ? "follow" : "paused");
  if (on) list.scrollTop = list.scrollHeight;
}

export function start() {
  if (!list) return;
  pause.hidden = false;
  follow(true);
  document.addEventListener("fetched", explain);
  pause.addEventListener("click", () => follow(!following));
  list.addEventListener("scroll", () => {
    const end = list.scrollHeight - list.scrollTop - list.clientHeight < 8;
    if (end !== following) follow(end);
  }, { passive: true });
}
