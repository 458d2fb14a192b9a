// "You are the last: this stops it": asked before the switch is sent. Without scripts the server asks.

const dialog = document.querySelector("[data-confirm]");

export function ask(text) {
  dialog.querySelector("[data-confirm-text]").textContent = text;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((done) => {
    dialog.addEventListener("close", () => done(dialog.returnValue === "yes"), { once: true });
  });
}
