"""The life line: a program on a machine that runs a node is watched as a script is. Knows lines of JSON on a socket, and nothing of HTTP.

The watcher is told under which lease the work is and until when it must be over. It kills the process by then, and when the kernel says that the
process is dead the lease is given back. It comes on top of the deadline that `client` keeps.

One connection serves all leases of a process, in a thread of its own. Nobody waits for it: who renews, or watches the deadline, leaves a word and
goes on. What is not answered within a second is no watch; then it connects anew, and says all again. A forked child has none.
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import json
import logging
import math
import os
import random
import select
import socket
import threading
import time
from typing import Any, Callable, Deque, Dict, Optional, Tuple

from .line import Nodes, clock, has, own, parsed, whole
from .told import tell

# Where packages and images have it. The variable names another; empty, it names none.
USUAL, NAMED = "/run/soloist/lifeline.sock", "SOLOIST_LIFELINE"
# Seconds: an answer that comes later is none; and so long an end is waited for before the lease is given back.
PATIENCE, PARTING = 1.0, 0.1
# Lines that wait for their answers; bytes of one answer.
AT_ONCE, MOST = 64, 1 << 16


class Work:
    """What the watcher is told of one lease. `armed` is called with the seconds between the kill and the instant that was told."""

    def __init__(self, name: str, secret: str, until: float, armed: Callable[[float], None]) -> None:
        self.name, self.secret, self.until, self.armed = name, secret, until, armed
        # `known`: it was answered, or no answer is to be waited for. `passed`: what was told was over already.
        self.over, self.passed, self.known, self.state = False, False, threading.Event(), ""


class LifeLine:
    """`begin`, `say` and `end` may be called by any thread."""

    def __init__(self) -> None:
        self._ears = self._line = None  # type: Any
        self._begin()
        own.add(self)

    def _begin(self) -> None:
        self._works: Dict[str, Work] = {}
        self._dirty: Deque[Work] = collections.deque()
        self._asked: Deque[Tuple[float, Optional[Work], int]] = collections.deque()
        self._started, self._state = itertools.count(), ""
        self._up = self._down = False

    def _forked(self) -> None:
        for each in (*(self._ears or ()), self._line):  # these are copies: what the parent has stays open
            with contextlib.suppress(OSError, AttributeError):
                each.close()
        self._ears = self._line = None
        self._begin()

    def begin(self, nodes: Nodes, work: Work) -> None:
        """Before the work begins. Waits for the answer, for a second at most."""
        named = os.environ.get(NAMED)
        where = named if named is not None else USUAL if os.path.exists(USUAL) else ""
        if not where or not hasattr(socket, "AF_UNIX"):
            return self._note(None, f"not watched: there is no {USUAL}, and {NAMED} names none", logging.INFO)
        self._works[work.name] = work
        if next(self._started) == 0:
            try:
                self._ears = socket.socketpair()
                for ear in self._ears:
                    ear.setblocking(False)
                threading.Thread(target=self._run, args=(where, nodes), name="soloist life line", daemon=True).start()
            except (OSError, RuntimeError) as error:
                self._started = itertools.count()
                return self._note(None, f"not watched: {error}", logging.WARNING)
        self.say(work)
        if not self._down:
            work.known.wait(PATIENCE)

    def say(self, work: Work) -> None:
        """Something is new. Waits for nothing."""
        if self._works.get(work.name) is work:
            self._dirty.append(work)
            with contextlib.suppress(OSError, TypeError):  # full: it is awake; none: it was forked
                self._ears[1].send(b"!")

    def end(self, work: Work) -> None:
        """The work has ended."""
        work.known.clear()
        work.over = True
        self.say(work)
        if self._up and self._works.get(work.name) is work:
            work.known.wait(PARTING)

    def _note(self, work: Optional[Work], state: str, level: int) -> None:
        """Says how it is watched, once, and when that changes."""
        of = work or self
        before = getattr(of, "state", "") or self._state
        if work:
            work.state = state
        else:
            self._state = state
        if state != before:
            tell(level, "life line: %s%s", f"{work.name}: " if work else "", state)

    def _run(self, where: str, nodes: Nodes) -> None:
        ears, failed = self._ears, 0
        while True:
            try:
                self._talk(where, nodes, ears[0])
            except Exception as error:
                failed = 0 if self._up else min(failed + 1, 6)
                self._up, self._down = False, True
                self._note(None, f"not watched: {where}: {error}", logging.WARNING)
                for work in list(self._works.values()):
                    work.state = ""
                    work.known.set()
            time.sleep(random.uniform(0.5, 1.0) * 0.03 * 2**failed)
            if not self._works:  # nobody needs it
                self._down = False
                poll = select.poll()
                poll.register(ears[0], select.POLLIN)
                poll.poll()

    def _talk(self, where: str, nodes: Nodes, ear: socket.socket) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
            self._line = line
            line.settimeout(PATIENCE)
            line.connect(where)
            line.setblocking(False)
            self._out, self._offset, heard = b"", -math.inf, b""
            self._asked.clear()
            self._ask(None, {"auth": nodes.token, **({"overrun": nodes.overrun} if nodes.overrun else {})})
            poll = select.poll()
            poll.register(ear, select.POLLIN)
            while True:
                while self._up and self._dirty and len(self._asked) < AT_ONCE:
                    self._tell_of(self._dirty.popleft())
                left = self._asked[0][0] + PATIENCE - clock() if self._asked else 3600.0
                if left <= 0:
                    raise TimeoutError("it did not answer within a second")
                poll.register(line, select.POLLIN | (select.POLLOUT if self._out else 0))
                for fd, _ in poll.poll(left * 1000 + 1):
                    with contextlib.suppress(BlockingIOError):
                        if fd == ear.fileno():
                            ear.recv(4096)
                            continue
                        if self._out:
                            self._out = self._out[line.send(self._out):]
                        said = line.recv(MOST)
                        if not said:
                            raise ConnectionError("the watcher has ended the connection")
                        *lines, heard = (heard + said).split(b"\n")
                        for one in lines:
                            self._hear(parsed(one))
                        if len(heard) > MOST:
                            raise ConnectionError("an answer without end")

    def _ask(self, work: Optional[Work], words: Dict[str, Any]) -> None:
        self._asked.append((clock(), work, words.get("until_ns", 0)))
        self._out += json.dumps(words).encode() + b"\n"

    def _tell_of(self, work: Work) -> None:
        if self._works.get(work.name) is not work:
            return  # another has its name
        if work.over:
            self._ask(work, {"end": work.name})
        else:
            self._ask(work, {"under": work.name, "secret": work.secret, "until_ns": int((work.until + self._offset) * 1e9)})

    def _hear(self, answer: Any) -> None:
        if not has(answer, {"ok": lambda ok: isinstance(ok, bool), "now_ns": whole}) or not self._asked:
            raise ConnectionError("this is no watcher")
        _, work, until = self._asked.popleft()
        # Its clock less ours, and never more than that: it was read before this came. A greater one is nearer to the truth.
        self._offset = max(self._offset, answer["now_ns"] / 1e9 - clock())
        detail = str(answer.get("detail") or answer.get("why") or "")
        if work and not until:  # its end
            if self._works.get(work.name) is work:
                del self._works[work.name]
            return work.known.set()
        if not work and not answer["ok"]:
            raise ConnectionError(detail)
        if not work and "again" in answer:
            return self._ask(None, {"again": answer["again"]})
        kill = until - answer["kill_ns"] if work and whole(answer.get("kill_ns")) else 0 if answer.get("kill") else None
        lacks = [lack for lack, missing in (("it is not killed in time", kill is None), ("its death gives nothing back", not answer.get("release"))) if missing]
        if work:
            work.passed = not answer["ok"] and detail.startswith("until_ns has passed")
            if kill is not None:
                work.armed(kill / 1e9)
        if not work:
            self._up, self._down = True, False
            self._dirty.clear()
            self._dirty.extend(list(self._works.values()))
        if not answer["ok"] or len(lacks) == 2:
            self._note(work, f"not watched: {detail}", logging.WARNING)
        else:
            self._note(work, f"watched, but {lacks[0]}: {detail}" if lacks else "watched", logging.WARNING if lacks else logging.INFO)
        if work:
            work.known.set()


life = LifeLine()
