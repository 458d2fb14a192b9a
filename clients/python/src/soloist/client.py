"""May this process still work? Leases, turns and tasks, each kept by renewing it; the deadline, the interrupt and the watchdog.

The deadline counts from before the last renewal that was answered was sent. An answer that says no (409) ends the hold at once. No
answer means nothing: the next node is asked, until the deadline. What the node says of the length counts, never what this
program wished. What was waited for is renewed once before the work begins: it may be as old as the question. What is held is
given back when the work has ended and not before.

What is held costs no thread: `keep` has three for all. The one that keeps the deadlines takes, from "the deadline is near" to the end of the process, no
lock that others keep while they wait, logs nothing and waits for nobody: not for a handler, not for who reads standard error. It needs the
interpreter's lock: native code that keeps that lock past the deadline delays it, and only the token helps then.

What is held is this process's. A forked child has nothing: its `check()` fails at once, and it neither renews nor gives back.
"""

from __future__ import annotations

import atexit, collections, contextlib, datetime, inspect, itertools, logging, math, os, random, signal, sys, threading, time, traceback, uuid
from _thread import allocate_lock, start_new_thread
from typing import Any, Callable, ContextManager, Deque, Dict, Iterator, List, Optional, Tuple, Union
from urllib.parse import quote

from .keep import POLL, TICK, deadlines, extends, held, renewals, stops
from .life import life
from .line import AGAIN, Line, Nodes, Refused, Shape, SoloistError, Unreachable, clock, frames, has, listed, own, span, text, whole
from .told import tell

Overrun = Union[str, Callable[[Any], None]]

# As `soloist run` when its lease was lost.
EXIT_CODE = 76
ADVICE = "This process ends now, because another may begin. Call check() between the acts, or give on_overrun a function."
# Clocks may run 1 % apart.
TRUST = 0.99
# Seconds that the work has when it could not be told before the deadline, as after a pause.
LAST_CHANCE = 0.1
# So long before the deadline the process begins to end, a tenth of the lease within bounds: on a busy machine, and among busy threads, that takes its time.
# LAST_WORDS: so long its reason may take to be written. SOON: nobody is told later than this.
# BEFORE_KILL: so long before the watcher kills is the deadline of what is watched.
AHEAD, MOST_AHEAD, LAST_WORDS, SOON, BEFORE_KILL = 0.05, 0.2, 0.02, 0.15, 0.05
# Seconds of one long poll, and for its answer: a node that is paused hides a grant no longer.
WAIT, SLACK = 10.0, 2.0
# HTTP: it is over, or another's.
LOST = (404, 409)
# What a node says, by its fields. A longer length than was granted is not trusted, and this many times as long is no node's.
BUSY: Shape = {"reason": text, "retry_in_ms": whole}
NO_TURN: Shape = {"reason": text, "ahead": whole}
GRANT: Shape = {"secret": text, "token": whole, "expires_in_ms": span, "renew_every_ms": span}
TURN: Shape = {"turn": text, "token": whole, "lease_until": text}
TASK: Shape = {"id": text, "key": text, "source": text, "payload": lambda _: True, "token": whole, "attempt": whole}
STOP: Shape = {"why": text, "within_ms": whole}
DUE: Shape = {"tick": text, "due": text, "attempt": whole, "late_ms": whole, "params": lambda params: isinstance(params, dict)}
RULES: Shape = {"lease_ms": span}
REFUSED: Shape = {"status": lambda status: type(status) is int and 400 <= status < 500 and status not in AGAIN, "detail": text}
EXTENDED: Shape = {"kept": lambda kept: isinstance(kept, list), "lost": lambda lost: isinstance(lost, list)}
WORK: Shape = {"tasks": listed(TASK)}
RESULTS: Shape = {"results": listed({"id": text, "status": text})}
HANDED: Shape = {**RESULTS, "claim": lambda claim: has(claim, WORK) and (text(claim.get("claim")) or not claim["tasks"])}
LONGER = 10
ASYNC = "the work is a coroutine, which nobody would run: give a function, which may call asyncio.run"
FORKED = "this process was forked: what its parent holds is its parent's"
# Lines that wait to be sent, the oldest go first; lines in a renewal and characters in a line: a node takes 64 KiB.
KEPT, AT_ONCE, LONGEST = 1000, 30, 500


def thread(run: Callable[..., None], what: str, *args: Any) -> threading.Thread:
    return threading.Thread(target=run, args=args, name=f"soloist {what}", daemon=True)


