// Puts pushed fragments in place: rows of the dashboard, the head of a job's page, the line of counters.

import { children, morph, parse } from "./morph.js";
import { localise, tick } from "./clock.js";
import { headed } from "./groups.js";
import { announce, csrf } from "./words.js";

const list = document.querySelector("[data-rows]");
const head = document.querySelector("[data-head]");
const summary = document.querySelector("[data-summary]");

/** A rendering for this reader: with the session's secret, in their zone, countdowns running. */
export function fragment(html) {
  const content = parse(html);
  for (const field of content.querySelectorAll("input[name=csrf]")) {
    field.setAttribute("value", csrf());
  }
  localise(content);
  tick(content);
  return content.firstElementChild;
}

/** All rows of a list, in order: those that are gone leave, new ones find their place. */
export function arrange(list, ids, around = (rows) => rows) {
  const rows = around(ids.map((id) => document.getElementById(id)));
  for (const row of [...list.children]) if (!rows.includes(row)) row.remove();
  rows.forEach((row, nth) => {
    if (list.children[nth] !== row) list.insertBefore(row, list.children[nth] ?? null);
  });
}

/** An older picture never replaces a newer one; the same version may look different as time passes. */
const older = (version, element) => element && version < Number(element.dataset.version);

function tell(before, after) {
  if (before?.dataset.state === after.dataset.state) return;
  announce(after.querySelector(".title").textContent.trim());
}

function put(row, anyVersion) {
  const old = document.getElementById(`job-${row.job}`);
  if (!list || (!anyVersion && older(row.version, old))) return;
  const fresh = fragment(row.html);
  tell(old, fresh);
  if (old) morph(old, fresh);
  else list.append(fresh);
}

function putHead(row, anyVersion) {
  const old = head?.firstElementChild;
  if (!row.head || head?.dataset.follow !== row.job || (!anyVersion && older(row.version, old))) return;
  const fresh = fragment(row.head);
  const { run, held, state } = old.dataset;
  tell(old, fresh);
  const changed = run !== fresh.dataset.run || held !== fresh.dataset.held || state !== fresh.dataset.state;
  morph(old, fresh);
  if (changed) again();
}

/** The history and the forms of operators are fetched, some seconds apart however often a job runs, without the rest of the page. */
let [waits, last] = [false, 0];
export async function again(parts = ["held", "runs", "operate"]) {
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

function count(html) {
  if (summary && html !== undefined) children(summary, parse(html));
}

export function snapshot({ epoch, rows, summary }) {
  const place = list ?? head;
  const fresh = place?.dataset.epoch !== epoch;
  if (place) place.dataset.epoch = epoch;
  rows.forEach((row) => (put(row, fresh), putHead(row, fresh)));
  // Jobs come and go with a configuration that is read again, and with the nodes that define them.
  if (list) arrange(list, rows.map(({ job }) => `job-${job}`), (rows) => headed(list, rows));
  count(summary);
}

export function row(frame) {
  put(frame, false);
  putHead(frame, false);
  count(frame.summary);
}
