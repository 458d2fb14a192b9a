"""What the tests of Soloist drive: does a little work under a lease, a turn or tasks, and writes every act down.

    driver.py WHAT ADDRESSES TOKEN NAME FILE [MODE]

WHAT is `lease`, `turn`, `collect`, `follow`, `light`, or `wait` (a second for a lease; then it says what came of it, and ends); NAME the lease, ROTATION/TYPE, the source or the job. An act is one line: `token python pid
boot-seconds word`. The clock is read before the library is asked, so a line that is written late after a pause tells when it was allowed.
It ends when its standard input does.

MODE of a lease: `polite` asks before every act; `hog` never does; `callback` works on until it is called; `fail` fails; `asleep`
does one act and sleeps until it is told to end; `halves` says halves of surrogate pairs wherever it can, and fails; `log-hangs`, `log-raises` and
`log-calls` are polite under a handler of the library's log that does so. Python alone: `fork-ends`, `fork-goes-on`, `fork-pool` are polite and have a
child that was forked, which ends by `sys.exit`, goes on with the work itself, or is one of `multiprocessing`; the child of `fork-own` works under NAME-child. MODE of turns and tasks is the length of their lease in seconds, or `ask`.

`exits` ends its program, or what a language has for that, in its work; `leaves` ends `main` with its loop open; `closes` closes its loop in its work; `dies` ends
its thread, or raises what is no error; `many` had ten other leases before; `interrupted` returns with the thread's interrupt flag set (Java); `async` is a
coroutine (Python); `alarms` is struck by exceptions of a signal while it begins (Python); `fork-daemon` forks and ends the parent (Python). WHAT `whole` is a
loop as a whole program, which ends with a signal.

WHAT `scheduled` does the ticks of a job; the word of the first act of each is `begin|TICK|ATTEMPT|LATE_MS|MILLISECONDS SINCE IT WAS DUE|PARAMETERS`, with
the parameters as `name=value,...` in the order of their names. MODE `quick` ends soon; `fail-N` fails in its first N attempts; `polite` works until it is
asked to stop.

DRIVER_HANDLER=1: the program has a handler of SIGTERM of its own, before the library has. DRIVER_THREADS=n: of the threads that keep leases the nth cannot be
started. DRIVER_TWO=1: every name has two addresses, 127.0.0.2 and 127.0.0.1.

WHAT `light` holds as many leases as MODE says, NAME-0 and so on: it waits for `go`, takes them, and does what each line of its standard input
asks for: `look`, `give NTH`, or `storm SECONDS`, in which 16 others are taken and given back all the time. At the deadline of each a function is called.

DRIVER_TTL is the length of a lease in seconds (2 else), DRIVER_OVERRUN the client's `overrun`; with DRIVER_LOG the library's log is on standard error.
"""

import itertools
import logging
import asyncio
import contextlib
import multiprocessing
import os
import random
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

import soloist  # noqa: E402

if os.environ.get("DRIVER_TWO"):
    real = socket.getaddrinfo
    socket.getaddrinfo = lambda host, *more, **most: real("127.0.0.2", *more, **most) + real("127.0.0.1", *more, **most)
if os.environ.get("DRIVER_THREADS"):
    starts, start = itertools.count(1), threading.Thread.start

    def begun(self: threading.Thread) -> None:
        if self.name in ("soloist renewals", "soloist deadlines") and next(starts) >= int(os.environ["DRIVER_THREADS"]):
            raise RuntimeError("can't start new thread")
        start(self)
    threading.Thread.start = begun  # type: ignore[method-assign]

what, addresses, token, name, path = sys.argv[1:6]
mode = sys.argv[6] if len(sys.argv) > 6 and sys.argv[6] else "polite"
length = float(mode) if mode[0].isdigit() else None
ttl = float(os.environ.get("DRIVER_TTL", "2"))
client = soloist.Soloist(addresses.split(","), token=token, holder=f"python-{os.getpid()}", overrun=os.environ.get("DRIVER_OVERRUN"))
out = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
closing, called = threading.Event(), threading.Event()
# The name of a file that is no UTF-8.
HALF = os.fsdecode(b"caf\xe9.csv")


def now() -> str:
    with open("/proc/uptime") as uptime:
        return uptime.read().split()[0]


def say(of: int, at: str, word: str) -> None:
    os.write(out, f"{of} python {os.getpid()} {at} {word}\n".encode())


class Handler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        if mode == "log-hangs":
            threading.Event().wait()
        if mode == "log-raises":
            raise OSError("the collector is gone")
        if loop.hold:
            loop.hold.check()


def tries(hold: soloist.Lease) -> None:
    """Of a child: what it is allowed to do would be written down, and then a token would be two processes'."""
    try:
        hold.check()
        say(hold.token(), now(), "child")
    except soloist.Stopped:
        assert hold.stopping.is_set() and not hold.held()