def until(wait: Optional[float]) -> float:
    """When a wait of so many seconds is over."""
    return math.inf if wait is None else clock() + wait


def quoted(name: str) -> str:
    """In a path. What no encoder takes, or leads to another path, is the caller's error, and is not tried again and again."""
    if name in ("", ".", ".."): raise ValueError(f"{name!r} is no name")
    return quote(name, safe="")


def plain(work: Callable[[Any], Any]) -> Callable[[Any], None]:
    """The work, if it is no coroutine: nobody here would run that."""
    def does(hold: Any) -> None:
        if inspect.iscoroutine(said := work(hold)):
            said.close()
            raise TypeError(ASYNC)
    if inspect.iscoroutinefunction(work): raise TypeError(ASYNC)
    return does


# Loops, which are to be asked to stop when the program ends. Emptied in a forked child.
running: Dict[int, Any] = {}
if hasattr(os, "register_at_fork"): os.register_at_fork(after_in_child=running.clear)


@atexit.register
def leave() -> None:
    """The program ends: asks all work to stop, begins nothing more, and waits until all was given back, for as long as the grace of the work."""
    all = [*list(held.values()), *list(running.values())]  # what a loop holds ends before it
    end = clock() + max((each._grace for each in all), default=0.0)
    for each in all: each._interrupt("the program ends")
    for each in all: each._gone(end)


def release_on_exit(*signals: int) -> None:
    """From now on a signal (default: SIGTERM, for which Python calls no `atexit`) asks all work to stop, and ends the program when all was given back,
    or after the grace of the work. A handler that stands is called as before, and then it is what ends the program. To be called by the main thread."""
    def listen(number: int, before: Any) -> None:
        def by_signal() -> None:
            leave()
            if not callable(before):
                os.kill(os.getpid(), number)
                time.sleep(1.0)
                os._exit(128 + number)  # the first process of a container, which that does not end

        def handle(got: int, frame: Any) -> None:
            if not callable(before):
                signal.signal(got, before)  # who sends a second one means at once
            # All else in a thread: what is interrupted here may have any lock.
            start_new_thread(by_signal, ())
            if callable(before): before(got, frame)
        if before not in (signal.SIG_IGN, None): signal.signal(number, handle)
    for number in signals or (signal.SIGTERM,): listen(number, signal.getsignal(number))


class Stopped(Exception):
    """The work must end now: somebody asked for it, or the deadline is near or over."""


# No work was begun.
UNUSED = Stopped("unused")
OWN_END = ("closed", "the program ends")


class NotGranted(SoloistError):
    """It was not had in time. `answer` is the node's: `reason` is one word (`busy`, `not_wanted`), `holder` who has it."""

    def __init__(self, text: str, answer: Dict[str, Any]) -> None:
        super().__init__(text)
        self.answer = answer


