// Says at once that two new passwords differ; the server checks it too.

import { say } from "./words.js";

export function start() {
  const form = document.querySelector("[data-passwords]");
  const { password, again } = form?.elements ?? {};
  if (!password || !again) return;
  const compare = () => again.setCustomValidity(again.value === password.value ? "" : say("differs"));
  password.addEventListener("input", compare);
  again.addEventListener("input", compare);
}
