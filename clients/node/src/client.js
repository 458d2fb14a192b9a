// May this process still work? Leases, turns and tasks, each kept by renewing it; the deadline and the interrupt.
//
// The deadline counts from before the last renewal that was answered was sent. An answer that says no (409) ends the hold at once. No
// answer means nothing: the next node is asked, until the deadline. What the node says of the length counts, never what this
// program wished. What was waited for is renewed once before the work begins: it may be as old as the question. What is held is
// given back when the work has ended and not before.
//
// All times are in milliseconds.

import { AsyncLocalStorage } from "node:async_hooks";
import { randomUUID } from "node:crypto";
import { constants } from "node:os";
import { Worker } from "node:worker_threads";
import { exit, lastWords } from "./end.js";
import { deadlines, drop, extensions, held, POLL, renewals, show, showTo, stops } from "./keep.js";
import * as life from "./life.js";
import { AGAIN, between, cut, frames, has, instant, Line, listed, Nodes, quoted, Refused, since, sleep, SoloistError, span, text, Unreachable, whole } from "./line.js";

// As `soloist run` when its lease was lost.
const EXIT_CODE = 76;
const ADVICE = "This process ends now, because another may begin. Call check() between the acts, or give onOverrun a function.";
// Clocks may run 1 % apart.
const TRUST = 0.99;
// What the work has when it could not be told before the deadline, as after a pause.
const LAST_CHANCE = 100;
// So long before the deadline the process begins to end. SOON: nobody is told later than this. BEFORE_KILL: so long before the watcher kills is the
// deadline of what is watched.
const [AHEAD, SOON, BEFORE_KILL] = [50, 150, 50];
// One long poll, and for its answer: a node that is paused hides a grant no longer.
const [WAIT, SLACK] = [10_000, 2000];
// HTTP: it is over, or another's.
const LOST = [404, 409];
// Lines that wait to be sent, the oldest go first; lines in a renewal and characters in a line: a node takes 64 KiB.
const [KEPT, AT_ONCE, LONGEST] = [1000, 30, 500];
// What a node says, by its fields. A longer length than was granted is not trusted, and this many times as long is no node's.
const OWN_END = ["closed", "the program ends"];
const BUSY = { reason: text, retry_in_ms: whole };
const GRANT = { secret: text, token: whole, expires_in_ms: span, renew_every_ms: span };
const TURN = { turn: text, token: whole, lease_until: text };
const NO_TURN = { reason: text, ahead: whole };
const TASK = { id: text, key: text, source: text, payload: () => true, token: whole, attempt: whole };
const STOP = { why: text, within_ms: whole };
const DUE = { tick: text, due: (due) => !Number.isNaN(Date.parse(due)), attempt: whole, late_ms: whole, params: (params) => typeof params === "object" };
const RULES = { lease_ms: span };
const REFUSED = { status: (status) => Number.isInteger(status) && status >= 400 && status < 500 && !AGAIN.includes(status), detail: text };
const EXTENDED = { kept: Array.isArray, lost: Array.isArray };
const RESULTS = { results: listed({ id: text, status: text }) };
const WORK = { tasks: listed(TASK) };
const HANDED = { ...RESULTS, claim: (claim) => has(claim, WORK) && (text(claim.claim) || !claim.tasks.length) };
const LONGER = 10;

// A bundle may be without watchdog.js; this one says nothing.
const SPARE = `let cell;
const { parentPort } = require("node:worker_threads");
parentPort.on("message", (said) => (cell = said.cell ?? cell));
parentPort.postMessage("here");
const isOver = () => cell && (cell[0] <= process.hrtime.bigint() / 1_000_000n + 5n || cell[1] <= BigInt(Date.now()) + 5n);
setInterval(() => isOver() && isOver() && process.kill(process.pid, "SIGKILL"), 20);`;

// Loops, which are to be asked to stop when the program ends.
const running = new Set();
// In whose work we are.
const within = new AsyncLocalStorage();
const watchdogs = [() => new URL("./watchdog.js", import.meta.url), () => SPARE];
let watchdog, isHere;
// No work begins before: it may block the event loop at once, and then no other is started.
const here = new Promise((resolve) => (isHere = resolve));

