// A board (crates/web/src/hub/board.rs): cards that differ, at most twice a second, and what stands beside them.

import { arrange } from "./groups.js";
import { children, fragment, morph, parse } from "./morph.js";
import { announce } from "./words.js";

const find = (name) => document.querySelector(`[data-${name}]`);

function put(list, { html }) {
  const fresh = fragment(html);
  const old = document.getElementById(fresh.id);
  if (!old) return list.append(fresh);
  if (old.dataset.state !== fresh.dataset.state) announce(fresh.querySelector(".title").textContent.trim());
  morph(old, fresh);
}

/** Shows a frame in `list`, whose cards are called `noun`. */
export function show(list, noun, { whole, rows, totals, more, trouble }) {
  for (const row of rows) put(list, row);
  if (whole) arrange(list, rows.map((row) => document.getElementById(`${noun}-${row[noun]}`)));
  const empty = find(`no-${noun}s`);
  if (empty) empty.hidden = list.childElementCount > 0;
  find("totals").hidden = list.childElementCount === 0;
  children(find("totals"), parse(totals));
  find(`${noun}s-more`).textContent = more;
  if (trouble === "") find("unread")?.remove();
  const notice = find("trouble");
  notice.hidden = trouble === "";
  if (notice.textContent !== trouble) notice.textContent = trouble;
}
