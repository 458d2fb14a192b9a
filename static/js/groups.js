// The headings between rows: one before the first row of each group.

/** A heading for `group`: the one that stands there, or a new one. */
function heading(list, group) {
  const known = [...list.querySelectorAll(":scope > .group")].find((one) => one.textContent === group);
  if (known) return known;
  const fresh = document.createElement("h2");
  fresh.className = "group";
  fresh.textContent = group;
  return fresh;
}

/** `rows` in their order, with the headings between them. */
export function headed(list, rows) {
  let last = "";
  return rows.flatMap((row) => {
    const [before, group] = [last, row.dataset.group ?? ""];
    last = group;
    return group !== "" && group !== before ? [heading(list, group), row] : [row];
  });
}