function guard() {
  const source = watchdogs.shift();
  if (!source) return isHere(), process.emitWarning("no watchdog can be started: work that blocks the event loop is not ended", "SoloistWarning");
  const lost = () => ((watchdog = undefined), guard());
  try {
    // Not by the program's own options: `--input-type` is none for a thread.
    watchdog = new Worker(source(), { execArgv: [], eval: source() === SPARE }).on("error", lost).once("message", isHere);
    watchdog.unref();
    showTo(watchdog);
  } catch { lost(); }
}

/** See index.d.ts. */
export function releaseOnExit(...signals) {
  for (const signal of signals.length ? signals : ["SIGTERM", "SIGINT"]) {
    const listener = async () => {
      // Who listens, too, ends the program. Else a second one means at once.
      const alone = process.listenerCount(signal) === 1;
      if (alone) process.off(signal, listener);
      const all = [...held, ...running];
      for (const each of all) each._interrupt("the program ends");
      const over = Promise.all(all.map((each) => each._given));
      await Promise.race([over, sleep(Math.max(0, ...all.map((each) => each.grace)))]);
      if (all.some((each) => each._ended)) await Promise.race([over, sleep(SLACK)]);
      if (!alone) return;
      process.kill(process.pid, signal);
      // The first process of a container, which that does not end.
      setTimeout(() => process.exit(128 + constants.signals[signal]), 1000);
    };
    process.on(signal, listener);
  }
}

/** The work must end now: somebody asked for it, or the deadline is near or over. */
export class Stopped extends Error {}

/** It was not had in time. `answer` is the node's: `reason` is one word (`busy`, `not_wanted`), `holder` who has it. */
export class NotGranted extends SoloistError { constructor(text, answer) { Object.assign(super(text), { answer }); } }

/** The task is to be tried again, after `delay` milliseconds or else after the source's backoff. */
export class Retry extends Error { constructor(text, delay) { Object.assign(super(text), { delay }); } }

/** The task is never to be tried again. */
export class Dead extends Error {}

/** Something that is held until a deadline: a lease, a turn, a task. */
export class Hold {
  constructor(nodes, what, path, { grace = 1000, onOverrun = "exit" } = {}) {
    Object.assign(this, { nodes, what, path, grace, onOverrun, reason: undefined });
    Object.assign(this, { _token: 0, _length: 0, _margin: 0, _from: instant(), _stopBy: Infinity, _toldAt: undefined, _lost: false, _due: Infinity });
    // Made when it is asked for.
    [this._stopping, this._stopped, this._ended] = [undefined, false, false];
    this._given = new Promise((resolve) => (this._give = resolve));
    this._line = new Line(nodes);
  }

  get token() { return this._token; }

  get signal() {
    this._stopping ??= new AbortController();
    if (this._stopped && !this._stopping.signal.aborted) this._stopping.abort(new Stopped(this.reason));
    return this._stopping.signal;
  }

  get remaining() { return this._lost ? 0 : Math.max(0, this._length * TRUST - this._margin - since(this._from)); }

  held(need = 0) { return !this._ended && this.remaining > need; }

  check() {
    if (!this.held()) this._interrupt("the deadline is over");
    if (this._stopped) throw new Stopped(this.reason);
  }

  /** Between a renewal and the next. */
  get _pause() { return this._length / 3; }

  /** Whether it may be told to stop, and was not yet. */
  get _waits() { return false; }
  get _keeper() { return extensions; }

  /** One try. Its time is bounded so that another node can still be asked before the deadline. */
  _post(line, path, body, shape, wait = 0) {
    return line.once("POST", path, body, wait + Math.max(250, Math.min(1000, (this.remaining - wait) / 3)), shape);
  }

  /** Moves the deadline: `length`, counted from before the request was sent. */
  _trust(sent, length) {
    [this._from, this._length] = [sent, length];
    this._due = sent.mono + this._pause;
    show(this);
  }

  /** Its end, by the clock of `mono`. */
  get _end() { return this._from.mono + this._length * TRUST - this._margin; }

  _interrupt(reason, within = Infinity) {
    const by = instant().mono + within;
    if (by < this._stopBy) show(this, (this._stopBy = by));
    deadlines.soon(Math.min(this.remaining, within) - AHEAD);
    if (this._stopped || this._ended) return;
    [this.reason, this._toldAt, this._stopped] = [reason, instant(), true];
    this._stopping?.abort(new Stopped(reason));
    this._keeper.soon((this._due = Math.min(this._due, this._toldAt.mono + this._pause)));
  }