def has_its_own() -> None:
    """Of a child: works under a lease of its own."""
    own = os.open(path.replace(name, f"{name}-child"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    with client.lease(f"{name}-child", ttl=ttl) as lease:
        for word in itertools.chain(["start"], itertools.repeat("beat")):
            at = now()
            lease.check()
            os.write(own, f"{lease.token()} python {os.getpid()} {at} {word}\n".encode())
            time.sleep(0.02)


def fork(hold: soloist.Lease) -> None:
    if mode == "fork-own":
        if os.fork() == 0:
            has_its_own()
        return
    if mode == "fork-pool":
        child = multiprocessing.get_context("fork").Process(target=tries, args=(hold,))
        child.start()
        child.join()
        assert child.exitcode == 0
        return
    child = os.fork()
    if child == 0:
        tries(hold)
        if mode == "fork-ends":
            sys.exit(0)
    else:
        assert os.waitpid(child, 0)[1] == 0


def work(hold: soloist.Lease) -> None:
    say(hold.token(), now(), "start")
    if mode.startswith("fork-"):
        parent = os.getpid()
        fork(hold)
        if os.getpid() != parent:
            return
    if mode == "fork-daemon":
        if os.fork():
            os._exit(0)
        tries(hold)
        Path(f"{path}.child").write_text("stopped" if hold.stopping.is_set() else "works")
        os._exit(0)
    if mode == "fail":
        raise RuntimeError("about to fail")
    if mode == "dies":
        raise (SystemExit(1) if hold.token() % 2 else asyncio.CancelledError())
    number = 0
    try:
        while not called.is_set():
            at = now()
            if mode in ("polite", "exits", "leaves", "many") or mode.startswith(("log-", "fork-")):
                hold.check()
            number += 1
            if mode == "halves" and number > 150:
                raise RuntimeError(HALF)
            say(hold.token(), at, "beat")
            if what == "lease":
                hold.progress(number, 100000, f"step {number}")
                hold.log(f"this is step {number}")
            if mode == "halves":
                hold.progress(number, 1000, HALF)
                hold.log(f"{HALF} {number}\n" + "x" * 499 + "\U0001f600")
            if mode == "asleep" and hold.stopping.wait(60):
                return
            time.sleep(0.02)
            if mode == "closes" and number == 5:
                loop.close()
                return
        say(hold.token(), now(), "ended")
    finally:
        print(f"ends: {hold.reason}", file=sys.stderr, flush=True)


def scheduled(tick: soloist.Tick) -> None:
    since = int((time.time() - tick.due.timestamp()) * 1000)
    params = ",".join(f"{name}={value}" for name, value in sorted(tick.params.items()))
    say(tick.token(), now(), f"begin|{tick.name}|{tick.attempt}|{tick.late_ms}|{since}|{params}")
    if mode.startswith("fail-") and tick.attempt <= int(mode[5:]):
        raise RuntimeError("about to fail")
    try:
        while mode == "polite":
            at = now()
            tick.check()
            say(tick.token(), at, "beat")
            time.sleep(0.02)
        tick.stopping.wait(0.05)
        say(tick.token(), now(), "ended")
    finally:
        print(f"ends: {tick.reason}", file=sys.stderr, flush=True)


def turns() -> None:
    rotation, kind = name.split("/")
    while not closing.is_set():
        try:
            with client.turn(rotation, kind, wait=1.0, lease=length) as turn:
                for _ in range(5):
                    at = now()
                    turn.check()
                    say(turn.token(), at, kind)
                    time.sleep(0.01)
        except soloist.NotGranted:
            pass


def handle(task: soloist.Task) -> None:
    if task.payload and task.payload.get("slow"):
        task.stopping.wait(task.payload["slow"])
    task.check()
    if task.payload and task.payload.get("fail", 0) >= task.attempt:
        if task.payload.get("exit"):
            sys.exit(1)
        raise soloist.Retry("not yet", 0.01)
    if task.payload and task.payload.get("dead"):
        raise soloist.Dead("y" * 880 + HALF if task.payload["dead"] == "half" else "never")
    say(task.token(), now(), task.key)


def follow() -> None:
    for frame in client.follow(name):
        print(frame["type"], flush=True)
        for job in frame.get("jobs", []) + ([frame["job"]] if frame["type"] == "job" else []):
            say(job["version"], now(), job["state"])


def overrun(lease: Any) -> None:
    say(lease.token(), now(), "overrun")
    called.set()


def wait() -> None:
    began, came, why = time.monotonic(), "granted", ""
    try:
        with client.lease(name, wait=1.0):
            pass
    except Exception as error:
        came, why = type(error).__name__, str(error)
    print(f"waited: {came} {time.monotonic() - began:.2f} s {why}", file=sys.stderr, flush=True)
    if "DRIVER_THREADS" in os.environ:
        say(0, now(), "waited")
        until_closed()


def light(count: int) -> None:
    """Many leases, and no thread of this program for any of them."""
    clients: "dict[int, tuple[Any, Any]]" = {}

    def all(act: Any) -> None:
        numbers = iter(range(count))

        def some() -> None:
            for nth in numbers:
                act(nth)
        threads = [threading.Thread(target=some) for _ in range(16)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()

    def take(nth: int) -> None:
        over = lambda lease: say(lease.token(), now(), f"overrun-{nth}")  # noqa: E731
        holder = client.lease(f"{name}-{nth}", ttl=ttl * (1 + nth % 2), wait=60.0, on_overrun=over)
        lease = holder.__enter__()
        clients[nth] = (holder, lease)
        if count <= 100:
            say(lease.token(), now(), f"took-{nth}")

    def watch() -> None:
        seen = set()
        while not closing.is_set():
            for nth, (_, lease) in list(clients.items()):
                at = now()
                if lease.stopping.is_set() and nth not in seen:
                    seen.add(nth)
                    say(lease.token(), at, f"lost-{nth}")
                    print(f"lost {nth}: {lease.reason}", file=sys.stderr, flush=True)
            time.sleep(0.01)

    def give(nth: int) -> None:
        if nth in clients:
            holder, _ = clients.pop(nth)
            holder.__exit__(None, None, None)

    def storm(seconds: float) -> None:
        end = time.monotonic() + seconds

        def some(nth: int) -> None:
            while time.monotonic() < end:
                with client.lease(f"{name}-storm-{nth}", ttl=ttl, wait=60.0):
                    pass
        threads = [threading.Thread(target=some, args=(nth,)) for nth in range(16)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()

    say(0, now(), "ready")
    sys.stdin.readline()
    if count <= 100:
        threading.Thread(target=watch, daemon=True).start()
    all(take)
    say(0, now(), "held")
    for line in sys.stdin:
        if line.startswith("give "):
            give(int(line.split()[1]))
            say(0, now(), f"gave-{line.split()[1]}")
        elif line.startswith("storm "):
            storm(float(line.split()[1]))
            say(0, now(), "stormed")
        elif line.startswith("look"):
            at = now()
            say(0, at, f"holds-{sum(lease.held() and not lease.stopping.is_set() for _, lease in clients.values())}")
    closing.set()
    all(give)


def struck(*_: Any) -> None:
    raise TimeoutError("struck")


async def coroutine(_: Any) -> None:
    pass


def alarms() -> None:
    """What was struck while it began is held by nobody afterwards: a lease of a second is to be had within four."""
    signal.signal(signal.SIGALRM, struck)
    began = time.monotonic()
    for _ in range(3):
        with client.lease(name, ttl=1.0, wait=4.0):
            pass
    usual = (time.monotonic() - began) / 3
    for nth in range(40):
        try:
            signal.setitimer(signal.ITIMER_REAL, random.uniform(0.3, 1.0) * usual)
            with client.lease(name, ttl=1.0, wait=4.0):
                time.sleep(0.2)
        except TimeoutError:
            pass
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        with client.lease(name, ttl=1.0, wait=4.0):
            say(nth, now(), "free")
    print("alarms: ended", file=sys.stderr)


def until_closed() -> None:
    while os.read(0, 4096):  # not by `sys.stdin`: a forked child would wait for its lock
        pass
    closing.set()


if os.environ.get("DRIVER_LOG"):
    logging.basicConfig(level=logging.INFO, format="%(message)s")
if os.environ.get("DRIVER_HANDLER"):
    signal.signal(signal.SIGTERM, lambda *_: os.write(2, b"its own handler\n") and sys.exit(5))
soloist.release_on_exit()
if mode == "many":
    with contextlib.ExitStack() as ten:
        for nth in range(10):
            ten.enter_context(client.lease(f"{name}-{nth}", ttl=ttl))
if what == "lease" and mode == "async":
    client.run_while_leader(name, coroutine)
elif what == "lease" and mode == "alarms":
    alarms()
elif what == "lease" and mode == "leaves":
    loop = client.run_while_leader(name, work, ttl=ttl)
    until_closed()
elif what == "whole":
    loop = client.run_while_leader(name, work, ttl=ttl)
    loop.wait()
elif what == "lease":
    if mode.startswith("log-"):
        logging.getLogger("soloist").addHandler(Handler())
        logging.getLogger("soloist").setLevel(logging.INFO)
    loop = client.run_while_leader(name, work, ttl=ttl, on_overrun=overrun if mode == "callback" else "exit")
    with loop:
        until_closed()
    if mode == "log-hangs":
        os._exit(0)  # the end of `logging` waits for its handlers
elif what == "scheduled":
    with client.scheduled(name, scheduled):
        until_closed()
elif what == "collect":
    with client.collect(name, handle, parallel=3, lease=length):
        until_closed()
elif what == "wait":
    wait()
elif what == "light":
    light(int(mode))
elif what == "turn":
    thread = threading.Thread(target=turns)
    thread.start()
    until_closed()
    thread.join()
else:
    threading.Thread(target=follow, daemon=True).start()
    until_closed()
