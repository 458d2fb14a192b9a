// Where else this page can be read when its node does not answer: at living nodes that browsers reach under another address. The node says so
// beforehand; only addresses that nodes told are taken.

let others = [];
try {
  others = JSON.parse(document.body.dataset.others ?? "[]");
} catch { /* None, then. */ }

/** What the node says of others. */
export function learn({ others: told }) {
  if (told) others = told;
}

/** Another living node, and where it shows this page; undefined: there is none. */
export function another() {
  const [first] = others;
  return first && { node: first[0], href: new URL(location.pathname + location.search, first[1]).href };
}
