// The line at the top: what the node says is wrong, and what this page knows itself. The title and the icon of the
// tab count what it says.

import { children, parse } from "./morph.js";
import { announce, say } from "./words.js";

const bar = document.querySelector("[data-truth]");
const own = document.querySelector("[data-page-fact]");
const icon = document.querySelector("link[rel=icon]");
const title = document.title.replace(/^\(\d+!\) /, "");

function count() {
  const n = (bar?.childElementCount ?? 0) + (own && !own.hidden ? 1 : 0);
  const words = n > 0 ? `(${n}!) ${title}` : title;
  if (document.title !== words) document.title = words;
  const href = n > 0 ? icon?.dataset.trouble : icon?.dataset.calm;
  if (href && icon.getAttribute("href") !== href) icon.setAttribute("href", href);
}

/** What the node says. */
export function show({ html }) {
  if (!bar) return;
  const fresh = parse(html);
  const told = new Set([...bar.children].map((fact) => fact.dataset.fact));
  children(bar, fresh);
  for (const fact of bar.children) if (!told.has(fact.dataset.fact)) announce(fact.textContent);
  count();
}

/** What this page knows without its node; nothing with an empty text. `over`: only signing in helps. `there`: a node that answers, perhaps. */
export function page(text, over = false, there = undefined) {
  if (!own) return;
  const said = own.querySelector("[data-page-text]");
  if (said.textContent !== text) said.textContent = text;
  own.hidden = text === "";
  own.querySelector("[data-now]").hidden = over;
  const open = own.querySelector("[data-open-at]");
  open.hidden = !there;
  if (there && open.getAttribute("href") !== there.href) [open.href, open.textContent] = [there.href, say("openAt", there.node)];
  const enter = own.querySelector("[data-sign-in]");
  enter.hidden = !over;
  if (over) enter.href = `/login?next=${encodeURIComponent(location.pathname + location.search)}`;
  count();
}

/** What the button "now" does. */
export const onNow = (act) => own?.querySelector("[data-now]").addEventListener("click", act);