  async _acquire(line, ask, patience = Infinity, began = instant()) {
    const [rest, left] = [SLACK, 0].map((more) => () => Math.max(0, patience + more - since(began)));
    let [request, sent, poll] = [randomUUID(), undefined, 0];
    const ask_ = (most) => {
      sent = instant();
      // Of what is left so much is kept that another node can still be asked.
      const timeout = Math.min(most + SLACK, Math.max(250, (rest() * 2) / 3));
      poll = Math.max(0, Math.min(most, left(), timeout - SLACK / 2));
      return line.once("POST", this.path, { ...ask, request_id: request, wait_ms: Math.floor(poll) }, timeout, ...this._answers);
    };
    for (let first = true; ; ) {
      let answer;
      try {
        // The first question waits for nothing.
        answer = await (first ? ask_(0) : line.waits(Math.min(WAIT, left()), ask_));
      } catch (error) {
        const over = !(error instanceof Unreachable) || (await sleep(Math.min(line.pause(), rest()), line.over));
        if (over || !rest()) throw error;
        continue;
      }
      if (this._take(answer) && (await this._confirm(line, sent, rest))) return this._start();
      if (this._token) [request, this._token] = [randomUUID(), 0]; // that grant is over; another is another
      else if (!left()) throw new NotGranted(`${this.what}: ${answer.reason}`, answer);
      // It did not wait: the node knows that it cannot be soon.
      else if (since(sent) < poll / 2) await sleep(between(0.5, 1) * Math.min(5000, Math.max(200, answer.retry_in_ms ?? 0), left()), line.over);
      first = false;
    }
  }

  /** Renews a grant that was first asked for at `sent`, unless that was just now; whether it is worth something, while there is a `rest` to know it. */
  async _confirm(line, sent, rest = () => Infinity) {
    let sure = since(sent) < this._length / 10;
    this._lost = false;
    this._trust(sure ? sent : instant(), this._length);
    const again = async () => !sure && this.held() && rest() && !(await sleep(this._line.failed && this._line.pause(), line.over));
    while (await again()) sure = Boolean(await this._try(() => this._renew(this._line, 0)));
    // An order to stop that is still true comes again.
    [this._stopping, this._stopped, this._stopBy] = [undefined, false, Infinity];
    return sure;
  }

  _start() {
    held.add(this);
    show(this);
    if (!watchdog && this.onOverrun === "exit") guard();
    this._keeper.soon(this._due);
    deadlines.soon(this.remaining - this._near);
    if (this._waits) stops.anew();
    return this.onOverrun === "exit" ? here : undefined;
  }

  /** Whether a node answered; undefined when it refused. */
  async _try(renew, soon = true) {
    if (soon) this._due = instant().mono + SOON;
    try {
      return await renew();
    } catch (error) {
      if (!(error instanceof Refused)) return false;
      this._lost ||= LOST.includes(error.status); // it may be another's already
      this._due = instant().mono + this._pause;
      this._interrupt(`refused: ${error.detail}`);
      return undefined;
    }
  }

  /** So long before the deadline the work must stop. */
  get _near() { return Math.min(Math.max(this.grace, SOON), this._length / 5); }

  /** Between now and the end of the process nothing is waited for: nobody who writes or reads what is said. In how long to look again. */
  _look() {
    if (this._ended) return Infinity;
    const near = this.remaining - this._near;
    if (near <= 0) this._interrupt("it was not renewed in time");
    if (!this._stopped) return near;
    const left = Math.max(Math.min(this.remaining, this._stopBy - instant().mono) - (this.onOverrun === "exit" ? AHEAD : 0), LAST_CHANCE - since(this._toldAt));
    return left > 0 ? left : this._overrun();
  }

  _overrun() {
    const { onOverrun } = this;
    this.onOverrun = () => {};
    if (onOverrun !== "exit") setImmediate(onOverrun, this);
    else lastWords(`soloist: ${this.what} (token ${this._token}): ${this.reason}, and the work has not ended in time. ${ADVICE}\n`, () => exit(EXIT_CODE));
    return Infinity;
  }

  /** The work has ended: says so, if it is still ours. */
  async _close(path, body, shape) {
    const left = this.remaining;
    this._finish();
    const warn = (error) => process.emitWarning(`${this.what}: not given back, so it runs out by itself: ${error.message}`, "SoloistWarning");
    if (left) await this._line.call("POST", path, body, Math.min(SLACK, left / 2), left, shape).catch(warn);
    this._gone();
  }

