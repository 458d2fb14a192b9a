// The clocks; HTTP to one of several nodes: time-outs, fail-over, jitter; and the live stream. Knows nothing of leases.
//
// Every call of Soloist may be repeated with the same body, at any node; so a call that was not answered is simply made again. Only a node
// answers: what is not in the shape of its answers was said by something in between (a gateway, a portal), and is as good as no answer. So is what
// has not come as a whole when the time for it is over, and what is longer than any answer of a node.
//
// All calls of a process share a few connections, which are kept open; who finds none free waits for its turn. Renewals have connections of their own.
//
// Node has no clock that goes on while the machine is suspended: on Linux `process.hrtime` is CLOCK_MONOTONIC, which stands still then.
// So the wall clock is a second witness: of the two, the one by which more time has passed counts. A wall clock that is set
// forward ends a lease too early, which is safe; one that is set back changes nothing.

import http from "node:http";
import https from "node:https";
import { hostname } from "node:os";
import { setTimeout as later } from "node:timers/promises";

// Milliseconds. The live stream begins at once, and a comment comes every 15 s: one that is silent for longer is dead.
const [BEGIN, SILENT] = [5000, 40_000];
// That no node answers is said once, and then so often.
const COMPLAINT = 60_000;
// Of an answer, in bytes; of a frame of the stream, which may tell of thousands of jobs.
const [MOST, MOST_OF_FRAME] = [2 ** 20, 2 ** 24];
// Connections for calls; how many of them may wait at a node for something to happen; a node closes one that is not used for 5 s.
const [CONNECTIONS, WAITING, IDLE] = [5, 3, 4000];
// HTTP: not now.
export const AGAIN = [408, 429];
// No lease is longer than a day.
const LONGEST_SPAN = 86_400_000;

/** This instant, by both clocks, in milliseconds. */
export const instant = () => ({ mono: Number(process.hrtime.bigint() / 1000n) / 1000, wall: Date.now() });

/** Milliseconds since `then`, by whichever clock says more. */
export const since = (then, now = instant()) => Math.max(now.mono - then.mono, now.wall - then.wall);

/** Waits for `ms`, or until `signal` aborts; whether it has. */
export const sleep = (ms, signal) => later(ms, undefined, { signal }).then(() => false, () => true);

export const between = (from, to) => from + Math.random() * (to - from);

export const text = (value) => typeof value === "string";
export const whole = (value) => Number.isSafeInteger(value) && value >= 0;
export const span = (value) => whole(value) && value > 0 && value <= LONGEST_SPAN;
/** Whether it is an object with these fields, each as it must be. */
export const has = (value, shape) => Boolean(value) && Object.entries(shape).every(([name, fits]) => Object.hasOwn(value, name) && fits(value[name]));
export const listed = (shape) => (value) => Array.isArray(value) && value.every((one) => has(one, shape));

/** At most so long, and never cut inside a pair of surrogates. */
export const cut = (words, most) => words.slice(0, most).replace(/[\ud800-\udbff]$/, "");

/** Halves of surrogate pairs become U+FFFD: no encoder takes them. */
function encoded(body) {
  const said = JSON.stringify(body);
  // As it escapes them; few texts have any.
  return /\\ud[89a-f]/.test(said) ? JSON.stringify(body, (_, value) => (text(value) ? value.replace(/\p{Surrogate}/gu, "\ufffd") : value)) : said;
}

export function parsed(raw) {
  try { return JSON.parse(raw); } catch { return undefined; } // no JSON: no answer of a node
}

function whatIsSaid(answer) {
  let [pieces, size] = [[], 0];
  return new Promise((resolve, reject) => {
    const take = (piece) => (pieces.push(piece), (size += piece.length));
    answer.on("data", (piece) => take(piece) > MOST && answer.destroy(new Error("answered with more than 1 MiB")));
    answer.on("error", reject).on("close", () => reject(new Error("not answered as a whole"))).on("end", () => resolve(Buffer.concat(pieces).toString()));
  });
}

/** Anything that Soloist, or the way to it, says no to. */
export class SoloistError extends Error { get name() { return this.constructor.name; } }

/** A node understood and refused. `status` is HTTP's; `detail` says what to do. */
export class Refused extends SoloistError {
  constructor(status, detail) { Object.assign(super(`${detail} (HTTP ${status})`), { status, detail }); }
}

/** No node answered: what was asked may or may not have been done. */
export class Unreachable extends SoloistError {}

