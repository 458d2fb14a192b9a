// Puts pushed fragments in place: rows of the dashboard, the head of a job's page, the line of counters.

import { localise } from "./clock.js";
import { learn } from "./elsewhere.js";
import { sort } from "./groups.js";
import { children, fragment, morph, parse } from "./morph.js";
import { older, put, tell } from "./row.js";

const list = document.querySelector("[data-rows]");
const head = document.querySelector("[data-head]");
const summary = document.querySelector("[data-summary]");

function putHead(row, anyVersion) {
  const old = head?.firstElementChild;
  if (!row.head || head?.dataset.follow !== row.job || (!anyVersion && older(row.version, old))) return;
  const fresh = fragment(row.head);
  const { run, held, state, ticks } = old.dataset;
  tell(state, fresh);
  const changed = run !== fresh.dataset.run || held !== fresh.dataset.held || state !== fresh.dataset.state || ticks !== fresh.dataset.ticks;
  morph(old, fresh);
  if (changed) again();
}

/** The history and the forms of operators are fetched, some seconds apart however often a job runs, without the rest of the page. */
let [waits, last] = [false, 0];
export async function again(parts = ["ticks", "held", "runs", "operate"]) {
  if (waits) return;
  waits = true;
  await new Promise((done) => setTimeout(done, Math.max(0, last + 3000 - Date.now()) + 250 + Math.random() * 250));
  [waits, last] = [false, Date.now()];
  const address = new URL(location.href);
  if (parts.includes("runs")) address.searchParams.set("part", "side");
  const answer = await fetch(address, { headers: { Accept: "text/html", "X-Requested-By": "script" } }).catch(() => undefined);
  if (!answer?.ok || answer.redirected) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const id of parts) {
    const [old, fresh] = [document.getElementById(id), page.getElementById(id)];
    // What could not be read now is not better than what was read before.
    if (!old || !fresh || fresh.dataset.unread !== undefined || old.contains(document.activeElement?.closest("input, select"))) continue;
    localise(fresh);
    morph(old, fresh);
  }
  document.dispatchEvent(new Event("fetched"));
}

const count = (html) => summary && html && children(summary, parse(html));

function snapshot({ epoch, order, rows, summary }) {
  const place = list ?? head;
  const fresh = place?.dataset.epoch !== epoch;
  if (place) place.dataset.epoch = epoch;
  rows.forEach((row) => (put(list, row, fresh), putHead(row, fresh)));
  // Jobs come and go with a configuration that is read again, and with the nodes that define them.
  if (list) sort(list, undefined, new Set(order));
  count(summary);
}

function row(frame) {
  if (put(list, frame, false)) sort(list, document.getElementById(`job-${frame.job}`));
  putHead(frame, false);
}

function gone({ job }) {
  document.getElementById(`job-${job}`)?.remove();
  if (list) sort(list);
}

const hour = ({ job, html }) => document.getElementById(`job-${job}`)?.querySelector(".hour").replaceChildren(fragment(html));

// When a node came, went or changed, and now and then for the heartbeats.
const look = () => document.querySelector("[data-nodes]") && again(["nodes"]);
const nodes = (frame) => (learn(frame), look());

export const frames = { snapshot, row, gone, hour, nodes, summary: ({ html }) => count(html) };

export function start() {
  setInterval(() => document.hidden || look(), 5000);
  if (document.getElementById("due")) setInterval(() => document.hidden || again(["due"]), 60000);
}