class Hold:
    """Something that is held until a deadline: a lease, a turn, a task."""

    reason: Optional[str] = None
    """Why `stopping` is set: `off`, `held`, `moved`, `drained`, `removed`, `timed_out`, `closed`, or a sentence."""

    _answers: Tuple[Shape, ...] = ()
    """To a request for it."""

    def __init__(self, nodes: Nodes, what: str, path: str, grace: float, on_overrun: Optional[Overrun]) -> None:
        self.stopping = threading.Event()
        """Set when the work must end."""
        self._what, self._path, self._grace, self._on_overrun = what, path, grace, on_overrun
        self._deadline, self._until, self._margin, self._length, self._token, self._due = -math.inf, -math.inf, 0.0, 0.0, 0, math.inf
        # When the last answered renewal was sent.
        self._stop_at, self._told_at, self._asked = math.inf, math.inf, -math.inf
        # The work has ended; and that was said.
        self._line, self._ended, self._given = Line(nodes), threading.Event(), threading.Event()
        own.add(self)

    def _forked(self) -> None:
        for event in (self.stopping, self._ended, self._given):
            threading.Event.__init__(event)  # a thread of the parent may have had its lock
            event.set()
        self.reason, self._deadline = FORKED, -math.inf

    def token(self) -> int:
        """The fencing token: grows with every grant. A sink can refuse older ones."""
        return self._token

    def remaining(self) -> float:
        """Seconds until the deadline, never negative."""
        return max(0.0, self._deadline - clock())

    def held(self, need: float = 0.0) -> bool:
        """Whether this process may still work, for `need` more seconds. Reads the clock, so it is right at once after a pause."""
        return not self._ended.is_set() and self.remaining() > need

    def check(self) -> None:
        """Raises `Stopped` unless the work may go on. To be called before every act that must not be done twice."""
        if not self.held(): self._interrupt("the deadline is over")
        if self.stopping.is_set(): raise Stopped(self.reason)

    _renew: Callable[[Line, float], bool]
    """One try at one node, which may wait for so long."""
    _take: Callable[[Dict[str, Any]], bool]
    """Takes what is granted; false when the answer grants nothing."""
    _secret, _keeper = "", extends
    """With which it is renewed together with others."""

    def _waits(self) -> bool:
        """Whether it may be told to stop, and was not yet."""
        return False

    def _pause(self) -> float:
        """Seconds between a renewal and the next."""
        return self._length / 3

    def _post(self, line: Line, path: str, body: Any, shape: Shape, wait: float = 0.0) -> Any:
        """One try. Its time is bounded so that another node can still be asked before the deadline."""
        return line.once("POST", path, body, wait + max(0.25, min(1.0, (self.remaining() - wait) / 3)), shape)

    def _trust(self, sent: float, length: float) -> None:
        """Moves the deadline: `length` seconds, counted from before the request was sent."""
        if sent >= self._asked:  # else a later one was answered, or it is lost
            self._asked, self._length, self._until = sent, length, sent + length * TRUST
            self._deadline, self._due = self._until - self._margin, sent + self._pause()

    def _interrupt(self, reason: str, within: float = math.inf) -> None:
        self._stop_at = min(self._stop_at, clock() + within)
        deadlines.soon(min(self._deadline, self._stop_at) - MOST_AHEAD)
        if not (self.stopping.is_set() or self._ended.is_set()):
            self.reason, self._told_at = reason, clock()
            self.stopping.set()
            self._due = min(self._due, clock() + self._pause())
            self._keeper.soon(self._due)
            tell(logging.INFO, "%s: the work is asked to stop: %s", self._what, reason)

    def _acquire(self, line: Line, path: str, ask: Dict[str, Any], end: float) -> None:
        self._keeper.begin()
        deadlines.begin()
        request, first = uuid.uuid4().hex, True
        while True:
            # The first question waits for nothing.
            with contextlib.nullcontext(0.0) if first else line.waits(min(WAIT, max(0.0, end - clock()))) as most:
                sent = clock()
                left = max(0.0, end - sent)
                # Of what is left so much is kept that another node can still be asked.
                timeout = min(most + SLACK, max(0.25, (end + SLACK - sent) * 2 / 3))
                poll = max(0.0, min(most, left, timeout - SLACK / 2))
                try:
                    answer = line.once("POST", path, {**ask, "request_id": request, "wait_ms": int(poll * 1000)}, timeout, *self._answers)
                except Unreachable:
                    if line.over.wait(min(line.pause(), end + SLACK - clock())) or clock() >= end + SLACK: raise
                    continue
            if self._take(answer) and self._confirm(line, sent, end + SLACK): return self._start()
            if self._token:
                request, self._token = uuid.uuid4().hex, 0  # that grant is over; another is another
            elif clock() >= end:
                raise NotGranted(f"{self._what}: {answer.get('reason')}", answer)
            elif clock() - sent < poll / 2:
                # It did not wait: the node knows that it cannot be soon.
                line.over.wait(random.uniform(0.5, 1.0) * min(5.0, max(0.2, answer.get("retry_in_ms", 0) / 1000), left))
            first = False

    def _confirm(self, line: Line, sent: float, end: float = math.inf) -> bool:
        """Renews a grant that was first asked for at `sent`, unless that was just now; whether it is worth something, as is known before `end`."""
        sure, self._asked = clock() - sent < self._length / 10, -math.inf
        self._trust(sent if sure else clock(), self._length)
        while not sure and self.held() and clock() < end and not line.over.wait(self._line.pause()):
            sure = bool(self._try(self._renew, self._line, 0.0))
        self._stop_at = self._told_at = math.inf
        self.stopping.clear()  # an order to stop that is still true comes again
        return sure

    def _start(self) -> None:
        for each in (self._keeper, deadlines, stops)[: 3 if self._waits() else 2]: each.begin()
        held[id(self)] = self
        self._keeper.soon(self._due)
        deadlines.soon(self._near())
        if self._waits(): stops.anew()

    def _gone(self, end: float) -> None:
        """Waits until the work has ended, and then for what that says."""
        if self._ended.wait(max(0.0, end - clock())): self._given.wait(SLACK)

    def _finish(self) -> None:
        self._ended.set()
        self._given.set()
        held.pop(id(self), None)

    def _try(self, renew: Callable[..., bool], *args: Any, soon: bool = True) -> Optional[bool]:
        """Whether a node answered; None when it refused."""
        if soon: self._due = clock() + SOON
        try:
            return renew(*args)
        except Refused as error:
            # After LOST it may be another's already.
            self._deadline, self._asked = (-math.inf, math.inf) if error.status in LOST else (self._deadline, self._asked)
            self._due = clock() + self._pause()
            self._interrupt(f"refused: {error.detail}")
            return None
        except Exception as error:
            tell(logging.INFO, "%s: not renewed yet: %s", self._what, error)
            return False

    def _near(self) -> float:
        """From when on the work must stop."""
        return self._deadline - min(max(self._grace, SOON), self._length / 5)

    def _look(self) -> float:
        """By the thread that keeps the deadlines. When to look again."""
        if self._ended.is_set(): return math.inf
        if clock() >= self._near(): self._interrupt("it was not renewed in time")
        if not self.stopping.is_set(): return self._near()
        ahead = max(AHEAD, min(MOST_AHEAD, self._length / 10)) if self._on_overrun == "exit" else 0.0
        end = max(min(self._deadline, self._stop_at) - ahead, self._told_at + LAST_CHANCE)
        return end if clock() < end else self._overrun()

    def _overrun(self) -> float:
        if self._on_overrun != "exit":
            with contextlib.suppress(RuntimeError):  # no more threads: once more
                if self._on_overrun: start_new_thread(self._on_overrun, (self,))
                self._on_overrun = None
            return math.inf if not self._on_overrun else clock() + TICK
        try:
            said = allocate_lock()
            said.acquire()
            start_new_thread(self._last_words, (said,))
            said.acquire(timeout=LAST_WORDS)  # who reads them may stand still: this is all that they get
        finally:
            os._exit(EXIT_CODE)

    def _last_words(self, said: Any) -> None:
        with contextlib.suppress(Exception):
            os.write(2, f"soloist: {self._what} (token {self._token}): {self.reason}, and the work has not ended in time. {ADVICE}\n".encode("utf-8", "replace"))
            for thread, frame in sys._current_frames().items():  # not by `faulthandler`, which keeps the interpreter's lock while it writes
                at = itertools.islice(traceback.walk_stack(frame), 50)
                lines = "".join(f'  File "{one.f_code.co_filename}", line {line} in {one.f_code.co_name}\n' for one, line in at)
                os.write(2, f"Thread {thread}, the innermost call first:\n{lines}".encode("utf-8", "replace"))
        said.release()

    def _end(self, path: str, body: Any, shape: Shape) -> None:
        """The work has ended: says so, if it is still ours."""
        left = self.remaining()
        self._ended.set()
        try:
            if left: self._line.call("POST", path, body, min(SLACK, left / 2), left, shape)
        except SoloistError as error:
            tell(logging.WARNING, "%s: not given back, so it runs out by itself: %s", self._what, error)
        finally:
            self._finish()


