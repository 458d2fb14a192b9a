// Keeps everything that this process holds, whatever its number: renewals, orders to stop, deadlines.
//
// | what | does | waits for |
// | --- | --- | --- |
// | renewals | renews leases that are due, those of one client by one call | the nodes, by a connection of its own |
// | extensions | extends tasks and turns, each by a call, so that many of them keep no lease waiting | the nodes, by a connection of its own |
// | stops | waits at a node for an order to stop; only jobs have such orders, and it sleeps while none is held | the nodes, by a connection of its own |
// | deadlines | tells the work to stop, and ends the process; watchdog.js does it while the event loop is blocked | nobody |
//
// Each sleeps until something is due. All times are in milliseconds.
import { between, cutting, instant, Refused, Unreachable, wires } from "./line.js";

// Leases in one call: a node takes 1,000.
const MANY = 500;
// TICK: a timer stands still with a suspended machine, so the clocks are read this often. POLL: so long a call waits for an order to stop.
// AT_MOST: not more often is waited for it, and asked for what a node left out.
export const [TICK, POLL, AT_MOST] = [100, 1500, 500];
const RENEWED = { leases: Array.isArray };

/** What is held: `_due` is when its next renewal is sent, `_look` does what its deadline asks for and says in how long to look again. */
export const held = new Set();

// What the watchdog sees, so that a hold costs it no message: what of all that may be killed for ends first, by both clocks; whether the watchdog
// sleeps; and what it is. STOP: an order to stop is no deadline, and the lease is still held.
const [FAR, STOP] = [2n ** 62n, 500];
const [cell, words] = [new BigInt64Array(new SharedArrayBuffer(24)).fill(FAR), new Uint8Array(new SharedArrayBuffer(256))];
let first, watchdog;

export const showTo = (worker) => (watchdog = worker).postMessage({ cell, words });

/** Something has changed of its end. */
export function show(hold) {
  const end = (one) => (one ? Math.min(one._end, one._stopBy + STOP) : Infinity);
  const isShown = (one) => held.has(one) && one.onOverrun === "exit" && !one._ended;
  if (hold === first) first = [...held].filter(isShown).reduce((one, other) => (end(other) < end(one) ? other : one), undefined);
  else if (isShown(hold) && end(hold) < end(first)) first = hold;
  else return;
  for (const [nth, clock] of ["mono", "wall"].entries()) {
    Atomics.store(cell, nth, first ? BigInt(Math.floor(first._from[clock] + end(first) - first._from.mono)) : FAR);
  }
  if (first) new TextEncoder().encodeInto(first.what, words.fill(0));
  if (first && Atomics.exchange(cell, 2, 0n)) watchdog?.postMessage({});
}

class Deadlines {
  _next = Infinity;

  /** Something is due in so long. */
  soon(within) {
    const next = instant().mono + within;
    if (next >= this._next) return;
    this._next = next;
    this._sleep();
  }

  _sleep() {
    clearTimeout(this._timer);
    if (this._next < Infinity) this._timer = setTimeout(() => this._tick(), Math.min(TICK, Math.max(2, this._next - instant().mono)));
  }

  _tick() {
    const { mono, wall } = instant();
    // By the wall clock more time has passed than by the other.
    const leapt = wall - mono - this._apart > 1;
    if (mono >= this._next || leapt) {
      [this._next, this._apart] = [Infinity, wall - mono];
      let next = Infinity;
      for (const hold of held) next = Math.min(next, hold._look());
      this._next = Math.min(this._next, mono + next);
    }
    this._sleep();
  }
}

class Renewals {
  _next = Infinity;
  _lines = new Map();

  /** `stops`: of what may be told to stop alone; then it waits for that at the node. */
  constructor(stops) { Object.assign(this, { _stops: stops, _wires: wires(1) }); }

  /** Something is due by then. */
  soon(at) {
    if (this._busy || at >= this._next) return;
    clearTimeout(this._timer);
    this._next = at;
    this._timer = setTimeout(() => this._go(), Math.max(0, at - instant().mono));
  }

  /** There is one more to wait for. */
  anew() {
    for (const line of this._lines.values()) line.cut();
    this.soon(-Infinity);
  }

