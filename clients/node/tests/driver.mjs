// What the tests of Soloist drive: does a little work under a lease, a turn or tasks, and writes every act down.
//
//     driver.mjs WHAT ADDRESSES TOKEN NAME FILE [MODE]
//
// As clients/python/tests/driver.py says; the library's log is that of NODE_DEBUG=soloist. MODE `block` works without ever letting the event loop go on.
import { openSync, readFileSync, writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import dns from "node:dns";
import { Dead, NotGranted, releaseOnExit, Retry, Soloist } from "../src/index.js";

if (process.env.DRIVER_TWO) {
  dns.lookup = (host, options, done) => {
    const all = ["127.0.0.2", "127.0.0.1"].map((address) => ({ address, family: 4 }));
    return options.all ? done(null, all) : done(null, all[0].address, 4);
  };
}

const [what, addresses, token, name, path, mode = "polite"] = process.argv.slice(2);
const lease = Number(mode) ? Number(mode) * 1000 : undefined;
const [ttl, overrun] = [Number(process.env.DRIVER_TTL ?? 2) * 1000, process.env.DRIVER_OVERRUN];
const client = new Soloist(addresses.split(","), { token, holder: `node-${process.pid}`, overrun });
const out = openSync(path, "a");
const now = () => readFileSync("/proc/uptime", "utf8").split(" ")[0];
const say = (of, at, word) => writeSync(out, `${of} node ${process.pid} ${at} ${word}\n`);

let called = false;
// What is left of a text that was cut inside a pair.
const HALF = "caf\ud83d.csv";

function late(hold) {
  say(hold.token, now(), "overrun");
  called = true;
}

async function work(hold) {
  say(hold.token, now(), "start");
  if (mode === "fail") throw new Error("about to fail");
  if (mode === "dies") throw undefined;
  try {
    for (let number = 0; !called; ) {
      const at = now();
      if (["polite", "exits", "many"].includes(mode)) hold.check();
      if (mode === "exits" && number === 5) process.exit(7);
      if (mode === "closes" && number === 5) return await loop.close();
      number += 1;
      if (mode === "halves" && number > 150) throw new Error(HALF);
      say(hold.token, at, "beat");
      hold.progress(number, 100000, `step ${number}`);
      hold.log(`this is step ${number}`);
      if (mode === "halves") hold.progress(number, 1000, HALF);
      if (mode === "halves") hold.log(`${HALF} ${number}\n${"x".repeat(499)}\u{1f600}`);
      if (mode === "block") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
      else if (mode === "asleep") await sleep(60_000, undefined, { signal: hold.signal });
      else await sleep(20);
    }
    say(hold.token, now(), "ended");
  } finally {
    console.error(`ends: ${hold.reason}`);
  }
}

async function scheduled(tick) {
  const since = Date.now() - tick.due.getTime();
  const params = Object.keys(tick.params).sort().map((name) => `${name}=${tick.params[name]}`);
  say(tick.token, now(), `begin|${tick.name}|${tick.attempt}|${tick.lateMs}|${since}|${params}`);
  if (mode.startsWith("fail-") && tick.attempt <= Number(mode.slice(5))) throw new Error("about to fail");
  try {
    while (mode === "polite") {
      const at = now();
      tick.check();
      say(tick.token, at, "beat");
      await sleep(20);
    }
    await sleep(50, undefined, { signal: tick.signal });
    say(tick.token, now(), "ended");
  } finally {
    console.error(`ends: ${tick.reason}`);
  }
}

async function turns(over) {
  const [rotation, type] = name.split("/");
  while (!over.aborted) {
    const work = async (turn) => {
      for (let nth = 0; nth < 5; nth += 1) {
        const at = now();
        turn.check();
        say(turn.token, at, type);
        await sleep(10);
      }
    };
    await client.turn(rotation, type, work, { wait: 1000, lease }).catch((error) => {
      if (!(error instanceof NotGranted)) throw error;
    });
  }
}

async function handle(task) {
  const { slow, fail = 0, dead } = task.payload ?? {};
  if (slow) await sleep(slow * 1000, undefined, { signal: task.signal });
  task.check();
  if (fail >= task.attempt && task.payload.exit) throw undefined;
  if (fail >= task.attempt) throw new Retry("not yet", 10);
  if (dead) throw new Dead(dead === "half" ? `${"y".repeat(880)}${HALF}\u{1f600}` : "never");
  say(task.token, now(), task.key);
}

async function follow(signal) {
  for await (const frame of client.follow(name, { signal })) {
    console.log(frame.type);
    for (const job of [...(frame.jobs ?? []), ...(frame.type === "job" ? [frame.job] : [])]) say(job.version, now(), job.state);
  }
}

/** Many leases; see clients/python/tests/driver.py. */
async function light(count) {
  const [numbers, leases] = [Array.from({ length: count }, (_, nth) => nth), new Map()];
  const some = async (all, act) => Promise.all(Array.from({ length: 16 }, async () => { for (let nth; (nth = all.shift()) !== undefined; ) await act(nth); }));
  const take = (nth) => new Promise((taken, failed) => {
    const late = (lease) => say(lease.token, now(), `overrun-${nth}`);
    const keep = (lease) => new Promise((give) => {
      leases.set(nth, { lease, give, given: () => given });
      if (count <= 100) {
        say(lease.token, now(), `took-${nth}`);
        lease.signal.addEventListener("abort", () => (say(lease.token, now(), `lost-${nth}`), console.error(`lost ${nth}: ${lease.reason}`)));
      }
      taken();
    });
    const given = client.lease(`${name}-${nth}`, keep, { ttl: ttl * (1 + (nth % 2)), wait: 60_000, onOverrun: late });
    given.catch(failed);
  });
  const give = async (nth) => {
    const { give: end, given } = leases.get(nth);
    leases.delete(nth);
    end();
    await given();
  };
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  say(0, now(), "ready");
  await lines.next();
  await some([...numbers], take);
  say(0, now(), "held");
  for (let line; !(line = await lines.next()).done; ) {
    const [verb, nth] = line.value.split(" ");
    const at = now();
    if (verb === "look") say(0, at, `holds-${[...leases.values()].filter(({ lease }) => lease.held() && !lease.signal.aborted).length}`);
    const storm = async (number, end = performance.now() + nth * 1000) => {
      while (performance.now() < end) await client.lease(`${name}-storm-${number}`, () => {}, { ttl, wait: 60_000 });
    };
    if (verb === "storm") await Promise.all(Array.from({ length: 16 }, (_, number) => storm(number))).then(() => say(0, now(), "stormed"));
    if (verb === "give") await give(Number(nth)).then(() => say(0, now(), `gave-${nth}`));
  }
  await some([...leases.keys()], give);
}

const over = new AbortController();
const closed = what === "light" || new Promise((resolve) => process.stdin.resume().once("end", () => (over.abort(), resolve())));
if (process.env.DRIVER_HANDLER) process.on("SIGTERM", () => (console.error("its own handler"), (process.exitCode = 5), loop.close(), process.stdin.destroy()));
releaseOnExit();
let loop;
if (mode === "many") {
  let done;
  const all = new Promise((resolve) => (done = resolve));
  let count = 0;
  const nth = async () => { if ((count += 1) === 10) done(); await all; };
  await Promise.all(Array.from({ length: 10 }, (_, number) => client.lease(`${name}-${number}`, nth, { ttl })));
}
if (what === "whole") {
  process.stdin.destroy();
  client.runWhileLeader(name, work, { ttl });
} else if (what === "lease") {
  loop = client.runWhileLeader(name, work, { ttl, onOverrun: mode === "callback" ? late : "exit" });
  await closed;
  await loop.close();
} else if (what === "scheduled") {
  loop = client.scheduled(name, scheduled);
  await closed;
  await loop.close();
} else if (what === "collect") {
  const loop = client.collect(name, handle, { parallel: 3, lease });
  await closed;
  await loop.close();
} else if (what === "wait") {
  const began = performance.now();
  const came = await client.lease(name, () => "granted", { wait: 1000 }).catch((error) => error);
  console.error(`waited: ${came.name ?? came} ${((performance.now() - began) / 1000).toFixed(2)} s ${came.message ?? ""}`);
  process.stdin.destroy();
} else if (what === "light") {
  await light(Number(mode));
} else if (what === "turn") await turns(over.signal);
else await follow(over.signal);
