// Durations that move and instants in the reader's zone. The store's clock counts, never this machine's.

import { duration, say, serverNow, serverZone } from "./words.js";

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

const two = (number) => String(number).padStart(2, "0");
const day = (date) => `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;

function inWords(milliseconds, form) {
  const date = new Date(milliseconds);
  let hour = `${two(date.getHours())}:${two(date.getMinutes())}`;
  if (form !== "minute") hour += `:${two(date.getSeconds())}`;
  if (form === "second") return hour;
  if (form === "day") return `${day(date)} ${hour}`;
  if (day(date) === day(new Date(now()))) return hour;
  if (day(date) === day(new Date(now() - 86400000))) return say("yesterday", hour);
  return `${day(date)} ${hour}`;
}

/** Instants below `root` in this browser's zone; the server wrote them in its own. */
export function localise(root = document) {
  for (const time of root.querySelectorAll("time[data-clock]")) {
    const ms = Number(time.dataset.ms);
    const elsewhere = serverZone === undefined || serverZone !== -new Date(ms).getTimezoneOffset();
    if (elsewhere || time.textContent === "") time.textContent = inWords(ms, time.dataset.clock);
  }
}

export function start() {
  localise();
  setInterval(() => document.hidden || tick(), 500);
  const slide = (strip) => (strip.viewBox.baseVal.x = (now() - strip.dataset.strip) / 1000 - 3600);
  setInterval(() => document.querySelectorAll("[data-strip]").forEach(slide), 20000);
}
