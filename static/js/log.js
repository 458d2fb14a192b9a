// Output of a job as it comes: appended as text, unless the reader looks back, with a rule where another run goes on.

import { localise } from "./clock.js";
import { say } from "./words.js";

/** Lines kept on the page. */
const KEPT = 2000;
const list = document.querySelector("[data-log]");
/** It begins at its end: at the newest line its place is 0, above it less. */
const screen = list?.parentElement;
const pause = document.querySelector("[data-pause]");

let following = true;
/** Lines that came while the reader looked back: nothing moves below what somebody reads. */
let held = [];

const newest = () => Number(list?.dataset.newest ?? 0);

/** What to ask the server for. */
export function wanted() {
  const { follow: job } = document.querySelector("[data-follow]")?.dataset ?? {};
  return job && { type: "follow", job, after: newest() };
}

function made(kind, className, textContent = "", more = {}) {
  return Object.assign(document.createElement(kind), { className, textContent, ...more });
}

function line({ seq, at, run, node, stream, text, looks = [["", text]] }) {
  const time = made("time", "", "", { dateTime: at });
  Object.assign(time.dataset, { clock: "second", ms: Date.parse(at) });
  const link = made("a", "at", "", { href: `?line=${seq}#L${seq}`, tabIndex: -1 });
  const [element, said] = [made("li", "", "", { id: `L${seq}` }), made("span", "said")];
  Object.assign(element.dataset, { seq, run, node, stream });
  link.append(time);
  said.append(...looks.map(([look, piece]) => made("span", look, piece)));
  element.append(link, " ", said);
  return element;
}

export function add({ job, lines }) {
  if (list?.dataset.log !== job || lines.length === 0) return;
  // A store that was emptied counts from one again.
  if (lines.at(-1).seq < newest()) list.dataset.newest = lines[0].seq - 1;
  const fresh = lines.filter((one) => one.seq > newest());
  if (fresh.length === 0) return;
  list.dataset.newest = fresh.at(-1).seq;
  held = [...held, ...fresh].slice(-KEPT);
  follow(following);
}

/** Numbers have no gaps: where one is, lines came faster than they could be told, or than somebody read. */
function show() {
  const added = document.createDocumentFragment();
  let { seq, run } = list.lastElementChild?.dataset ?? {};
  for (const one of held) {
    const gap = one.seq - Number(seq ?? one.seq) - 1;
    if (gap > 0) added.append(made("li", "rule", say("skipped", gap)));
    if (run && run !== one.run) {
      added.append(made("li", "rule", say("fromHere", one.node)));
      added.lastChild.dataset.before = one.run;
    }
    ({ seq, run } = one);
    added.append(line(one));
  }
  held = [];
  localise(added);
  list.append(added);
  explain();
  while (list.childElementCount > KEPT) list.firstElementChild.remove();
}

/** How the run before ended is known from the history, which is read a moment later. */
function explain() {
  for (const rule of list.querySelectorAll(".rule[data-before]")) {
    const run = document.querySelector(`#runs [data-run="${CSS.escape(rule.dataset.before)}"]`);
    if (run?.dataset.rule && rule.textContent !== run.dataset.rule) rule.textContent = run.dataset.rule;
  }
}

/** Shows what waits, or says how much that is. */
function follow(on) {
  following = on;
  if (on) show();
  pause.setAttribute("aria-pressed", String(!on));
  const waiting = held.length > 0 ? ` · ${say("held", held.length)}` : "";
  pause.textContent = say(on ? "follow" : "paused") + waiting;
}

export function start() {
  if (!list) return;
  pause.hidden = false;
  follow(true);
  document.addEventListener("fetched", explain);
  pause.addEventListener("click", () => (follow(!following), following && (screen.scrollTop = 0)));
  screen.addEventListener("scroll", () => {
    const end = screen.scrollTop > -8;
    if (end !== following) follow(end);
  }, { passive: true });
}
