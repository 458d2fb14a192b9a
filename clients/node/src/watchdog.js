// A thread that ends the process at the deadline, also when the event loop is blocked by the work itself. One for all holds.
//
// Each hold shares eight numbers with it (`BigInt64Array`, see `FIELDS` in client.js). It reads the clocks itself and decides nothing
// else: the main thread, if it is awake, has ended the process before.
import { writeSync } from "node:fs";
import { parentPort } from "node:worker_threads";

// Milliseconds. LATE: the main thread comes first, and ends with an exit code. CHANCE: what the work has after a pause. STOP: an order to stop
// is no deadline, and the lease is still held.
const [TICK, LATE, CHANCE, STOP] = [20, 30n, 100n, 500n];
const holds = new Map();

parentPort.on("message", ({ id, what, shared }) => holds.set(id, { what, cell: new BigInt64Array(shared) }));

let before = process.hrtime.bigint() / 1_000_000n;
let paused = 0n;
setInterval(() => {
  const [mono, wall] = [process.hrtime.bigint() / 1_000_000n, BigInt(Date.now())];
  // This thread itself stood still: so did the work, which could not be told before.
  if (mono - before > CHANCE) paused = mono;
  before = mono;
  for (const [id, { what, cell }] of holds) {
    const [ended, byMono, byWall, stopBy] = [0, 1, 2, 3].map((nth) => Atomics.load(cell, nth));
    if (ended) holds.delete(id);
    else if ((mono >= byMono + LATE || wall >= byWall + LATE || mono >= stopBy + STOP) && mono >= paused + CHANCE + LATE) {
      writeSync(2, `soloist: ${what}: the deadline is over, and the work blocks the event loop. This process is killed now, because another may begin.\n`);
      process.kill(process.pid, "SIGKILL");
    }
  }
}, TICK);
