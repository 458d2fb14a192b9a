// The order of rows, and the headings between them: one before the first row of each group.

/** A heading for `group`: the one that stands there, or a new one. */
function heading(list, group) {
  const known = [...list.querySelectorAll(":scope > .group")].find((one) => one.textContent === group);
  if (known) return known;
  const fresh = document.createElement("h2");
  fresh.className = "group";
  fresh.textContent = group;
  return fresh;
}

/** Exactly these elements, in this order: those that are gone leave, new ones find their place. */
export function arrange(list, elements) {
  for (const child of [...list.children]) if (!elements.includes(child)) child.remove();
  elements.forEach((element, nth) => {
    if (list.children[nth] !== element) list.insertBefore(element, list.children[nth] ?? null);
  });
}

/** Rows in the order of their keys. `moved` goes alone and keeps the focus, so that no other row moves; only jobs that are in `shown` stay. */
export function sort(list, moved, shown) {
  const rows = [...list.querySelectorAll(":scope > .row")].filter((row) => shown?.has(row.dataset.job) ?? true);
  rows.sort((one, two) => (one.dataset.key < two.dataset.key ? -1 : 1));
  const focused = moved?.contains(document.activeElement) ? document.activeElement : undefined;
  moved?.remove();
  let last = "";
  arrange(list, rows.flatMap((row) => {
    const [before, group] = [last, row.dataset.group ?? ""];
    last = group;
    return group !== "" && group !== before ? [heading(list, group), row] : [row];
  }));
  focused?.focus({ preventScroll: true });
}
