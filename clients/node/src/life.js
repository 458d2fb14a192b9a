// The life line: a program on a machine that runs a node is watched as a script is. Knows lines of JSON on a socket, and nothing of HTTP.
//
// The watcher is told under which lease the work is and until when it must be over. It kills the process by then, and when the kernel says that
// the process is dead the lease is given back. It comes on top of the deadline that client.js and watchdog.js keep.
//
// One connection serves all leases of a process, and keeps no process alive. What is not answered within a second is no watch; then it connects
// anew, and says all again. Good news are for NODE_DEBUG=soloist; what is missing is a warning.
//
// All times are in milliseconds, but for those whose name ends with `ns`.
import { existsSync } from "node:fs";
import { connect } from "node:net";
import { debuglog } from "node:util";
import { between, has, instant, parsed, whole } from "./line.js";

// Where packages and images have it. The variable names another; empty, it names none.
const [USUAL, NAMED] = ["/run/soloist/lifeline.sock", "SOLOIST_LIFELINE"];
// An answer that comes later is none; and so long an end is waited for before the lease is given back. Lines that wait for their answers; what one
// answer may have.
const [PATIENCE, PARTING, AT_ONCE, MOST] = [1000, 100, 64, 2 ** 16];
const ANSWER = { ok: (ok) => typeof ok === "boolean", now_ns: whole };
const debug = debuglog("soloist");

/** What the watcher is told of one lease. `armed` is called with the time between the kill and the instant that was told. */
export class Work {
  constructor(name, secret, until, armed) {
    Object.assign(this, { name, secret, until, armed, over: false, passed: false, state: "" });
    this.expect();
  }

  /** From now on `known` waits for an answer, or for there being none. */
  expect() { this.known = new Promise((resolve) => Object.assign(this, { know: resolve })); }

  wait(most) {
    let timer;
    const late = new Promise((resolve) => (timer = setTimeout(resolve, most)));
    return Promise.race([this.known, late]).finally(() => clearTimeout(timer));
  }
}

const works = new Map();
let [socket, up, down, failed, state, dirty, asked, offset] = [undefined, false, false, 0, "", new Set(), [], -Infinity];

/** Before the work begins. Waits for the answer, for a second at most. */
export async function begin(nodes, work) {
  const where = process.env[NAMED] ?? (existsSync(USUAL) ? USUAL : "");
  if (!where) return note(undefined, `not watched: there is no ${USUAL}, and ${NAMED} names none`, true);
  works.set(work.name, work);
  say(work);
  if (!socket) open(where, nodes);
  if (!down) await work.wait(PATIENCE);
}

/** Something is new. Waits for nothing. */
export function say(work) {
  if (works.get(work.name) !== work) return;
  dirty.add(work);
  if (up) tell();
}

/** The work has ended. */
export async function end(work) {
  if (works.get(work.name) !== work) return;
  work.expect();
  work.over = true;
  say(work);
  if (up) await work.wait(PARTING);
}

/** Says how it is watched, once, and when that changes. */
function note(work, now, good) {
  const before = work?.state || state;
  if (work) work.state = now;
  else state = now;
  if (now === before) return;
  const words = `life line: ${work ? `${work.name}: ` : ""}${now}`;
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
    for (const work of works.values()) work.know((work.state = ""));
    setTimeout(again, between(0.5, 1) * 30 * 2 ** failed).unref();
  };
  // Who needs it makes it anew.
  const again = () => (works.size ? open(where, nodes) : ([socket, down] = [undefined, false]));
  // After whatever came while the event loop was blocked has been heard.
  const look = () => { if (asked.length && instant().mono - asked[0].at > PATIENCE) lost(new Error("it did not answer within a second")); };
  timer = setInterval(() => setImmediate(look), PATIENCE / 4).unref();
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

function ask(work, words) {
  asked.push({ at: instant().mono, work, until: words.until_ns });
  socket.write(`${JSON.stringify(words)}\n`);
}

function tell() {
  for (const work of dirty) {
    if (asked.length >= AT_ONCE) return;
    dirty.delete(work);
    const { name: under, secret, until } = work;
    if (works.get(under) !== work) continue; // another has its name
    ask(work, work.over ? { end: under } : { under, secret, until_ns: Math.floor((until + offset) * 1e6) });
  }
}

function hear(answer) {
  if (!has(answer, ANSWER) || !asked.length) throw new Error("this is no watcher");
  const { work, until } = asked.shift();
  // Its clock less ours, and never more than that: it was read before this came. A greater one is nearer to the truth.
  offset = Math.max(offset, answer.now_ns / 1e6 - instant().mono);
  const [detail, kills] = [answer.detail ?? answer.why ?? "", work ? whole(answer.kill_ns) : answer.kill];
  if (work && !until) { // its end
    if (works.get(work.name) === work) works.delete(work.name);
    return work.know();
  }
  if (!work && !answer.ok) throw new Error(detail);
  if (!work && "again" in answer) return ask(undefined, { again: answer.again });
  if (work) {
    work.passed = !answer.ok && detail.startsWith("until_ns has passed");
    if (kills) work.armed((until - answer.kill_ns) / 1e6);
  } else {
    [up, down] = [true, false];
    dirty = new Set(works.values());
  }
  const lacks = [kills ? "" : "it is not killed in time", answer.release ? "" : "its death gives nothing back"].filter(Boolean);
  if (!answer.ok || lacks.length > 1) note(work, `not watched: ${detail}`);
  else note(work, lacks.length ? `watched, but ${lacks[0]}: ${detail}` : "watched", !lacks.length);
  work?.know();
}
