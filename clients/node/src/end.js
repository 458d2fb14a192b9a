// The end of a process whose deadline is over: the reason on standard error, as far as that takes no waiting, and then the end.
//
// Who reads standard error may stand still, and then a write of Node waits for ever, in whatever thread it is made; and an exit waits for
// every thread. So nothing is written here that could wait, where that can be had, and nothing waits for it where it cannot.
import { spawn } from "node:child_process";
import { constants, fstatSync, openSync, write, writeSync } from "node:fs";
import { setFlagsFromString } from "node:v8";

// Milliseconds for what cannot be written without waiting: to a socket, a terminal, a file.
const PATIENCE = 15;

/** Ends the process by SIGKILL. The first process of a container has no such signal from inside: a trap ends that one. */
export function kill() {
  process.kill(process.pid, "SIGKILL");
  if (process.pid !== 1) return;
  setFlagsFromString("--allow-natives-syntax");
  new Function("%SystemBreak()")();
}

/** Ends the process with `code`. Should a thread of the program stand in a write, the exit waits for it: a child kills us then. */
export function exit(code) {
  const [script, end] = [`sleep 1; grep -q "^PPid:.${process.pid}$" /proc/$$/status && kill -9 ${process.pid}`, () => process.exit(code)];
  try { spawn("sh", ["-c", script], { stdio: "ignore" }).on("error", () => {}); } finally { end(); }
}

/** Writes `words`, if they can be written at once, and ends by `end`, or else by SIGKILL. */
export function lastWords(words, end) {
  try {
    if (fstatSync(2).isFIFO()) {
      // Opened anew, a pipe is written to without waiting, and nobody else's writes to it change.
      writeSync(openSync("/proc/self/fd/2", constants.O_WRONLY | constants.O_NONBLOCK), words);
      return end();
    }
  } catch (error) {
    if (error.code === "EAGAIN") return end(); // full: nobody reads it
  }
  setTimeout(kill, PATIENCE);
  write(2, words, end);
}