class While(contextlib.AbstractContextManager):  # type: ignore[type-arg]
    """Waits for a hold, and gives it back. Whatever strikes in between, an exception of a signal too: nothing is kept by nobody."""

    def __init__(self, hold: Any, begin: Callable[[], None], end: Callable[[Any], None]) -> None:
        self._hold, self._begin, self._end = hold, begin, end

    def __enter__(self) -> Any:
        try:
            self._begin()
            return self._hold
        except BaseException as error:
            self.__exit__(type(error), UNUSED, None)
            raise

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._hold._ended.set()  # nobody is to be stopped any more
        try:
            if self._hold._token: self._end(error)
        finally:
            self._hold._finish()

    def __del__(self) -> None:
        self._hold._finish()


class Retry(Exception):
    """`Retry("why", 5.0)`: the task is to be tried again, after so many seconds or else after the source's backoff."""


class Dead(Exception):
    """The task is never to be tried again."""


class Lease(Hold):
    """The right to be the only one. `run`: the run of the job that this grant is, if its name is a job."""

    run: Optional[str] = None
    _secret, _keeper, _every = "", renewals, POLL
    # Of the life line.
    _over, _passed, _state = False, False, ""
    _progress: Optional[Dict[str, Any]] = None
    # A node asked it to stop.
    _told = False
    _answers = (GRANT, BUSY)

    def __init__(self, nodes: Nodes, name: str, *args: Any) -> None:
        super().__init__(nodes, f"lease {name}", f"/api/v1/leases/{quoted(name)}", *args)
        self._name, self._known = name, threading.Event()
        # Numbered, for they may be sent by two threads.
        self._lines: Deque[Tuple[int, str]] = collections.deque(maxlen=KEPT)
        self._number = itertools.count(1)

    def progress(self, done: int, total: int, note: str = "") -> None:
        """Moves the job's progress bar, with the next renewal."""
        self._progress = {"done": int(done), "total": int(total), "note": str(note)[:LONGEST]}

    def log(self, line: str) -> None:
        """A line of the job's output, sent with the next renewal: at least once."""
        self._lines.extend((next(self._number), part[:LONGEST]) for part in str(line).splitlines() or [""])

    def _take(self, answer: Dict[str, Any]) -> bool:
        if "secret" in answer:
            self._secret, self._token, self.run = answer["secret"], int(answer["token"]), answer.get("run")
            self._length, self._every = answer["expires_in_ms"] / 1000, answer["renew_every_ms"] / 1000
            self._kept: Shape = {"expires_in_ms": lambda ms: span(ms) and ms <= LONGER * answer["expires_in_ms"],
                                 "stop": lambda stop: stop is None or has(stop, STOP)}
            self._most = self._length
        return "secret" in answer

    def _start(self) -> None:
        super()._start()
        life.begin(self._line.nodes, self)
        if self._passed:  # it is renewed first
            self._known.clear()
            if self._passed: self._known.wait(self._every + SOON)

    def _trust(self, sent: float, length: float) -> None:
        super()._trust(sent, length)
        life.say(self)

    def _release(self, error: Optional[BaseException]) -> None:
        life.end(self)
        with contextlib.suppress(SoloistError):  # the last words are worth one try
            while self._talks() and self.remaining():
                self._renew(self._line, 0.0)
        if isinstance(error, SystemExit) and not error.code: error = None
        end: Dict[str, Any] = {"end": "unused" if error is UNUSED else self._word(error, isinstance(error, Stopped) and self.stopping.is_set())}
        if end["end"] == "failed": end["error"] = f"{type(error).__name__}: {error}"[:LONGEST]
        self._end(f"{self._path}/release", {"secret": self._secret, **end}, {"released": lambda value: isinstance(value, bool)})

    def _word(self, error: Optional[BaseException], asked: bool) -> str:
        """How it ended. To end because one was asked to is no failure."""
        if error and not asked: return "failed"
        # Work that its own program asked to stop is not done: the next may begin at once, and a job that ends with its work is not off.
        return "unused" if self.reason in OWN_END else "done"

    def _arm(self, margin: float) -> None:
        """The watcher kills so long before the end of the lease: the work is over before."""
        self._margin = margin + BEFORE_KILL
        self._deadline = min(self._deadline, self._until - self._margin)
        deadlines.soon(self._near())

    def _waits(self) -> bool:
        return bool(self.run) and not self.stopping.is_set()

    def _talks(self) -> bool:
        """Whether its work has said what the job's page shows."""
        return bool(self.run and (self._lines or self._progress))

    def _said(self) -> Tuple[Dict[str, Any], Any, int]:
        """What a renewal carries; the progress and the last line of it."""
        progress, lines = (self._progress, list(self._lines)[:AT_ONCE]) if self.run else (None, [])
        words = {"secret": self._secret, "progress": progress, "lines": [line for _, line in lines]}
        return {key: value for key, value in words.items() if value}, progress, lines[-1][0] if lines else 0

    def _hear(self, sent: float, said: Tuple[Dict[str, Any], Any, int], answer: Any) -> bool:
        """False when this is no answer of a node."""
        words, progress, last = said
        kept, refused = has(answer, self._kept), has(answer, REFUSED)
        if refused and (answer["status"] in (401, 403, *LOST) or len(words) == 1):
            raise Refused(answer["status"], answer["detail"])
        if refused:  # what the work says must not cost it the lease
            tell(logging.WARNING, "%s: its output was refused and is dropped: %s", self._what, answer["detail"])
            self._due = clock()
        if kept or refused:
            self._progress = None if self._progress is progress else self._progress
            with contextlib.suppress(IndexError):
                while self._lines[0][0] <= last:
                    self._lines.popleft()
        if kept: self._trust(sent, min(answer["expires_in_ms"] / 1000, self._most))
        if kept and answer["stop"]:
            self._told = True
            self._interrupt(str(answer["stop"]["why"]), answer["stop"]["within_ms"] / 1000)
        return kept or refused

    def _renew(self, line: Line, wait: float) -> bool:
        said, sent, wait = self._said(), clock(), min(wait, self._every)
        try:
            answer = self._post(line, f"{self._path}/renew", {"wait_ms": int(wait * 1000), **said[0]}, self._kept, wait)
        except Refused as error:
            answer = {"status": error.status, "detail": error.detail}
        return self._hear(sent, said, answer)

    def _pause(self) -> float:
        """When it waits at a node for an order to stop, that renews it too."""
        return min(self._every * 2.5, self._length / 2) if self._waits() else self._every / 2 if self.stopping.is_set() else self._every


