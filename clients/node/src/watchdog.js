// A thread that ends the process at the deadline, also when the event loop is blocked by the work itself, or by a write that nobody reads.
// One for all holds.
//
// Each hold shares four numbers with it (`BigInt64Array`, see `FIELDS` in client.js). It reads the clocks itself and decides nothing
// else: the main thread, if it is awake, has ended the process before.
import { parentPort } from "node:worker_threads";
import { kill, lastWords } from "./end.js";

// Milliseconds. EARLY: before the deadline, for the end itself takes time. CHANCE: what the work has after a pause. LATE: the main thread comes
// first, and ends with an exit code. STOP: an order to stop is no deadline, and the lease is still held.
const [TICK, EARLY, CHANCE, LATE, STOP] = [20, 5n, 100n, 30n, 500n];
const holds = new Map();

parentPort.on("message", ({ id, what, shared }) => holds.set(id, { what, cell: new BigInt64Array(shared) }));

const clocks = () => [process.hrtime.bigint() / 1_000_000n, BigInt(Date.now())];
const least = (...numbers) => numbers.reduce((one, other) => (one < other ? one : other));
let [before] = clocks();
let paused = -CHANCE - LATE;

function look() {
  const [mono, wall] = clocks();
  // This thread itself stood still: so did the work, which could not be told before.
  if (mono - before > CHANCE) paused = mono;
  before = mono;
  let next = BigInt(TICK);
  for (const [id, { what, cell }] of holds) {
    const [ended, byMono, byWall, stopBy] = [0, 1, 2, 3].map((nth) => Atomics.load(cell, nth));
    const left = least(byMono - mono - EARLY, byWall - wall - EARLY, stopBy + STOP - mono);
    if (ended) holds.delete(id);
    else if (left <= 0n && mono >= paused + CHANCE + LATE) {
      return lastWords(`soloist: ${what}: the deadline is over, and the work blocks the event loop. This process is killed now, because another may begin.\n`, kill);
    } else if (left > 0n) next = least(next, left);
  }
  setTimeout(look, Number(next));
}
look();
parentPort.postMessage("here");
