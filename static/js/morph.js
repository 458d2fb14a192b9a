// Makes an element equal to a new rendering by changing only what differs (../vendor/idiomorph.esm.js): focus, selection and
// what somebody is typing stay, and a bar moves instead of jumping. Markup comes only from the server's own templates.

import { Idiomorph } from "../vendor/idiomorph.esm.js";
import { localise, tick } from "./clock.js";
import { csrf } from "./words.js";

export function parse(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content;
}

/** A rendering for this reader: with the session's secret, in their zone, countdowns running. */
export function fragment(html) {
  const content = parse(html);
  for (const field of content.querySelectorAll("input[name=csrf]")) field.setAttribute("value", csrf());
  localise(content);
  tick(content);
  return content.firstElementChild;
}

const callbacks = {
  // What is ticked stays ticked, a reason that is being written stays written. A ring has frames of its own (rotations.js): the row around it comes without.
  beforeNodeMorphed: (old, fresh) => old.type !== "checkbox" && !["reason", "until", "lasting"].includes(old.name) && (old.dataset?.ring === undefined || fresh.hasChildNodes()),
  // What somebody has opened stays open.
  beforeAttributeUpdated: (name, _, act) => name !== "open" || act !== "remove",
  // What a script added and wants to keep (an error beside a switch) was never in a rendering.
  beforeNodeRemoved: (old) => old.dataset?.keep === undefined,
};

export function morph(from, to) {
  if (!from.isEqualNode(to)) Idiomorph.morph(from, to, { morphStyle: "outerHTML", ignoreActiveValue: true, callbacks });
}

/** `to` is a fragment: its children become those of `from`. */
export function children(from, to) {
  localise(to);
  tick(to);
  Idiomorph.morph(from, to, { morphStyle: "innerHTML", ignoreActiveValue: true, callbacks });
}