  _finish() { show(this, (this._ended = true)); }

  _gone() {
    this._finish();
    this._give(drop(this));
  }
}

/** The right to be the only one. `run`: the run of the job that this grant is, if its name is a job. */
export class Lease extends Hold {
  _lines = [];
  // How many there were before these.
  _before = 0;
  _answers = [GRANT, BUSY];

  constructor(nodes, name, options) {
    super(nodes, `lease ${name}`, `/api/v1/leases/${quoted(name)}`, options);
    this._name = name;
  }

  progress(done, total, note = "") { this._progress = { done: Number(done), total: Number(total), note: cut(String(note), LONGEST) }; }

  log(line) {
    this._lines.push(...String(line).split("\n").map((part) => cut(part, LONGEST)));
    this._drop(this._lines.length - KEPT);
  }

  _drop(count) { this._before += this._lines.splice(0, Math.max(0, count)).length; }

  _take(answer) {
    const { secret, token, run, expires_in_ms, renew_every_ms } = answer;
    if (secret) Object.assign(this, { _secret: secret, _token: token, run, _length: expires_in_ms, _every: renew_every_ms, _most: expires_in_ms });
    return Boolean(secret);
  }

  async _start() {
    await super._start();
    await life.begin(this.nodes, this);
    if (!this._passed) return;
    life.expect(this); // it is renewed first
    await life.wait(this, this._every + SOON);
  }

  get _until() { return this._end + this._margin; }

  /** The watcher kills so long before the end of the lease: the work is over before. */
  _arm(margin) {
    this._margin = margin + BEFORE_KILL;
    super._trust(this._from, this._length);
    deadlines.soon(this.remaining - this._near);
  }

  _trust(sent, length) {
    super._trust(sent, length);
    life.say(this);
  }

  get _waits() { return Boolean(this.run) && !this._stopped; }
  get _keeper() { return renewals; }

  /** When it waits at a node for an order to stop, that renews it too. */
  get _pause() { return this._waits ? Math.min(this._every * 2.5, this._length / 2) : this._stopped ? this._every / 2 : this._every; }

  /** Whether its work has said what the job's page shows. */
  get _talks() { return Boolean(this.run && (this._lines.length || this._progress)); }

  /** What a renewal carries, and the last line of it. */
  _said() {
    const [progress, lines] = this.run ? [this._progress, this._lines.slice(0, AT_ONCE)] : [undefined, []];
    return { words: { secret: this._secret, progress, lines: lines.length ? lines : undefined }, last: this._before + lines.length };
  }

  /** How it ended. To end because one was asked to is no failure. */
  _word(failed, asked) {
    if (failed && !asked) return "failed";
    // Work that its own program asked to stop is not done: the next may begin at once, and a job that ends with its work is not off.
    return OWN_END.includes(this.reason) ? "unused" : "done";
  }

  get _kept() { return { expires_in_ms: (ms) => span(ms) && ms <= LONGER * this._most, stop: (stop) => stop === null || has(stop, STOP) }; }

  /** False when this is no answer of a node. */
  _hear(sent, { words, last }, answer) {
    const [isKept, isRefused] = [has(answer, this._kept), has(answer, REFUSED)];
    if (!isKept && !isRefused) return false;
    if (isRefused && ([401, 403, ...LOST].includes(answer.status) || !(words.progress || words.lines))) throw new Refused(answer.status, answer.detail);
    this._drop(last - this._before);
    if (this._progress === words.progress) this._progress = undefined;
    if (isKept) {
      this._trust(sent, Math.min(answer.expires_in_ms, this._most));
      this._told ||= Boolean(answer.stop);
      if (answer.stop) this._interrupt(answer.stop.why, answer.stop.within_ms);
    } else {
      // What the work says must not cost it the lease.
      process.emitWarning(`${this.what}: its output was refused and is dropped: ${answer.detail}`, "SoloistWarning");
      this._due = instant().mono;
    }
    return true;
  }

  async _renew(line, most) {
    const [said, sent, wait] = [this._said(), instant(), Math.min(most, this._every)];
    const answer = this._post(line, `${this.path}/renew`, { ...said.words, wait_ms: Math.floor(wait) }, this._kept, wait);
    return this._hear(sent, said, await answer.catch((error) => { if (error instanceof Refused) return error; throw error; }));
  }
}

