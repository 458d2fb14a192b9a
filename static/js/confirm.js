// Asked before something is stopped: "you are the last", or what the server asks back. Without scripts it is a page.

const dialog = document.querySelector("[data-confirm]");
const before = new Map();

function write(css, text) {
  const element = dialog.querySelector(css);
  if (!before.has(css)) before.set(css, element.textContent);
  element.textContent = text ?? before.get(css);
}

/** `text` is the question; `title`, `yes` and `no` replace the words for the last participant. */
export function ask(text, { title, yes, no } = {}) {
  write("[data-confirm-text]", text);
  write("h2", title);
  write("[value=yes]", yes);
  write("[value=no]", no);
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((done) => {
    dialog.addEventListener("close", () => done(dialog.returnValue === "yes"), { once: true });
  });
}
