// The theme switch: changes at once and remembers in the background. The first press always changes what is seen.

const root = document.documentElement;
const NEXT = { dark: "light", light: "system", system: "dark" };

function submit(event) {
  event.preventDefault();
  const form = event.currentTarget;
  const button = form.elements.theme;
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  let theme = button.value;
  // From "as the system" on a dark system, "dark" would change nothing.
  if (root.dataset.theme === "system" && dark) theme = "light";
  if (root.dataset.theme === "dark" && !dark) theme = "system";
  root.dataset.theme = theme;
  button.value = NEXT[theme];
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
