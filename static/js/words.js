// Words that scripts say, chosen by the server in the reader's language; "#", "#1" and "#2" stand for values.

const meta = (name) => document.querySelector(`meta[name=${name}]`)?.content ?? "";

const known = JSON.parse(meta("words") || "{}");

export const csrf = () => meta("csrf");
export const serverNow = Number(meta("now")) || undefined;
export const readerZone = meta("zone");

export function say(id, a = "", b = "") {
  return (known[id] ?? id).replace("#1", a).replace("#2", b).replace("#", a);
}

/** A duration in at most two units, as crates/view/src/words/moment.rs says it. */
export function duration(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  if (seconds < 60) return say("seconds", seconds);
  if (seconds < 3600) return say("minutes", Math.floor(seconds / 60));
  if (seconds < 86400) return say("hours", Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60);
  return say("days", Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24);
}

/** Tells those who hear the page, at most once a second and only the newest. */
let waiting;
export function announce(text) {
  const told = waiting !== undefined;
  waiting = text;
  if (told) return;
  setTimeout(() => {
    const status = document.querySelector("[data-status]");
    if (status) status.textContent = waiting;
    waiting = undefined;
  }, 1000);
}
