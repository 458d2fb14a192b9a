// The theme switch: changes at once and remembers in the background. Every press changes what is seen, and what is
// seen anyway is remembered as "as the system".

import { say } from "./words.js";

const root = document.documentElement;

function submit(event) {
  event.preventDefault();
  const form = event.currentTarget;
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const seen = root.dataset.theme === "system" ? system : root.dataset.theme;
  const wanted = seen === "dark" ? "light" : "dark";
  const theme = wanted === system ? "system" : wanted;
  root.dataset.theme = theme;
  const button = form.elements.theme;
  button.title = say(`theme-${theme}`);
  button.setAttribute("aria-label", button.title);
  const body = new URLSearchParams(new FormData(form));
  body.set("theme", theme);
  fetch(form.action, { method: "POST", body, redirect: "manual" }).catch(() => form.submit());
}

export function start() {
  document.querySelector("[data-theme-switch]")?.addEventListener("submit", submit);
  const menu = document.querySelector("[data-menu]");
  document.addEventListener("click", ({ target }) => menu && !menu.contains(target) && (menu.open = false));
  menu?.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape") return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
}