class Tick(Lease):
    """One tick of a job with a schedule, and the lease under which its work runs."""

    name = ""
    """As `settle@2026-11-27T02:30+08:00[Asia/Shanghai]`: the same in every attempt."""
    attempt: int = 0
    """From 1."""
    late_ms: int = 0
    """So long after its time it was granted."""
    params: Dict[str, str] = {}
    """Every parameter of the job, as text."""
    _due_at = ""

    @property
    def due(self) -> datetime.datetime:
        """When it was due; aware, in UTC."""
        return datetime.datetime.fromisoformat(self._due_at.replace("Z", "+00:00"))

    def _take(self, answer: Dict[str, Any]) -> bool:
        if has(answer, DUE):
            self.name, self._due_at, self.attempt, self.late_ms, self.params = (answer[field] for field in DUE)
        return super()._take(answer)

    def _word(self, error: Optional[BaseException], asked: bool) -> str:
        if not error: return "done"
        if self._told or not asked: return "failed"
        # It was begun, so it is not unused; and nobody knows how far it came.
        tell(logging.WARNING, "%s: stopped in the middle (%s): it is lost, and its `on_loss` follows", self.name, self.reason)
        return "lost"


class Turn(Hold):
    """A turn of a rotation. The work may set `outcome` (`done`, `empty`), `next` (a type) and `not_before` (RFC 3339)."""

    outcome: str = "done"
    next: Optional[str] = None
    not_before: Optional[str] = None
    _answers = (TURN, NO_TURN)

    def _take(self, answer: Dict[str, Any]) -> bool:
        if "turn" in answer: self._token, self._turn = int(answer["token"]), f"{self._path}/{answer['turn']}"
        return "turn" in answer

    def _renew(self, line: Line, wait: float) -> bool:
        sent = clock()
        self._post(line, f"{self._turn}/extend", {"token": self._token}, TURN)
        self._trust(sent, self._length)
        return True

    def _pass(self, error: Optional[BaseException]) -> None:
        said = {"token": self._token, "outcome": "empty" if error is UNUSED else "failed" if error else self.outcome, "next": self.next, "not_before": self.not_before}
        self._end(f"{self._turn}/pass", {key: value for key, value in said.items() if value is not None}, {"turn": text})


