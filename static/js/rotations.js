// Sources, collectors and rotations as they change, and the rings of member jobs (crates/web/src/hub/sources.rs, rotations.rs).

import * as board from "./board.js";
import { children, parse } from "./morph.js";

const [sources, rotations] = ["sources", "rotations"].map((what) => document.querySelector(`[data-${what}]`));

/** What to ask the server for. */
export function wanted() {
  if (sources) return { type: "follow", dispatch: true, all: sources.dataset.all !== undefined };
  if (rotations) return { type: "follow", rotations: true };
  return document.querySelector("[data-ring]") && { type: "follow", rings: true };
}

function rings({ rings }) {
  for (const { job, html } of rings) {
    const fresh = parse(html);
    for (const ring of document.querySelectorAll(`[data-job="${CSS.escape(job)}"] [data-ring]`)) children(ring, fresh.cloneNode(true));
  }
}

function dispatch(frame) {
  if (!sources) return;
  board.show(sources, "source", frame);
  if (frame.collectors !== undefined) children(document.querySelector("[data-collectors]"), parse(frame.collectors));
}

export const frames = { dispatch, rotations: (frame) => rotations && board.show(rotations, "rotation", frame), rings };
