// Run this while I am the one: the client of Soloist. No dependency beyond Node's own modules.
//
// | module | what it does |
// | --- | --- |
// | line.js | the clocks; HTTP to one of several nodes, with time-outs, fail-over and a few connections; the live stream |
// | keep.js | renews and watches all that is held, whatever its number |
// | client.js | leases, turns and tasks: the deadline, the interrupt |
// | life.js | the life line: tells the watcher of a node on this machine under what this process works |
// | end.js | the last words of a process, and its end |
// | watchdog.js | ends the process at the deadline, from a thread of its own |
//
// It stores nothing and decides nothing: the node says who may work.
export { Dead, Hold, Lease, Loop, NotGranted, releaseOnExit, Retry, Soloist, Stopped, Task, Tick, Turn } from "./client.js";
export { Refused, SoloistError, Unreachable } from "./line.js";
export const version = "0.1.0";
