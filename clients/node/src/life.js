// The life line: a program on a machine that runs a node is watched as a script is. Knows lines of JSON on a socket, and nothing of HTTP.
//
// The watcher is told under which lease the lease is and until when it must be over. It kills the process by then, and when the kernel says that
// the process is dead the lease is given back. It comes on top of the deadline that client.js and watchdog.js keep.
//
// One connection serves all leases of a process, and keeps no process alive. What is not answered within a second is no watch; then it connects
// anew, and says all again. Good news are for NODE_DEBUG=soloist; what is missing is a warning.
//
// All times are in milliseconds, but for those whose name ends with `ns`.
import { existsSync } from "node:fs";
import { connect } from "node:net";
import { debuglog } from "node:util";
import { between, has, instant, parsed } from "./line.js";

// Where packages and images have it. The variable names another; empty, it names none.
const [USUAL, NAMED] = ["/run/soloist/lifeline.sock", "SOLOIST_LIFELINE"];
// An answer that comes later is none; and so long an end is waited for before the lease is given back. Lines that wait for their answers; what one
// answer may have.
const [PATIENCE, PARTING, AT_ONCE, MOST] = [1000, 100, 64, 2 ** 16];
// In nanoseconds: more than a safe integer, when a machine has been up for 104 days; a few of them are not missed.
const ns = (value) => Number.isInteger(value) && value >= 0;
const ANSWER = { ok: (ok) => typeof ok === "boolean", now_ns: ns };
const debug = debuglog("soloist");

/** From now on `wait` waits for an answer, or for there being none. */
export const expect = (lease) => (lease._known = new Promise((resolve) => (lease._know = resolve)));
export function wait(lease, most) {
  let timer;
  const late = new Promise((resolve) => (timer = setTimeout(resolve, most)));
  return Promise.race([lease._known, late]).finally(() => clearTimeout(timer));
}

// Of a lease it uses: `_name`, `_secret`, `_until` by our clock, `_over`; it sets `_passed` (what was told was over already) and `_state`, and tells
// `_arm` how long before its end the kill is.
const leases = new Map();
let [socket, up, down, failed, state, dirty, asked, offset] = [undefined, false, false, 0, "", new Set(), [], -Infinity];
// Looks after answers, while there are any to come.
let listen;

/** Before the work begins. Waits for the answer, for a second at most. */
export async function begin(nodes, lease) {
  expect(lease);
  const where = process.env[NAMED] ?? (existsSync(USUAL) ? USUAL : "");
  if (!where) return note(undefined, `not watched, because there is no ${USUAL} and ${NAMED} names none: if this process dies, its leases run out by themselves`, true);
  leases.set(lease._name, lease);
  say(lease);
  if (!socket) open(where, nodes);
  if (!down) await wait(lease, PATIENCE);
}

/** Something is new. Waits for nothing. */
export function say(lease) {
  if (leases.get(lease._name) !== lease) return;
  dirty.add(lease);
  if (up) tell();
}

/** The work has ended. */
export async function end(lease) {
  if (leases.get(lease._name) !== lease) return;
  expect(lease);
  lease._over = true;
  say(lease);
  if (up) await wait(lease, PARTING);
}

/** Says how it is watched, once, and when that changes. */
function note(lease, now, good) {
  const before = lease?._state || state;
  if (lease) lease._state = now;
  else state = now;
  if (now === before) return;
  const words = `life line: ${lease ? `${lease._name}: ` : ""}${now}`;
  if (good) debug(words);
  else process.emitWarning(words, "SoloistWarning");
}

function open(where, nodes) {
  const line = (socket = connect(where).unref().setEncoding("utf8"));
  let [heard, timer, over] = ["", undefined, false];
  [offset, asked] = [-Infinity, []];
  const lost = (error) => {
    if (over) return;
    over = true;
    clearInterval(timer);
    line.destroy();
    failed = up ? 0 : Math.min(failed + 1, 6);
    [up, down] = [false, true];
    note(undefined, `not watched: ${where}: ${error.message}`);
    for (const lease of leases.values()) {
      lease._know((lease._state = ""));
      if (lease._over && lease._until < instant().mono) leases.delete(lease._name);
    }
    setTimeout(again, between(0.5, 1) * 30 * 2 ** failed).unref();
  };
  // Who needs it makes it anew.
  const again = () => (leases.size ? open(where, nodes) : ([socket, down] = [undefined, false]));
  // After whatever came while the event loop was blocked has been heard.
  const look = () => { if (asked.length && instant().mono - asked[0].at > PATIENCE) lost(new Error("it did not answer within a second")); };
  listen = () => (timer ??= setInterval(() => (asked.length ? setImmediate(look) : (timer = clearInterval(timer))), PATIENCE / 4).unref());
  line.on("error", lost).on("end", () => lost(new Error("the watcher has ended the connection"))).on("close", () => lost(new Error("closed")));
  line.on("data", (said) => {
    const lines = (heard + said).split("\n");
    heard = lines.pop();
    try {
      for (const one of lines) hear(parsed(one));
      if (heard.length > MOST) throw new Error("an answer without end");
      if (up) tell();
    } catch (error) { lost(error); }
  });
  ask(undefined, { auth: nodes.token, overrun: nodes.overrun });
  return line;
}

function ask(lease, words) {
  asked.push({ at: instant().mono, lease, until: words.until_ns });
  listen();
  socket.write(`${JSON.stringify(words)}\n`);
}

function tell() {
  for (const lease of dirty) {
    if (asked.length >= AT_ONCE) return;
    dirty.delete(lease);
    const { _name: under, _secret: secret, _until: until } = lease;
    if (leases.get(under) !== lease) continue; // another has its name
    ask(lease, lease._over ? { end: under } : { under, secret, until_ns: Math.floor((until + offset) * 1e6) });
  }
}

function hear(answer) {
  if (!has(answer, ANSWER) || !asked.length) throw new Error("this is no watcher");
  const { lease, until } = asked.shift();
  // Its clock less ours, and never more than that: it was read before this came. A greater one is nearer to the truth.
  offset = Math.max(offset, answer.now_ns / 1e6 - instant().mono);
  const [detail, kills] = [answer.detail ?? answer.why ?? "", lease ? ns(answer.kill_ns) : answer.kill];
  if (lease && !until) { // its end
    if (leases.get(lease._name) === lease) leases.delete(lease._name);
    return lease._know();
  }
  if (!lease && !answer.ok) throw new Error(detail);
  if (!lease && "again" in answer) return ask(undefined, { again: answer.again });
  if (lease) {
    lease._passed = !answer.ok && detail.startsWith("until_ns has passed");
    if (kills) lease._arm((until - answer.kill_ns) / 1e6);
  } else {
    [up, down] = [true, false];
    dirty = new Set(leases.values());
  }
  const lacks = [kills ? "" : "it is not killed in time", answer.release ? "" : "its death gives nothing back"].filter(Boolean);
  if (!answer.ok || lacks.length > 1) note(lease, `not watched: ${detail}`);
  else note(lease, lacks.length ? `watched, but ${lacks[0]}: ${detail}` : "watched", !lacks.length);
  lease?._know();
}
