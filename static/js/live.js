// The socket: connects, comes back with jitter, notices silence. Frames are the server's own rendering (rows.js).

import * as alerts from "./alerts.js";
import { correct } from "./clock.js";
import * as log from "./log.js";
import * as mark from "./mark.js";
import * as notices from "./notices.js";
import * as rotations from "./rotations.js";
import { moved } from "./row.js";
import * as rows from "./rows.js";
import { onNow } from "./truth.js";

/** After this long without a frame the server is asked for a sign of life; late, the mark says so; later, enough. */
const [QUIET, LATE, DEAD] = [5000, 6000, 9000];
/** `REFUSED` is a policy violation: signed out, or the account changed. */
const [FIRST, LONGEST, REFUSED] = [250, 4000, 1008];

let [heard, tries, probed, whole, socket, timer] = [0, 0, false, false];

const frames = {
  hello: ({ at }) => at && correct(at),
  log: log.add,
  moved,
  ...mark.frames,
  ...rotations.frames,
  ...rows.frames,
  ...alerts.frames,
};

function send(message) {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
}

function open() {
  clearTimeout(timer);
  if (socket || (document.hidden && !notices.on())) return;
  const address = new URL(document.body.dataset.live, location.href);
  address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  const mine = new WebSocket(address, ["soloist.html.v1"]);
  socket = mine;
  heard = Date.now();
  whole = probed = false;
  mine.onopen = () => [log, rotations].map((part) => part.wanted()).forEach((what) => what && send(what));
  mine.onmessage = ({ data }) => {
    if (mine !== socket) return;
    heard = Date.now();
    probed = false;
    tries = 0;
    const frame = JSON.parse(data);
    frames[frame.type]?.(frame);
    if ((whole ||= frame.type === "snapshot")) mark.live();
  };
  mine.onclose = ({ code }) => mine === socket && closed(code);
}

/** `since` when the node says nothing: an open socket confirmed what is shown. */
function closed(code, since = Date.now()) {
  socket = undefined;
  const goOn = () => comeBack(since);
  // The session may have ended: then coming back is no use. A handshake that is refused has no code.
  if (code === REFUSED || tries === 3) mark.refused(goOn);
  else goOn();
}

function comeBack(since) {
  // Jitter over the whole time: thousands of pages do not come back in the same moment.
  const wait = FIRST / 5 + Math.random() * Math.min(LONGEST, FIRST * 2 ** tries++);
  clearTimeout(timer);
  timer = setTimeout(open, wait);
  mark.lost(since);
}

function drop() {
  const old = socket;
  closed(0, heard);
  old?.close();
}

function watch() {
  const silent = Date.now() - heard;
  if (!socket || (document.hidden && !notices.on()) || silent < QUIET) return;
  if (probed && silent > DEAD) return drop();
  if (probed && silent > LATE) mark.lost(heard);
  // Any answer will do, also that there is no such job.
  if (!probed) send({ type: "unfollow", id: 0, job: "-" });
  probed = true;
}

export function start() {
  if (!document.body.dataset.live || !("WebSocket" in window)) return;
  const now = () => (tries = 0, open());
  open();
  setInterval(watch, 1000);
  document.addEventListener("visibilitychange", () => document.hidden || now());
  // An open socket would keep the page out of the back-forward cache.
  addEventListener("pagehide", () => (clearTimeout(timer), socket?.close(), (socket = undefined)));
  addEventListener("pageshow", (event) => event.persisted && (mark.lost(heard), open()));
  addEventListener("online", now);
  onNow(now);
}
