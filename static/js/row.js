// One row of the dashboard: new, what changed of it, and how far its run is.

import { fragment, morph } from "./morph.js";
import { tell as notice } from "./notices.js";
import { announce, say } from "./words.js";

/** An older picture never replaces a newer one; the same version may look different as time passes. */
export const older = (version, element) => element && version < Number(element.dataset.version);

const find = (job) => document.getElementById(`job-${job}`);

export function tell(before, after) {
  if (before !== after.dataset.state) announce(after.querySelector(".title").textContent.trim());
}

/** Whether the row stands somewhere else from now on. `html` is all of it, `now` what is otherwise. */
export function put(list, { job, version, state, mine, key, under, needs, html, now }, anyVersion) {
  const old = find(job);
  if (!list || !(html || (now && old)) || (!anyVersion && older(version, old))) return false;
  const before = { ...old?.dataset };
  if (!old) list.append(fragment(html));
  else morph(html ? old : old.querySelector(".now"), fragment(html ?? now));
  const row = find(job);
  Object.assign(row.dataset, { version, state, key });
  if (needs && before.needs === undefined && !anyVersion) notice(job, row.querySelector(".title a").textContent);
  if (needs) row.dataset.needs = "";
  else delete row.dataset.needs;
  if (under) row.dataset.group = under;
  else delete row.dataset.group;
  const button = row.querySelector(".switch");
  button.setAttribute("aria-checked", mine);
  button.value = !mine;
  tell(before.state, row);
  return before.key !== key || before.group !== row.dataset.group;
}

export function moved({ job, version, said, done, total, note }) {
  const row = find(job);
  if (!row || older(version, row)) return;
  row.dataset.version = version;
  const since = row.querySelector(".evidence [data-since]");
  if (since && said) since.dataset.since = said;
  const bar = row.querySelector("progress");
  if (!bar || total === undefined) return;
  bar.max = Math.max(total, 1);
  bar.value = Math.min(done, total);
  row.querySelector(".figures").textContent = say("progress", done, total);
  row.querySelector(".note").textContent = note;
}