  async _go() {
    this._busy = true;
    const next = await this._round().catch((error) => (process.emitWarning(error), instant().mono + TICK));
    [this._busy, this._next] = [false, Infinity];
    this.soon(next);
  }

  async _round() {
    const [began, ways] = [instant().mono, new Map()];
    const mine = [...held].filter((each) => each.held() && (this._stops ? each._waits : each._keeper === this));
    const next = () => mine.reduce((least, each) => (held.has(each) ? Math.min(least, each._due) : least), Infinity);
    if (!mine.length || (!this._stops && next() > began)) return next();
    // What is due a little later travels with the others.
    for (const each of mine.filter((each) => this._stops || each._due - each._length / 24 <= began)) {
      if (!ways.get(each.nodes.way)?.push(each)) ways.set(each.nodes.way, [each]);
    }
    const pauses = await Promise.all([...ways.values()].map((all) => this._renew(all)));
    return this._stops ? Math.max(began + AT_MOST, ...pauses) : next();
  }

  /** When to try again, if no node answers. */
  async _renew(all) {
    const { nodes } = all[0];
    if (!this._lines.get(nodes.way) || this._lines.get(nodes.way).over.aborted) this._lines.set(nodes.way, cutting(nodes, this._wires));
    const [line, parts] = [this._lines.get(nodes.way), parted(all)];
    const wait = this._stops && !line.failed ? Math.min(POLL, ...all.map(({ _every }) => _every * 0.6)) / parts.length : 0;
    for (let part; (part = parts.shift()); ) {
      if (await this._part(line, part, wait)) continue;
      if (line.over.aborted) return -Infinity; // hung up, for there is one more to wait for: no failure
      const again = instant().mono + line.pause();
      for (const each of [part, ...parts].flat()) each._due = again;
      return again;
    }
    return -Infinity;
  }

  /** Whether a node answered. */
  async _part(line, part, wait) {
    if (part.length > 1) {
      const [sent, said] = [instant(), part.map((each) => each._said())];
      const body = { wait_ms: Math.floor(wait), leases: part.map(({ _name: name }, nth) => ({ name, ...said[nth].words })) };
      const left = Math.min(...part.map(({ remaining }) => remaining));
      const timeout = wait + Math.max(250, Math.min(1000 + (1000 * part.length) / MANY, (left - wait) / 3));
      const answer = await line.once("POST", "/api/v1/renewals", body, timeout, RENEWED).catch((error) => error);
      if (answer instanceof Unreachable) return false;
      if (!(answer instanceof Refused)) {
        const of = new Map(answer.leases.map((one) => [one?.name, one]));
        let lacks;
        // What ends first comes last: then that is looked for once.
        for (const [nth, each] of [...part.entries()].reverse()) {
          if ((await each._try(() => each._hear(sent, said[nth], of.get(each._name)))) !== false) continue;
          lacks = true;
          each._due = instant().mono + between(0.5, 1) * Math.min(each._every, AT_MOST);
        }
        // Another node may know more.
        if (lacks) [line.failed, line.nth] = [1, line.nth + 1];
        return true;
      }
      // A node that does not know this call, or it cannot read one of them: each for itself.
      wait = 0;
    }
    for (const each of part) {
      // Who waits for an order to stop keeps nobody from renewing it meanwhile.
      await each._try(() => each._renew(line, wait), !this._stops);
      if (line.failed) return false;
    }
    return true;
  }
}

/** What is sent by one call: many leases, each name once, or one of anything else. */
function parted(all) {
  const parts = [];
  let now = new Map();
  for (const each of all.sort((one, other) => one.remaining - other.remaining)) {
    const isFull = !now.size || now.size === MANY || now.has(each._name);
    if (!each._secret) parts.push(new Map([["", each]]));
    else if (isFull) parts.push((now = new Map([[each._name, each]])));
    else now.set(each._name, each);
  }
  return parts.map((part) => [...part.values()]);
}

export const [renewals, extensions, stops, deadlines] = [new Renewals(false), new Renewals(false), new Renewals(true), new Deadlines()];

/** It is held no more. What waits for nothing keeps no process alive. */
export function drop(hold) {
  held.delete(hold);
  if (!held.size) for (const each of [renewals, extensions, stops, deadlines]) each._next = clearTimeout(each._timer) ?? Infinity;
}
