// Makes an element equal to a new rendering by changing only what differs: focus, selection and what somebody is
// typing stay, and a bar moves instead of jumping. Markup comes only from the server's own templates.

export function parse(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content;
}

function attributes(from, to) {
  for (const { name } of [...from.attributes]) {
    // What somebody has opened stays open.
    if (!to.hasAttribute(name) && name !== "open") from.removeAttribute(name);
  }
  for (const { name, value } of to.attributes) {
    if (from.getAttribute(name) !== value) from.setAttribute(name, value);
  }
}

export function morph(from, to) {
  if (from.isEqualNode(to)) return;
  const alike = from.nodeType === to.nodeType && from.nodeName === to.nodeName;
  if (!alike || (from.id ?? "") !== (to.id ?? "")) return from.replaceWith(to);
  if (from.nodeType !== Node.ELEMENT_NODE) {
    from.nodeValue = to.nodeValue;
    return;
  }
  attributes(from, to);
  // A ring has frames of its own (rotations.js): the row around it comes without.
  if (from.dataset.ring === undefined) children(from, to);
}

/** Children by position: our fragments have a fixed shape. */
export function children(from, to) {
  const before = [...from.childNodes];
  const after = [...to.childNodes];
  after.forEach((child, nth) => {
    if (nth < before.length) morph(before[nth], child);
    else from.append(child);
  });
  // What a script added and wants to keep (an error beside a switch) was never in a rendering.
  before.slice(after.length).forEach((child) => child.dataset?.keep === undefined && child.remove());
}
