// j and k go from job to job, x presses the switch of the one in focus, Enter opens it (it is a link), / searches, ? shows all this.

const typing = (element) => element.closest("input, select, textarea, dialog, [contenteditable]");

function move(step) {
  const rows = [...document.querySelectorAll("[data-rows] > .row")];
  if (rows.length === 0) return;
  const here = rows.indexOf(document.activeElement.closest(".row"));
  const next = here < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, here + step));
  rows[next].querySelector(".title a").focus();
}

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  if (event.key === "j") move(1);
  else if (event.key === "k") move(-1);
  else if (event.key === "x") document.activeElement.closest(".row, .head")?.querySelector(".switch")?.click();
  else if (event.key === "/") document.querySelector("[data-search]")?.focus();
  else if (event.key === "?") document.querySelector("[data-keys]")?.showModal();
  else return;
  event.preventDefault();
}

export function start() {
  document.addEventListener("keydown", key);
}
