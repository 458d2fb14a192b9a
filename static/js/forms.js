// Buttons that copy a block of commands (without scripts it selects itself whole), and a word at once when two new passwords differ.

import { say } from "./words.js";

async function copy(button) {
  const block = document.getElementById(button.dataset.copy);
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(block.textContent);
    button.textContent = button.dataset.copied;
    setTimeout(() => (button.textContent = label), 2000);
  } catch {
    // Not allowed (plain http on another machine): it stands selected, for the reader's own keys.
    getSelection().selectAllChildren(block);
  }
}

export function start() {
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", () => copy(button));
  }
  const { password, again } = document.querySelector("[data-passwords]")?.elements ?? {};
  const compare = () => again.setCustomValidity(again.value === password.value ? "" : say("differs"));
  if (again) for (const field of [password, again]) field.addEventListener("input", compare);
}
