"""What the tests of Soloist drive: does a little work under a lease, a turn or tasks, and writes every act down.

    driver.py WHAT ADDRESSES TOKEN NAME FILE [MODE]

WHAT is `lease`, `turn`, `collect` or `follow`; NAME the lease, ROTATION/TYPE, the source or the job. An act is one line: `token python pid
boot-seconds word`. The clock is read before the library is asked, so a line that is written late after a pause tells when it was allowed.
It ends when its standard input does.

MODE of a lease: `polite` asks before every act; `hog` never does; `callback` works on until it is called; `fail` fails; `asleep`
does one act and sleeps until it is told to end. MODE of turns and tasks is the length of their lease in seconds, or `ask`.
"""

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

import soloist  # noqa: E402

what, addresses, token, name, path = sys.argv[1:6]
mode = sys.argv[6] if len(sys.argv) > 6 else "polite"
length = float(mode) if mode[0].isdigit() else None
client = soloist.Soloist(addresses.split(","), token=token, holder=f"python-{os.getpid()}")
out = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
closing, called = threading.Event(), threading.Event()


def now() -> str:
    with open("/proc/uptime") as uptime:
        return uptime.read().split()[0]


def say(of: int, at: str, word: str) -> None:
    os.write(out, f"{of} python {os.getpid()} {at} {word}\n".encode())


def work(hold: soloist.Lease) -> None:
    say(hold.token(), now(), "start")
    if mode == "fail":
        raise RuntimeError("about to fail")
    number = 0
    try:
        while not called.is_set():
            at = now()
            if mode == "polite":
                hold.check()
            number += 1
            say(hold.token(), at, "beat")
            if what == "lease":
                hold.progress(number, 100000, f"step {number}")
                hold.log(f"this is step {number}")
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
        raise soloist.Dead("never")
    say(task.token(), now(), task.key)


def follow() -> None:
    for frame in client.follow(name):
        print(frame["type"], flush=True)
        for job in frame.get("jobs", []) + ([frame["job"]] if frame["type"] == "job" else []):
            say(job["version"], now(), job["state"])


def overrun(lease: Any) -> None:
    say(lease.token(), now(), "overrun")
    called.set()


def until_closed() -> None:
    sys.stdin.buffer.read()
    closing.set()


if what == "lease":
    with client.run_while_leader(name, work, ttl=2.0, on_overrun=overrun if mode == "callback" else "exit"):
        until_closed()
elif what == "collect":
    with client.collect(name, handle, parallel=3, lease=length):
        until_closed()
elif what == "turn":
    thread = threading.Thread(target=turns)
    thread.start()
    until_closed()
    thread.join()
else:
    threading.Thread(target=follow, daemon=True).start()
    until_closed()
