// Sources and collectors as they change (src/web/hub/sources.rs).

import * as board from "./board.js";
import { children, parse } from "./morph.js";

const list = document.querySelector("[data-sources]");

/** What to ask the server for. */
export const wanted = () => list && { type: "follow", dispatch: true, all: list.dataset.all !== undefined };

export function show(frame) {
  if (!list) return;
  board.show(list, "source", frame);
  if (frame.collectors !== undefined) children(document.querySelector("[data-collectors]"), parse(frame.collectors));
}
