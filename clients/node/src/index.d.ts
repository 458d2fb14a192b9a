// All times are in milliseconds.

export interface HoldOptions {
  /** So long before the deadline the work is asked to stop, at most a fifth of the lease. Default 1000. */
  grace?: number;
  /** What happens when the work has not ended in time: "exit" (default) ends the process with code 76 and says why; if the work blocks
   *  the event loop a watchdog thread kills it. A function gets the lease; then it is yours to stop the work. */
  onOverrun?: "exit" | ((hold: Hold) => void);
}
export interface LeaseOptions extends HoldOptions {
  /** Of a name that is no job: how long the lease lasts unrenewed. */
  ttl?: number;
}
export interface Waiting {
  /** At most so long; then `NotGranted`. Default: for ever. */
  wait?: number;
  /** Ends the waiting. */
  signal?: AbortSignal;
}
export interface TurnOptions extends HoldOptions, Waiting {
  /** The `lease_ms` of the rotation's rules, or a shorter time. Left out, the rules are asked for, which a collector's token may not. */
  lease?: number;
  worker?: string;
}
export interface CollectOptions {
  /** The `lease_ms` of the source's rules, or a shorter time. Left out, the rules are asked for, which a collector's token may not. */
  lease?: number;
  /** How many tasks at once. Default 1. */
  parallel?: number;
  collector?: string;
}
/** A frame of the live stream; docs/live.md has them all. */
export interface Frame {
  type: string;
  [key: string]: unknown;
}

/** Something that is held until a deadline. */
export class Hold {
  /** The fencing token: grows with every grant. A sink can refuse older ones. */
  readonly token: number;
  /** Aborts when the work must end. */
  readonly signal: AbortSignal;
  /** Why: `off`, `held`, `moved`, `drained`, `removed`, `timed_out`, `closed`, or a sentence. */
  readonly reason: string | undefined;
  /** Until the deadline; never negative. */
  readonly remaining: number;
  /** Whether this process may still work, for `need` more. Reads the clocks, so it is right at once after a pause. */
  held(need?: number): boolean;
  /** Throws `Stopped` unless the work may go on. To be called before every act that must not be done twice. */
  check(): void;
}
/** The right to be the only one. */
export class Lease extends Hold {
  /** The run of the job that this grant is, if its name is a job. */
  readonly run: string | null | undefined;
  /** Moves the job's progress bar, with the next renewal. */
  progress(done: number, total: number, note?: string): void;
  /** A line of the job's output, sent with the next renewal: at least once. */
  log(line: string): void;
}
/** One tick of a job with a schedule, and the lease under which its work runs. */
export class Tick extends Lease {
  /** As `settle@2026-11-27T02:30+08:00[Asia/Shanghai]`: the same in every attempt. */
  readonly name: string;
  /** When it was due. */
  readonly due: Date;
  /** From 1. */
  readonly attempt: number;
  /** So long after its time it was granted. */
  readonly lateMs: number;
  /** Every parameter of the job, as text. */
  readonly params: Record<string, string>;
}
/** A turn of a rotation. The work may set the three fields. */
export class Turn extends Hold {
  outcome: "done" | "empty";
  /** The type that comes next. */
  next?: string;
  /** RFC 3339: no turn starts before. */
  notBefore?: string;
}
/** One task in this collector's hands. */
export class Task extends Hold {
  readonly id: string;
  readonly key: string;
  readonly source: string;
  readonly payload: any;
  readonly attempt: number;
}
/** The same again and again until `close()`. */
export class Loop {
  /** The lease, while it is held and the work runs, and the last one afterwards. */
  readonly hold: Hold | undefined;
  /** Asks the work to stop, begins nothing more, and waits until all has ended; not, if its own work calls it. */
  close(): Promise<void>;
}
/** From now on a signal (default: SIGTERM and SIGINT) asks all work to stop, and ends the program when all was given back, or after the grace of the
 *  work. If the program listens to it, too, then it is what ends the program. */
export function releaseOnExit(...signals: string[]): void;

/** A cluster of Soloist nodes, by the addresses of some of them (`http://a:8080`). */
export class Soloist {
  /** `holder` is the name by which people find this process; default: host and process id. `overrun`: then the watcher of the life line never kills
   *  this process, as for one under a debugger. */
  constructor(addresses: string | string[], options: { token: string; holder?: string; overrun?: "leave" });
  /** Waits for the lease, does the work, and gives it back when the work has ended. */
  lease<T>(name: string, work: (lease: Lease) => Promise<T> | T, options?: LeaseOptions & Waiting): Promise<T>;
  /** The same again and again until `close()`. */
  runWhileLeader(name: string, work: (lease: Lease) => Promise<unknown> | unknown, options?: LeaseOptions): Loop;
  /** Does the work once for each tick of a job with a schedule that this process is granted, until `close()`. Returning is done; what it throws is a failed
   *  tick, tried again by the job's `retries`. It must end soon after `tick.signal` aborts, by `tick.check()`, which throws then: a tick that
   *  its own program stops is a loss, and the job's `on_loss` follows. */
  scheduled(job: string, work: (tick: Tick) => Promise<unknown> | unknown, options?: HoldOptions): Loop;
  /** Waits for a turn, does the work, and passes it. */
  turn<T>(rotation: string, type: string, work: (turn: Turn) => Promise<T> | T, options?: TurnOptions): Promise<T>;
  /** Tasks: returning is done; throwing `Retry` or `Dead` says so; anything else that is thrown is another try. */
  collect(source: string, handler: (task: Task) => Promise<unknown> | unknown, options?: CollectOptions): Loop;
  /** The frames of the live stream, with the log lines of the jobs `logs`. After every gap a snapshot comes first. */
  follow(logs?: string | string[], options?: { signal?: AbortSignal }): AsyncGenerator<Frame, void>;
}

/** Anything that Soloist, or the way to it, says no to. */
export class SoloistError extends Error {}
/** A node understood and refused. */
export class Refused extends SoloistError {
  readonly status: number;
  readonly detail: string;
}
/** No node answered: what was asked may or may not have been done. */
export class Unreachable extends SoloistError {}
/** It was not had in time. */
export class NotGranted extends SoloistError {
  readonly answer: { reason: string; holder?: string | null };
}
/** The work must end now. */
export class Stopped extends Error {}
/** The task is to be tried again, after `delay` or else after the source's backoff. */
export class Retry extends Error {
  constructor(text?: string, delay?: number);
}
/** The task is never to be tried again. */
export class Dead extends Error {}
export const version: string;
