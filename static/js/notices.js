// A notice of the browser when a job begins to need somebody while nobody looks at the page; off until it is switched on in /account.

import { say } from "./words.js";

const box = document.querySelector("[data-notices]");
const key = `notices-${document.body.dataset.user}`;
export const on = () => globalThis.Notification?.permission === "granted" && localStorage.getItem(key) === "on";

export function tell(job, title) {
  if (document.hidden && on()) new Notification(title, { body: say("needsYou"), tag: job });
}

export function start() {
  if (!box || !globalThis.Notification) return;
  const show = () => box.querySelector(".switch").setAttribute("aria-checked", on());
  box.hidden = false;
  box.querySelector(".switch").addEventListener("click", async () => {
    localStorage.setItem(key, !on() && (await Notification.requestPermission()) === "granted" ? "on" : "off");
    show();
  });
  show();
}
