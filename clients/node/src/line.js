// The clocks; HTTP to one of several nodes: time-outs, fail-over, jitter; and the live stream. Knows nothing of leases.
//
// Every call of Soloist may be repeated with the same body, at any node; so a call that was not answered is simply made again.
//
// Node has no clock that goes on while the machine is suspended: on Linux `process.hrtime` is CLOCK_MONOTONIC, which stands still then.
// So the wall clock is a second witness: of the two, the one by which more time has passed counts. A wall clock that is set
// forward ends a lease too early, which is safe; one that is set back changes nothing.

import { hostname } from "node:os";
import { text } from "node:stream/consumers";
import { setTimeout as later } from "node:timers/promises";

// Milliseconds. A comment comes every 15 s on the live stream: one that is silent for longer is dead.
const SILENT = 40_000;
// HTTP: not now.
const AGAIN = [408, 429];

/** This instant, by both clocks, in milliseconds. */
export const instant = () => ({ mono: Number(process.hrtime.bigint() / 1000n) / 1000, wall: Date.now() });

/** Milliseconds since `then`, by whichever clock says more. */
export const since = (then, now = instant()) => Math.max(now.mono - then.mono, now.wall - then.wall);

/** Waits for `ms`, or until `signal` aborts; whether it has. */
export const sleep = (ms, signal) => later(ms, undefined, { signal }).then(() => false, () => true);

export const between = (from, to) => from + Math.random() * (to - from);

/** Anything that Soloist, or the way to it, says no to. */
export class SoloistError extends Error { get name() { return this.constructor.name; } }

/** A node understood and refused. `status` is HTTP's; `detail` says what to do. */
export class Refused extends SoloistError {
  constructor(status, detail) { Object.assign(super(`${detail} (HTTP ${status})`), { status, detail }); }
}

/** No node answered: what was asked may or may not have been done. */
export class Unreachable extends SoloistError {}

/** Addresses and the token: what every line of one client shares. */
export class Nodes {
  constructor(addresses, { token, holder } = {}) {
    this.urls = [addresses].flat().map((address) => new URL(address));
    if (!this.urls.length || !token) throw new TypeError("name at least one node as http://HOST:PORT, and a token");
    const host = hostname().toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 40);
    Object.assign(this, { token, holder: holder ?? `${host || "host"}-${process.pid}` });
  }
}

/** The way to the nodes for one task; what is under way ends when `over` aborts. */
export class Line {
  constructor(nodes, over) {
    // Clients that start together do not all begin at the same node.
    Object.assign(this, { nodes, over, nth: Math.floor(Math.random() * nodes.urls.length) });
  }

  /** A request to the present node, aborted after `timeout` unless `again` is called in time; `end` it in any case. */
  async open(method, path, body, timeout) {
    const control = new AbortController();
    const abort = () => control.abort();
    let timer = setTimeout(abort, timeout);
    const again = () => (clearTimeout(timer), (timer = setTimeout(abort, timeout)));
    const end = () => (clearTimeout(timer), this.over?.removeEventListener("abort", abort), abort());
    this.over?.addEventListener("abort", abort);
    if (this.over?.aborted) abort();
    const headers = { authorization: `Bearer ${this.nodes.token}`, "content-type": "application/json" };
    const url = new URL(path, this.nodes.urls[this.nth % this.nodes.urls.length]);
    // Not `fetch`: it waits for ever, without a new connection, when one is closed before the request was sent.
    const { request } = await import(`node:${url.protocol.slice(0, -1)}`);
    const asked = new Promise((resolve, reject) => {
      request(url, { method, headers, signal: control.signal }, resolve).on("error", reject).end(JSON.stringify(body));
    });
    return { answer: await asked.catch((error) => { throw end(), error; }), again, end };
  }

  /** One try at one node; after a failure the next try goes to the next node. */
  async once(method, path, body, timeout) {
    let way, value;
    try {
      way = await this.open(method, path, body, timeout);
      // What is no JSON was said by something between us and the node.
      value = JSON.parse((await text(way.answer)) || "null");
    } catch (error) {
      this.nth += 1;
      throw new Unreachable(`${error.name}: ${error.message}`);
    } finally {
      way?.end();
    }
    const { statusCode: status, statusMessage } = way.answer;
    if (status < 300) return value;
    if (status < 500 && !AGAIN.includes(status)) throw new Refused(status, value?.detail ?? statusMessage);
    this.nth += 1;
    throw new Unreachable(`${value?.detail ?? statusMessage} (HTTP ${status})`);
  }

  /** Tries `once` until it is answered; no new try begins after `patience`. */
  async call(method, path, body, timeout, patience = Infinity) {
    const began = instant();
    for (let failed = 1; ; failed += 1) {
      try {
        return await this.once(method, path, body, timeout);
      } catch (error) {
        if (!(error instanceof Unreachable)) throw error;
        if ((await sleep(this.pause(failed), this.over)) || since(began) >= patience) throw error;
      }
    }
  }

  /** Before the next try: nothing until every node has failed once, then more and more, never all clients at once. */
  pause(failed) {
    const rounds = Math.floor(failed / this.nodes.urls.length);
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
      way = await line.open("GET", path, undefined, SILENT);
      const status = way.answer.statusCode;
      if (status >= 400 && status < 500 && !AGAIN.includes(status)) throw new Refused(status, JSON.parse(await text(way.answer)).detail);
      let [rest, data] = ["", ""];
      for await (const piece of status === 200 ? way.answer.setEncoding("utf8") : []) {
        way.again();
        const lines = (rest + piece).split(/\r?\n/);
        rest = lines.pop();
        for (const one of lines) {
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