/** What an answer comes to that gives nothing. Only a node's counts, which is RFC 9457 in our own fields. */
function refusal({ statusCode: status, headers }, value) {
  const isOurs = has(value, { type: text, title: text, detail: text, status: (one) => one === status }) && !("instance" in value);
  const said = isOurs && headers["content-type"]?.startsWith("application/problem+json");
  if (said && status >= 400 && status < 500 && !AGAIN.includes(status)) return new Refused(status, value.detail);
  return new Unreachable(`${said ? value.detail : "not the answer of a node"} (HTTP ${status})`);
}

/** Addresses and the token: what every line of one client shares. */
export class Nodes {
  constructor(addresses, { token, holder, overrun } = {}) {
    this.urls = [addresses].flat().map((address) => new URL(address));
    if (!this.urls.length || !token) throw new TypeError("name at least one node as http://HOST:PORT, and a token");
    if (!/^[!-~]+$/.test(token)) throw new TypeError("the token has a blank, a line end or a letter that is not ASCII: give it as it was made");
    if (![undefined, "leave"].includes(overrun)) throw new TypeError(`overrun: ${overrun} is not "leave"`);
    const host = hostname().toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 40);
    // Who answered last is asked first. Clients that start together do not all begin at the same node.
    this.answers = Math.floor(Math.random() * this.urls.length);
    // Whatever goes one way may travel together.
    this.way = JSON.stringify([this.urls, token]);
    Object.assign(this, { complained: -Infinity, token, overrun, holder: holder ?? `${host || "host"}-${process.pid}` });
  }
}

/** In a path. What no encoder takes, or leads to another path, is the caller's error, and is not tried again and again. */
export function quoted(name) {
  if (["", ".", ".."].includes(name)) throw new TypeError(`${JSON.stringify(name)} is no name`);
  return encodeURIComponent(name);
}

/** So many connections; the one that was used last is the first to be used again. */
export function wires(count) {
  const options = { keepAlive: true, maxFreeSockets: count, timeout: IDLE, scheduling: "lifo", autoSelectFamily: true };
  return { free: count, queue: [], "http:": new http.Agent(options), "https:": new https.Agent(options) };
}
const CALLS = wires(CONNECTIONS);

/** A line that `cut` ends. */
export function cutting(nodes, of) {
  const control = new AbortController();
  return Object.assign(new Line(nodes, control.signal, of), { cut: () => control.abort() });
}

// Who wants to wait at a node for something to happen, the longest first.
const waiting = new Set();

/** The way to the nodes for one task; what is under way ends when `over` aborts. `of`: whose connections it uses. */
export class Line {
  constructor(nodes, over, of = CALLS) {
    // `failed`: tries since one was answered.
    Object.assign(this, { nodes, over, of, nth: nodes.answers, failed: 0 });
  }

  /** Calls `ask` with how long it may wait at a node. While others do that is nothing, and it is asked less and less often the more there are. */
  async waits(most, ask) {
    const place = waiting.add(this).size;
    try {
      if (place > WAITING) await sleep(between(0.5, 1) * Math.min(most, Math.max(1000, 20 * place)), this.over);
      return await ask(place > WAITING ? 0 : most);
    } finally {
      waiting.delete(this);
    }
  }

  /** Waits for a connection; who came first has it first. False when `timeout` or `over` came before. */
  async _turn(timeout) {
    const { of } = this;
    if (of.free) return Boolean(of.free--);
    return new Promise((resolve) => {
      const end = (had) => (clearTimeout(timer), this.over?.removeEventListener("abort", late), resolve(had));
      const late = () => (of.queue.splice(of.queue.indexOf(end), 1), end(false));
      const timer = setTimeout(late, timeout);
      this.over?.addEventListener("abort", late);
      of.queue.push(end);
    });
  }

  /** A request to the present node, ended after `timeout` unless `again` gives it more time; `end` it in any case. */
  async open(method, path, data, timeout, agent = false) {
    const { protocol, hostname: host, port } = this.nodes.urls[this.nth % this.nodes.urls.length];
    const headers = { authorization: `Bearer ${this.nodes.token}`, "content-type": "application/json" };
    const options = { host: host.replace(/^\[|\]$/g, ""), port, path, method, headers, agent: agent && agent[protocol], autoSelectFamily: true };
    // Not `fetch`: it waits for ever, without a new connection, when one is closed before the request was sent.
    const asked = (protocol === "https:" ? https : http).request(options);
    const abort = () => asked.destroy(new Error("not answered in time"));
    let timer = setTimeout(abort, timeout);
    const again = (more) => (clearTimeout(timer), (timer = setTimeout(abort, more)));
    const end = () => (clearTimeout(timer), this.over?.removeEventListener("abort", abort), asked.res?.complete || abort());
    this.over?.addEventListener("abort", abort);
    if (this.over?.aborted) abort();
    const answered = new Promise((resolve, reject) => asked.on("response", resolve).on("error", reject).end(data));
    return { answer: await answered.catch((error) => { throw end(), error; }), again, end };
  }