class Task(Hold):
    """One task in this collector's hands: `key`, `payload` (any JSON), `source`, `attempt` (from 1)."""

    def __init__(self, nodes: Nodes, claim: str, length: float, task: Dict[str, Any]) -> None:
        super().__init__(nodes, f"task {task['key']}", f"/api/v1/claims/{claim}/extend", 1.0, None)
        self.id, self.key, self.source, self.payload = task["id"], task["key"], task["source"], task["payload"]
        self.attempt, self._token, self._length = int(task["attempt"]), int(task["token"]), length

    def _renew(self, line: Line, wait: float) -> bool:
        sent = clock()
        if self.id not in self._post(line, self._path, None, EXTENDED)["kept"]:
            raise Refused(409, f"{self.key} is another's by now")
        self._trust(sent, self._length)
        return True

    def _work(self, handler: Callable[[Task], Any]) -> Dict[str, Any]:
        result: Dict[str, Any] = {"id": self.id, "token": self._token, "outcome": "done"}
        try:
            self._start()
            handler(self)
        except BaseException as error:  # the end of a thread is for its loop to say
            result.update(outcome="dead" if isinstance(error, Dead) else "retry", error=f"{type(error).__name__}: {(*error.args, '')[0]}"[:900])
            if isinstance(error, Retry) and len(error.args) > 1: result["delay_ms"] = int(error.args[1] * 1000)
        self._finish()
        if self.reason is FORKED: raise Stopped(FORKED)
        return result


