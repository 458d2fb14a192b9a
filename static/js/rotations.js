// Rotations as they change: cards that differ, and the rings of member jobs (src/web/hub/rotations.rs).

import { correct, localise, tick } from "./clock.js";
import { children, morph, parse } from "./morph.js";
import { arrange, fragment } from "./rows.js";
import { announce } from "./words.js";

const list = document.querySelector("[data-rotations]");
const find = (name) => document.querySelector(`[data-${name}]`);

/** What to ask the server for. */
export function wanted() {
  if (list) return { type: "follow", rotations: true };
  return find("ring") && { type: "follow", rings: true };
}

function put({ html }) {
  const fresh = fragment(html);
  const old = document.getElementById(fresh.id);
  if (!old) return list.append(fresh);
  if (old.dataset.state !== fresh.dataset.state) announce(fresh.querySelector(".title").textContent.trim());
  morph(old, fresh);
}

function show({ at, whole, rows, totals, more, trouble }) {
  if (!list) return;
  correct(at);
  rows.forEach(put);
  if (whole) arrange(list, rows.map(({ rotation }) => `rotation-${rotation}`));
  const empty = find("no-rotations");
  if (empty) empty.hidden = list.childElementCount > 0;
  find("totals").hidden = list.childElementCount === 0;
  children(find("totals"), parse(totals));
  find("rotations-more").textContent = more;
  if (trouble === "") find("unread")?.remove();
  const notice = find("trouble");
  notice.hidden = trouble === "";
  if (notice.textContent !== trouble) notice.textContent = trouble;
}

function rings({ at, rings }) {
  correct(at);
  for (const { job, html } of rings) {
    const fresh = parse(html);
    localise(fresh);
    tick(fresh);
    for (const ring of document.querySelectorAll(`[data-job="${CSS.escape(job)}"] [data-ring]`)) children(ring, fresh.cloneNode(true));
  }
}

export const frames = { rotations: show, rings };
