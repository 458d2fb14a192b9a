// Durations that move and instants in the reader's zone. The store's clock counts, never this machine's.

import { duration, readerZone, say, serverNow } from "./words.js";
import { fields } from "./zone.js";

let offset = serverNow === undefined ? 0 : serverNow - Date.now();

/** Corrects the difference to the store's clock; `at` is RFC 3339 or milliseconds. */
export function correct(at) {
  const told = typeof at === "number" ? at : Date.parse(at);
  if (Number.isFinite(told)) offset = told - Date.now();
}

export const now = () => Date.now() + offset;

function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function tick(root = document) {
  const at = now();
  for (const element of root.querySelectorAll("[data-until]")) {
    write(element, duration(Number(element.dataset.until) - at + 999));
  }
  for (const element of root.querySelectorAll("[data-since]")) {
    write(element, duration(at - Number(element.dataset.since)));
  }
}

/** Writes `2026-05-04 09:12:03` in the reader's zone: the one chosen in the account, else that of this browser. */
const wall = (timeZone) => new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "medium" }).format;
let format = wall();
try {
  if (readerZone) format = wall(readerZone);
} catch { /* This browser does not know it. */ }

function inWords(milliseconds, form) {
  const [day, time] = format(milliseconds).split(" ");
  const hour = form === "minute" ? time.slice(0, 5) : time;
  if (form === "second") return hour;
  const isOn = (at) => form !== "day" && format(at).startsWith(day);
  if (isOn(now())) return hour;
  return isOn(now() - 86400000) ? say("yesterday", hour) : `${day} ${hour}`;
}

/** Instants and forms below `root` in the reader's zone; fragments come in that of the server. */
export function localise(root = document) {
  fields(root);
  for (const time of root.querySelectorAll("time[data-clock]")) write(time, inWords(Number(time.dataset.ms), time.dataset.clock));
}

export function start() {
  localise();
  setInterval(() => document.hidden || tick(), 500);
  const slide = (strip) => (strip.viewBox.baseVal.x = (now() - strip.dataset.strip) / 1000 - 3600);
  setInterval(() => document.querySelectorAll("[data-strip]").forEach(slide), 20000);
}
