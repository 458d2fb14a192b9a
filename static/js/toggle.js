// A switch is a form; this sends it without leaving the page. What it changed arrives by the socket as for
// everybody else; without one the page is loaded again.

import { ask } from "./confirm.js";
import { again } from "./rows.js";
import { csrf, say } from "./words.js";

async function send(form, button, confirmed) {
  const body = new URLSearchParams(new FormData(form, button));
  if (confirmed) body.set("confirm", "yes");
  const headers = { Accept: "application/json", "X-CSRF-Token": csrf() };
  const answer = await fetch(button?.getAttribute("formaction") ?? form.action, { method: "POST", headers, body, redirect: "manual" });
  if (answer.type === "opaqueredirect") throw new Error(say("signedOut"));
  if (!answer.headers.get("Content-Type")?.includes("json")) throw new Error(await detail(answer));
  const said = await answer.json();
  if (answer.status === 409 && said.confirm) return (await ask(said.confirm, said)) && send(form, button, true);
  if (!answer.ok) throw new Error(said.detail ?? `${answer.status} ${answer.statusText}`);
  return true;
}

/** What an error page says. */
async function detail(answer) {
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  return page.querySelector("[data-detail]")?.textContent ?? `${answer.status} ${answer.statusText}`;
}

function complain(place, text) {
  place.querySelector(".failure")?.remove();
  if (!text) return;
  const failure = Object.assign(document.createElement("p"), { className: "failure", textContent: text, role: "alert" });
  failure.dataset.keep = "";
  place.append(failure);
}

async function submit(event) {
  const form = event.target.closest("form[data-toggle]");
  if (!form) return;
  event.preventDefault();
  // All rows share one form; the button knows which row it is.
  const button = event.submitter;
  const place = button?.closest(".row, .head .who") ?? form;
  if ("busy" in place.dataset) return;
  place.dataset.busy = "";
  complain(place);
  if (form.popover) form.hidePopover();
  try {
    const last = button?.dataset.last ?? form.dataset.last;
    if (last && !(await ask(last))) return;
    const changed = await send(form, button, Boolean(last));
    const live = /live|connected/.test(document.querySelector(".mark")?.dataset.mark);
    // What it was opened from leaves with the switch.
    if (changed && form.popover) form.reset(), place.querySelector(".switch").focus();
    if (changed && !live) await again([place.closest("[id]").id]);
  } catch (error) {
    complain(place, error.message);
  } finally {
    delete place.dataset.busy;
  }
}

export function start() {
  document.addEventListener("submit", submit);
  document.addEventListener("toggle", ({ target, newState }) => {
    if (!target.popover) return;
    if (newState === "open") target.querySelector("select, input:not([type=hidden])")?.focus();
    // From a dialog over a menu the browser leads nowhere.
    else if (target.contains(document.activeElement)) document.querySelector(`[popovertarget="${target.id}"]`)?.focus();
  }, true);
}
