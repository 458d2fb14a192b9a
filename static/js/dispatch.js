// Sources and collectors as they change: rows that differ, at most twice a second (src/web/hub/dispatch.rs).

import { correct } from "./clock.js";
import { children, morph, parse } from "./morph.js";
import { arrange, fragment } from "./rows.js";
import { announce } from "./words.js";

const list = document.querySelector("[data-sources]");
const find = (name) => document.querySelector(`[data-${name}]`);

/** What to ask the server for. */
export const wanted = () => list && { type: "follow", dispatch: true, all: list.dataset.all !== undefined };

function put({ html }) {
  const fresh = fragment(html);
  const old = document.getElementById(fresh.id);
  if (!old) return list.append(fresh);
  if (old.dataset.state !== fresh.dataset.state) announce(fresh.querySelector(".title").textContent.trim());
  morph(old, fresh);
}

export function show({ at, whole, rows, totals, collectors, more, trouble }) {
  if (!list) return;
  correct(at);
  rows.forEach(put);
  if (whole) arrange(list, rows.map(({ source }) => `source-${source}`));
  const empty = find("no-sources");
  if (empty) empty.hidden = list.childElementCount > 0;
  find("totals").hidden = list.childElementCount === 0;
  children(find("totals"), parse(totals));
  if (collectors !== undefined) children(find("collectors"), parse(collectors));
  find("sources-more").textContent = more;
  if (trouble === "") find("unread")?.remove();
  const notice = find("trouble");
  notice.hidden = trouble === "";
  if (notice.textContent !== trouble) notice.textContent = trouble;
}