class Loop(contextlib.AbstractContextManager):  # type: ignore[type-arg]
    """Threads that do the same again and again until `close()`. Also to be used by `with`."""

    def __init__(self, nodes: Nodes, what: str, count: int, once: Callable[[Line, Loop], None], grace: float) -> None:
        self.hold: Optional[Hold] = None
        """The lease, while it is held and the work runs."""
        self._what, self._once, self._grace, self._lines = what, once, grace, [Line(nodes) for _ in range(count)]
        self._threads = [thread(self._run, what, line) for line in self._lines]
        running[id(self)] = self
        for each in self._threads: each.start()

    def close(self, timeout: Optional[float] = None) -> bool:
        """Asks the work to stop, begins nothing more, and waits until all has ended. False: not within `timeout` seconds a thread. Of the
        thread that calls it nothing is waited for."""
        self._interrupt("closed")
        if self.hold: self.hold._interrupt("closed")
        return self.wait(timeout)

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits until all has ended, which is when it was closed: the end of a program that does nothing else."""
        others = [each for each in self._threads if each is not threading.current_thread()]
        for each in others: each.join(timeout)
        return not any(each.is_alive() for each in others)

    def _interrupt(self, reason: str) -> None:
        running.pop(id(self), None)
        for line in self._lines: line.cut()

    def _gone(self, end: float) -> None:
        for each in self._threads: each.join(max(TICK, end - clock()))

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _run(self, line: Line) -> None:
        failed = 0
        while not line.over.is_set():
            try:
                self._once(line, self)
                failed = 0
            except BaseException as error:  # also what ends a thread: the next run may go well
                if line.forked: raise
                failed = 0 if isinstance(error, Stopped) else failed + 1
                tell(logging.WARNING, "%s: %s", self._what, error, exc_info=None if isinstance(error, (Stopped, SoloistError)) else error)
            # Work that ends at once, or fails again and again, costs the cluster little.
            line.over.wait(random.uniform(0.1, 0.2) * min(150.0, 2.0 ** min(failed, 8)))


class Soloist(Nodes):
    """A cluster of Soloist nodes: `Soloist(["http://a:8080", "http://b:8080"], token="sol_...")`."""

    def lease(self, name: str, *, ttl: Optional[float] = None, wait: Optional[float] = None, grace: float = 1.0,
              on_overrun: Overrun = "exit", line: Optional[Line] = None) -> ContextManager[Lease]:
        """A lease to be used by `with`: waited for, at most `wait` seconds (None: for ever), and given back at the end.

        `ttl`: seconds, for a name that is no job. `grace`: so many seconds before the deadline the work is asked to stop, at
        most a fifth of the lease. `on_overrun`: what happens when the work has not ended in time, "exit" (the process
        ends with code 76 and says why) or a function that gets the lease. `line`: whose `cut` ends the waiting.

        Raises `NotGranted` after `wait`, `Refused` when a node says no for good, `Unreachable` when none answers in time.
        """
        lease, ask = Lease(self, name, grace, on_overrun), {"holder": self.holder, **({} if ttl is None else {"ttl_ms": int(ttl * 1000)})}
        return While(lease, lambda: lease._acquire(line or lease._line, lease._path, ask, until(wait)), lease._release)

    def run_while_leader(self, name: str, work: Callable[[Lease], Any], *, ttl: Optional[float] = None, grace: float = 1.0,
                         on_overrun: Overrun = "exit") -> Loop:
        """Runs `work(lease)` in a thread of its own whenever this process has the lease, again and again until `close()`.

        `work` must return soon after `lease.stopping` is set; `lease.check()` raises then. What it raises otherwise is a
        failed run.
        """
        quoted(name)
        work = plain(work)

        def once(line: Line, loop: Loop) -> None:
            with self.lease(name, ttl=ttl, grace=grace, on_overrun=on_overrun, line=line) as lease:
                loop.hold = lease
                if line.over.is_set(): raise UNUSED  # no work begins after close()
                work(lease)
        return Loop(self, name, 1, once, grace)

    def scheduled(self, job: str, work: Callable[[Tick], Any], *, grace: float = 1.0, on_overrun: Overrun = "exit") -> Loop:
        """Runs `work(tick)` in a thread of its own once for each tick of a job with a schedule that this process is granted, until `close()`.

        Returning is done; what it raises is a failed tick, tried again by the job's `retries`. `work` must end soon after `tick.stopping` is
        set, by `tick.check()`, which raises then: a tick that its own program stops is a loss, and the job's `on_loss` follows.
        """
        quoted(job)
        work = plain(work)

        def once(line: Line, loop: Loop) -> None:
            tick, begun = Tick(self, job, grace, on_overrun), False
            try:
                with While(tick, lambda: tick._acquire(line, tick._path, {"holder": self.holder}, math.inf), tick._release):
                    loop.hold = tick
                    if line.over.is_set(): raise UNUSED
                    if not tick.name: raise SoloistError(f"{job} has no schedule")
                    begun = True
                    work(tick)
            except BaseException as error:  # the next tick does not wait for that
                if not begun or line.forked or isinstance(error, Stopped): raise
                tell(logging.WARNING, "%s, attempt %d: %s", tick.name, tick.attempt, error, exc_info=error)
        return Loop(self, job, 1, once, grace)

    def turn(self, rotation: str, type: str, *, lease: Optional[float] = None, wait: Optional[float] = None,
             worker: Optional[str] = None, grace: float = 1.0, on_overrun: Overrun = "exit") -> ContextManager[Turn]:
        """One turn of a rotation, to be used by `with`: waited for, extended, and passed at the end. Raises as `lease` does.

        `lease`: the `lease_ms` of the rotation's rules, in seconds, or a shorter time. Left out, the rules are asked for, which a
        collector's token may not.
        """
        path = f"/api/v1/rotations/{quoted(rotation)}"
        turn = Turn(self, f"turn {rotation}/{type}", f"{path}/turns", grace, on_overrun)
        line = turn._line

        def begin() -> None:
            end = until(wait)
            # The end of a turn is said by the store's clock, which is not ours: so its length must be known.
            turn._length = lease or line.call("GET", path, None, SLACK, end - clock(), RULES)["lease_ms"] / 1000
            turn._acquire(line, turn._path, {"type": type, "worker": worker or self.holder}, end)
        return While(turn, begin, turn._pass)

    def collect(self, source: str, handler: Callable[[Task], Any], *, lease: Optional[float] = None, parallel: int = 1,
                collector: Optional[str] = None) -> Loop:
        """Runs `handler(task)` for tasks of `source` in `parallel` threads until `close()`. Returning is done; raising `Retry`
        or `Dead` says so; anything else that is raised is another try. A result travels with the next request for work. `lease`: as for `turn`."""
        rules, handler = f"/api/v1/sources/{quoted(source)}", plain(handler)

        def once(line: Line, loop: Loop) -> None:
            length = lease or line.call("GET", rules, None, SLACK, math.inf, RULES)["lease_ms"] / 1000
            results: List[Dict[str, Any]] = []
            ask, busy = {"collector": collector or self.holder, "max": 1, "sources": [source]}, True
            try:
                while not line.over.is_set():
                    # After a task nothing is waited for: its result is not to wait either.
                    with contextlib.nullcontext(0.0) if busy else line.waits(WAIT) as wait:
                        sent = clock()
                        claim = {**ask, "request_id": uuid.uuid4().hex, "wait_ms": int(wait * 1000)}
                        claim = line.call("POST", "/api/v1/results", {"results": results, "claim": claim}, wait + SLACK, math.inf, HANDED)["claim"]
                    results, busy = [], bool(claim["tasks"])
                    for task in (Task(self, claim["claim"], length, task) for task in claim["tasks"]):
                        if not task._confirm(line, sent): return  # lost before it began: the rules may be others by now
                        results.append(task._work(handler))
                    if not busy and clock() - sent < wait / 2: line.over.wait(random.uniform(0.2, 1.0))
            finally:
                if results: Line(self).call("POST", "/api/v1/results", {"results": results}, SLACK, WAIT, RESULTS)
        return Loop(self, f"collect {source}", parallel, once, 1.0)

    def follow(self, *logs: str) -> Iterator[Dict[str, Any]]:
        """The frames of the live stream, for ever; with the log lines of the jobs `logs`. After every gap a snapshot comes first."""
        return frames(self, logs)
