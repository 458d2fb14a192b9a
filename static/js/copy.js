// Buttons that copy a block of commands. Without scripts the block selects itself whole when it is pressed.

async function copy(button) {
  const block = document.getElementById(button.dataset.copy);
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(block.textContent);
    button.textContent = button.dataset.copied;
    setTimeout(() => (button.textContent = label), 2000);
  } catch {
    // Not allowed (plain http on another machine): it stands selected, for the reader's own keys.
    getSelection().selectAllChildren(block);
  }
}

export function start() {
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", () => copy(button));
  }
}