/** One tick of a job with a schedule, and the lease under which its work runs. See index.d.ts. */
export class Tick extends Lease {
  _take(answer) {
    const { tick: name, due, attempt, late_ms: lateMs, params } = answer;
    if (has(answer, DUE)) Object.assign(this, { name, due: new Date(due), attempt, lateMs, params });
    return super._take(answer);
  }

  _word(failed, asked) {
    if (!failed) return "done";
    if (this._told || !asked) return "failed";
    // It was begun, so it is not unused; and nobody knows how far it came.
    process.emitWarning(`${this.name}: stopped in the middle (${this.reason}): it is lost, and its on_loss follows`, "SoloistWarning");
    return "lost";
  }
}

/** A turn of a rotation. The work may set `outcome` (`done`, `empty`), `next` (a type) and `notBefore` (RFC 3339). */
export class Turn extends Hold {
  outcome = "done";
  _answers = [TURN, NO_TURN];

  _take(answer) {
    if (answer.turn) [this._token, this._turn] = [answer.token, `${this.path}/${answer.turn}`];
    return Boolean(answer.turn);
  }

  async _renew(line) {
    const sent = instant();
    await this._post(line, `${this._turn}/extend`, { token: this._token }, TURN);
    this._trust(sent, this._length);
    return true;
  }
}

/** One task in this collector's hands: `key`, `payload` (any JSON), `source`, `attempt` (from 1). */
export class Task extends Hold {
  constructor(nodes, claim, length, { id, key, payload, source, attempt, token }) {
    super(nodes, `task ${key}`, `/api/v1/claims/${claim}/extend`, { onOverrun: () => {} });
    Object.assign(this, { id, key, payload, source, attempt, _token: token, _length: length });
  }

  async _renew(line) {
    const sent = instant();
    const { kept } = await this._post(line, this.path, undefined, EXTENDED);
    if (!kept.includes(this.id)) throw new Refused(409, `${this.key} is another's by now`);
    this._trust(sent, this._length);
    return true;
  }

  async _work(handler) {
    const result = { id: this.id, token: this._token, outcome: "done" };
    this._start();
    try {
      await handler(this);
    } catch (error) {
      const [outcome, words] = [error instanceof Dead ? "dead" : "retry", `${error?.name}: ${error?.message ?? error}`];
      Object.assign(result, { outcome, error: cut(words, 900), delay_ms: error instanceof Retry ? error.delay : undefined });
    }
    this._gone();
    return result;
  }
}

/** The same again and again, so many times at once, until `close()`. */
export class Loop {
  constructor(what, count, once, grace = 1000) {
    [this._over, this.grace] = [new AbortController(), grace];
    running.add(this);
    this._given = Promise.all(Array.from({ length: count }, () => within.run(this, () => this._run(what, once))));
  }

  /** Asks the work to stop, begins nothing more, and waits until all has ended; not, if its own work calls it. */
  async close() {
    this._interrupt();
    this.hold?._interrupt("closed");
    if (within.getStore() !== this) await this._given;
  }

  _interrupt() { this._over.abort(running.delete(this)); }

  async _run(what, once) {
    const over = this._over.signal;
    for (let failed = 0; !over.aborted; ) {
      try {
        await once(over, this);
        failed = 0;
      } catch (error) {
        if (over.aborted) return;
        failed = error instanceof Stopped ? 0 : failed + 1;
        if (failed) process.emitWarning(`${what}: ${error?.stack ?? error}`, "SoloistWarning");
      }
      // Work that ends at once, or fails again and again, costs the cluster little.
      await sleep(between(100, 200) * Math.min(150, 2 ** Math.min(failed, 8)), over);
    }
  }
}

/** See index.d.ts, where every option is described. */
export class Soloist extends Nodes {
  lease(name, work, options) { return this._under(Lease, name, work, options); }

