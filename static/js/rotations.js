// Rotations as they change: their cards, and the rings of member jobs (src/web/hub/rotations.rs).

import * as board from "./board.js";
import { correct, localise, tick } from "./clock.js";
import { children, parse } from "./morph.js";

const list = document.querySelector("[data-rotations]");

/** What to ask the server for. */
export function wanted() {
  if (list) return { type: "follow", rotations: true };
  return document.querySelector("[data-ring]") && { type: "follow", rings: true };
}

function rings({ at, rings }) {
  correct(at);
  for (const { job, html } of rings) {
    const fresh = parse(html);
    localise(fresh);
    tick(fresh);
    for (const ring of document.querySelectorAll(`[data-job="${CSS.escape(job)}"] [data-ring]`)) children(ring, fresh.cloneNode(true));
  }
}

export const frames = { rotations: (frame) => list && board.show(list, "rotation", frame), rings };
