// Forms are read in the zone in which the page says instants. Where the account has chosen none, that is the zone of this browser: labels
// say it, and what was typed goes out as an instant. Without scripts the zone of the node counts, and the labels say that one.

import { readerZone } from "./words.js";

const WALL = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?$/;
const INSTANT = /^\d{4}-\d\d-\d\dT.*Z$/;
const format = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "short" }).format;

/** How far the clocks of this browser are ahead: `UTC+08:00`. */
function offset() {
  const minutes = -new Date().getTimezoneOffset();
  const two = (n) => String(Math.trunc(Math.abs(n))).padStart(2, "0");
  return `UTC${minutes < 0 ? "-" : "+"}${two(minutes / 60)}:${two(minutes % 60)}`;
}

/** Labels and values below `root`, which come in the zone of the node. */
export function fields(root) {
  if (readerZone) return;
  for (const said of root.querySelectorAll("[data-zoned]")) {
    said.textContent = said.textContent.replace(said.dataset.zoned, offset());
    said.dataset.zoned = offset();
  }
  for (const field of root.querySelectorAll("[data-wall]")) {
    const at = field.dataset.at || field.getAttribute("value");
    if (INSTANT.test(at)) field.setAttribute("value", format(new Date(at)).replace(" ", "T"));
  }
}

/** Eight in the morning of the next day. */
function morning() {
  const at = new Date();
  at.setDate(at.getDate() + 1);
  at.setHours(8, 0, 0, 0);
  return at;
}

function sent({ target, formData }) {
  if (readerZone) return;
  for (const { name } of target.querySelectorAll("[data-wall]")) {
    const typed = String(formData.get(name) ?? "").trim();
    const at = new Date(typed.replace(" ", "T"));
    if (WALL.test(typed) && !isNaN(at)) formData.set(name, at.toISOString());
  }
  if (formData.get("lasting") === "morning" && !formData.get("until")) formData.set("until", morning().toISOString());
}

export function start() {
  document.addEventListener("formdata", sent);
}
