// A thread that ends the process at the deadline, also when the event loop is blocked by the work itself, or by a write that nobody reads.
// One for all holds: the main thread shows it the end that comes first (see keep.js). It reads the clocks itself and decides nothing
// else: the main thread, if it is awake, has ended the process before.
import { parentPort } from "node:worker_threads";
import { kill, lastWords } from "./end.js";

// Milliseconds. TICK: a timer stands still with a suspended machine. EARLY: before the deadline, for the end itself takes time. CHANCE: what the work
// has after a pause. LATE: the main thread comes first, and ends with an exit code.
const [TICK, EARLY, CHANCE, LATE, FAR] = [50, 5n, 100n, 30n, 2n ** 62n];
let [cell, words, timer, before, paused] = [undefined, undefined, undefined, 0n, 0n];

parentPort.on("message", (said) => {
  if (said.cell) ({ cell, words } = said);
  before = 0n;
  look();
});

const clocks = () => [process.hrtime.bigint() / 1_000_000n, BigInt(Date.now())];

function left() {
  const [mono, wall] = clocks().map((clock, nth) => Atomics.load(cell, nth) - clock);
  return (mono < wall ? mono : wall) - EARLY;
}

function look() {
  clearTimeout(timer);
  const [mono] = clocks();
  // This thread itself stood still: so did the work, which could not be told before.
  if (before && mono - before > BigInt(TICK) + CHANCE) paused = mono;
  before = mono;
  // Twice: another may come first meanwhile.
  if (left() <= 0n && mono >= paused + CHANCE + LATE && left() <= 0n) {
    const what = Buffer.from(words).toString().replace(/\0.*/s, "");
    return lastWords(`soloist: ${what}: the deadline is over, and the work blocks the event loop. This process is killed now, because another may begin.\n`, kill);
  }
  if (Atomics.load(cell, 0) === FAR) Atomics.store(cell, 2, 1n);
  // Else it sleeps until there is something.
  if (Atomics.load(cell, 0) !== FAR) timer = setTimeout(look, Math.max(1, Math.min(TICK, Number(left()))));
}
parentPort.postMessage("here");