  /** One try at one node, whose answer has one of the shapes; after a failure the next try goes to the next node. */
  async once(method, path, body, timeout, ...shapes) {
    const data = encoded(body); // what cannot be encoded is the caller's error: no other try would help
    const [began, { of, nodes }] = [performance.now(), this];
    if (!this.failed) this.nth = nodes.answers;
    if (!(await this._turn(timeout))) throw this.fail(new Unreachable("all connections are in use"));
    let way, raw;
    try {
      // Of others none is kept; and after a failure none at all: something in between may have forgotten them.
      const { host, protocol } = nodes.urls[this.nth % nodes.urls.length];
      if (of.host !== host || this.failed) for (const one of Object.values(of[protocol].freeSockets).flat()) one.destroy();
      of.host = host;
      way = await this.open(method, path, data, timeout - (performance.now() - began), of);
      raw = await whatIsSaid(way.answer);
    } catch (error) {
      throw this.fail(new Unreachable(`${error.name}: ${error.message}`));
    } finally {
      way?.end();
      if (of.queue.length) of.queue.shift()(true);
      else of.free += 1;
    }
    const value = parsed(raw);
    const fits = way.answer.statusCode === 200 && shapes.some((shape) => has(value, shape));
    const error = fits ? undefined : refusal(way.answer, value);
    if (error instanceof Unreachable) throw this.fail(error);
    [this.failed, nodes.answers] = [0, this.nth];
    if (fits) return value;
    throw error;
  }

  /** The next try goes to the next node. */
  fail(error) {
    this.nth += 1;
    const { nodes, nodes: { urls } } = this;
    if ((this.failed += 1) >= urls.length && !this.over?.aborted && performance.now() >= nodes.complained + COMPLAINT) {
      nodes.complained = performance.now();
      process.emitWarning(`no node answers at ${urls.map(({ host }) => host).join(", ")}: ${error.message}`, "SoloistWarning");
    }
    return error;
  }

  /** Tries `once` until it is answered; no new try begins after `patience`. */
  async call(method, path, body, timeout, patience, ...shapes) {
    const began = instant();
    for (;;) {
      try {
        return await this.once(method, path, body, timeout, ...shapes);
      } catch (error) {
        if (!(error instanceof Unreachable)) throw error;
        if ((await sleep(this.pause(), this.over)) || since(began) >= patience) throw error;
      }
    }
  }

  /** Before the next try: nothing until every node has failed once, then more and more, never all clients at once. */
  pause() {
    const rounds = Math.min(8, Math.floor(this.failed / this.nodes.urls.length));
    return between(0.25, 1) * (rounds ? Math.min(2000, 100 * 2 ** rounds) : 20);
  }
}

/** See `Soloist.follow`. */
export async function* frames(nodes, logs, signal) {
  const path = "/api/v1/live" + (logs.length ? `?follow=${encodeURIComponent(logs.join(","))}` : "");
  const line = new Line(nodes, signal);
  let retry = 1000;
  while (!signal?.aborted) {
    let way;
    try {
      way = await line.open("GET", path, undefined, BEGIN);
      if (way.answer.statusCode !== 200) throw refusal(way.answer, parsed(await whatIsSaid(way.answer)));
      let [rest, data] = ["", ""];
      for await (const piece of way.answer.setEncoding("utf8")) {
        const lines = piece.split("\n");
        lines[0] = rest + lines[0];
        rest = lines.pop();
        if (rest.length + data.length > MOST_OF_FRAME) throw new Error("a frame without end");
        if (lines.length) way.again(SILENT);
        for (const one of lines.map((line) => line.trimEnd())) {
          if (one.startsWith("data:")) data += one.slice(5);
          else if (one.startsWith("retry:")) retry = Number(one.slice(6));
          else if (!one && data) {
            yield JSON.parse(data);
            data = "";
          }
        }
      }
    } catch (error) {
      if (error instanceof Refused) throw error;
    } finally {
      way?.end();
    }
    // A gap: the next stream begins with a snapshot.
    line.nth += 1;
    await sleep(between(retry / 2, retry * 1.5), signal);
  }
}