  async _under(Kind, name, work, { ttl, wait, signal, ...options } = {}) {
    const lease = new Kind(this, name, options);
    await lease._acquire(new Line(this, signal), { holder: this.holder, ttl_ms: ttl }, wait).catch((error) => { throw lease._gone(), error; });
    let [end, words] = ["unused", undefined];
    try {
      if (signal?.aborted) throw new Stopped(OWN_END[0]); // no work begins after close()
      end = "done";
      const value = await work(lease);
      end = lease._word(false, lease._stopped);
      return value;
    } catch (error) {
      // However the work noticed.
      const asked = lease._stopped && (error instanceof Stopped || error?.name === "AbortError");
      if (end === "done") end = lease._word(true, asked);
      words = end === "failed" ? cut(`${error?.name}: ${error?.message ?? error}`, LONGEST) : undefined;
      throw asked ? new Stopped(lease.reason) : error;
    } finally {
      lease._finish(); // nobody is to be stopped any more
      await life.end(lease);
      // The last words are worth one try.
      while (lease._talks && lease.remaining && (await lease._renew(lease._line, 0).catch(() => false)));
      const body = { secret: lease._secret, end, error: words };
      await lease._close(`${lease.path}/release`, body, { released: (value) => typeof value === "boolean" });
    }
  }

  runWhileLeader(name, work, options) {
    quoted(name);
    return new Loop(name, 1, (signal, loop) => this.lease(name, (lease) => work((loop.hold = lease)), { ...options, signal }), options?.grace);
  }

  scheduled(job, work, options) {
    quoted(job);
    const does = async (tick) => {
      if (!tick.name) throw new SoloistError(`${job} has no schedule`);
      await work(tick);
    };
    return new Loop(job, 1, async (signal, loop) => {
      let tick;
      await this._under(Tick, job, (granted) => does((tick = loop.hold = granted)), { ...options, signal }).catch((error) => {
        // The next tick does not wait for one that failed.
        if (!tick?.name || error instanceof Stopped) throw error;
        process.emitWarning(`${tick.name}, attempt ${tick.attempt}: ${error?.stack ?? error}`, "SoloistWarning");
      });
    }, options?.grace);
  }

  async turn(rotation, type, work, { lease, wait, worker, signal, ...options } = {}) {
    const [path, line, began] = [`/api/v1/rotations/${quoted(rotation)}`, new Line(this, signal), instant()];
    const turn = new Turn(this, `turn ${rotation}/${type}`, `${path}/turns`, options);
    // The end of a turn is said by the store's clock, which is not ours: so its length must be known.
    turn._length = lease ?? (await line.call("GET", path, undefined, SLACK, wait, RULES)).lease_ms;
    await turn._acquire(line, { type, worker: worker ?? this.holder }, wait, began).catch((error) => { throw turn._gone(), error; });
    let outcome = "failed";
    try {
      const value = await work(turn);
      outcome = turn.outcome;
      return value;
    } finally {
      await turn._close(`${turn._turn}/pass`, { token: turn._token, outcome, next: turn.next, not_before: turn.notBefore }, { turn: text });
    }
  }

  collect(source, handler, { lease, parallel = 1, collector } = {}) {
    const rules = `/api/v1/sources/${quoted(source)}`;
    return new Loop(`collect ${source}`, parallel, async (over) => {
      const line = new Line(this, over);
      const length = lease ?? (await line.call("GET", rules, undefined, SLACK, Infinity, RULES)).lease_ms;
      let [results, busy, sent] = [[], true, undefined];
      const ask = (wait) => {
        sent = instant();
        const claim = { collector: collector ?? this.holder, max: 1, sources: [source], wait_ms: wait, request_id: randomUUID() };
        return line.call("POST", "/api/v1/results", { results, claim }, wait + SLACK, Infinity, HANDED);
      };
      try {
        while (!over.aborted) {
          // After a task nothing is waited for: its result is not to wait either.
          const { claim } = await (busy ? ask(0) : line.waits(WAIT, ask));
          const waited = !busy;
          [results, busy] = [[], claim.tasks.length > 0];
          for (const each of claim.tasks) {
            const task = new Task(this, claim.claim, length, each);
            if (!(await task._confirm(line, sent))) return; // lost before it began: the rules may be others by now
            results.push(await task._work(handler));
          }
          if (waited && !busy && since(sent) < WAIT / 2) await sleep(between(200, 1000), over);
        }
      } finally {
        if (results.length) await new Line(this).call("POST", "/api/v1/results", { results }, SLACK, WAIT, RESULTS);
      }
    });
  }

  follow(logs = [], { signal } = {}) { return frames(this, [logs].flat(), signal); }
}
