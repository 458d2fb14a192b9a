"""What the tests of Soloist drive: does a little work under a lease, a turn or tasks, and writes every act down.

    driver.py WHAT ADDRESSES TOKEN NAME FILE [MODE]

WHAT is `lease`, `turn`, `collect`, `follow`, or `wait` (a second for a lease; then it says what came of it, and ends); NAME the lease, ROTATION/TYPE, the source or the job. An act is one line: `token python pid
boot-seconds word`. The clock is read before the library is asked, so a line that is written late after a pause tells when it was allowed.
It ends when its standard input does.

MODE of a lease: `polite` asks before every act; `hog` never does; `callback` works on until it is called; `fail` fails; `asleep`
does one act and sleeps until it is told to end; `halves` says halves of surrogate pairs wherever it can, and fails; `log-hangs`, `log-raises` and
`log-calls` are polite under a handler of the library's log that does so. Python alone: `fork-ends`, `fork-goes-on`, `fork-pool` are polite and have a
child that was forked, which ends by `sys.exit`, goes on with the work itself, or is one of `multiprocessing`; the child of `fork-own` works under NAME-child. MODE of turns and tasks is the length of their lease in seconds, or `ask`.

DRIVER_TTL is the length of a lease in seconds (2 else), DRIVER_OVERRUN the client's `overrun`; with DRIVER_LOG the library's log is on standard error.
"""

import itertools
import logging
import multiprocessing
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

import soloist  # noqa: E402

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
    if mode == "fail":
        raise RuntimeError("about to fail")
    number = 0
    try:
        while not called.is_set():
            at = now()
            if mode == "polite" or mode.startswith(("log-", "fork-")):
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
        say(hold.token(), now(), "ended")
    finally:
        print(f"ends: {hold.reason}", file=sys.stderr, flush=True)


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
    print(f"waited: {came} {time.monotonic() - began:.2f} s {why}", file=sys.stderr)


def until_closed() -> None:
    while os.read(0, 4096):  # not by `sys.stdin`: a forked child would wait for its lock
        pass
    closing.set()


if os.environ.get("DRIVER_LOG"):
    logging.basicConfig(level=logging.INFO, format="%(message)s")
if what == "lease":
    if mode.startswith("log-"):
        logging.getLogger("soloist").addHandler(Handler())
        logging.getLogger("soloist").setLevel(logging.INFO)
    loop = client.run_while_leader(name, work, ttl=ttl, on_overrun=overrun if mode == "callback" else "exit")
    with loop:
        until_closed()
    if mode == "log-hangs":
        os._exit(0)  # the end of `logging` waits for its handlers
elif what == "collect":
    with client.collect(name, handle, parallel=3, lease=length):
        until_closed()
elif what == "wait":
    wait()
elif what == "turn":
    thread = threading.Thread(target=turns)
    thread.start()
    until_closed()
    thread.join()
else:
    threading.Thread(target=follow, daemon=True).start()
    until_closed()
