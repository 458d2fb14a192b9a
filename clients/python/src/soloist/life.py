"""The life line: a program on a machine that runs a node is watched as a script is. Knows lines of JSON on a socket, and nothing of HTTP.

The watcher is told under which lease the work is and until when it must be over. It kills the process by then, and when the kernel says that the
process is dead the lease is given back. It comes on top of the deadline that `client` keeps.

One connection serves all leases of a process; a thread of its own reads. Nobody waits for it: who renews, or watches the deadline, writes what
can be written at once and goes on. What is not answered within a second is no watch; then it connects anew, and says all again. A forked child has none.
"""

from __future__ import annotations

import collections, contextlib, json, logging, os, random, socket, struct, threading, time
from typing import Any, Deque, Dict, Tuple

from .line import Nodes, clock, has, own, parsed, whole
from .told import tell

# Where packages and images have it. The variable names another; empty, it names none.
USUAL, NAMED = "/run/soloist/lifeline.sock", "SOLOIST_LIFELINE"
# Seconds: an answer that comes later is none, as is looked after so often; so long an end is waited for before the lease is given back.
PATIENCE, LOOK, PARTING = 1.0, 0.25, 0.1
# Lines that wait for their answers; bytes of one answer.
AT_ONCE, MOST = 64, 1 << 16
ANSWER = {"ok": lambda ok: isinstance(ok, bool), "now_ns": whole}


class LifeLine:
    """`begin`, `say` and `end` may be called by any thread. Of a lease it uses: `_name`, `_secret`, `_until` by our clock, `_over`; it sets `_known` (it was
    answered, or no answer is to be waited for), `_passed` (what was told was over already) and `_state`, and tells `_arm` how long before its end the kill is."""

    _line: Any = None

    def __init__(self) -> None:
        self._forked()
        own.add(self)

    def _forked(self) -> None:
        with contextlib.suppress(OSError, AttributeError):
            self._line.close()  # a copy: what the parent has stays open
        self._leases: Dict[str, Any] = {}
        self._asked: Deque[Tuple[float, Any, int]] = collections.deque()
        # What is still to be said.
        self._dirty: Dict[Any, None] = {}
        # Kept for moments only: nobody waits under it.
        self._lock, self._offset = threading.Lock(), 0.0
        self._state, self._nodes, self._up, self._down = "", None, False, False  # type: str, Any, bool, bool

    def begin(self, nodes: Nodes, lease: Any) -> None:
        """Before the work begins. Waits for the answer, for a second at most."""
        where = os.environ.get(NAMED, USUAL if os.path.exists(USUAL) else "")
        if not where: return self._note(self, f"not watched, because there is no {USUAL} and {NAMED} names none: if this process dies, its leases run out by themselves", True)
        self._leases[lease._name] = lease
        with self._lock: first, self._nodes = not self._nodes, nodes
        if first:
            try:
                threading.Thread(target=self._run, args=(where,), name="soloist life line", daemon=True).start()
            except RuntimeError as error:
                self._nodes = None
                return self._note(self, f"not watched: {error}")
        self.say(lease)
        if not self._down and not lease._known.wait(PATIENCE) and self._up:
            with contextlib.suppress(OSError):
                self._line.shutdown(socket.SHUT_RDWR)  # the reader does not look while there is no lease

    def end(self, lease: Any) -> None:
        """The work has ended."""
        if self._leases.get(lease._name) is lease:
            lease._known.clear()
            lease._over = True
            self.say(lease)
            lease._known.wait(PARTING if self._up else 0.0)

    def say(self, lease: Any) -> None:
        """Something is new. Waits for nothing."""
        if self._up and self._leases.get(lease._name) is lease:  # else it will be said; or another has its name
            self._dirty[lease] = None
            self._tell()

    def _tell(self) -> None:
        while self._dirty and len(self._asked) < AT_ONCE:
            try:
                lease, _ = self._dirty.popitem()
            except KeyError:  # by another thread
                return
            end = {"end": lease._name}
            self._ask(lease, end if lease._over else {"under": lease._name, "secret": lease._secret, "until_ns": int((lease._until + self._offset) * 1e9)})

    def _ask(self, lease: Any, words: Dict[str, Any]) -> None:
        data = json.dumps(words).encode() + b"\n"
        with self._lock, contextlib.suppress(OSError):
            self._asked.append((clock(), lease, words.get("until_ns", 0)))
            if self._line.send(data, socket.MSG_DONTWAIT) < len(data):
                self._line.shutdown(socket.SHUT_RDWR)  # half a line

    def _note(self, of: Any, state: str, good: bool = False) -> None:
        """Says how it is watched, once, and when that changes."""
        before, of._state = of._state or self._state, state
        if state != before:
            tell(logging.INFO if good else logging.WARNING, "life line: %s%s", "" if of is self else f"{of._name}: ", state)

    def _run(self, where: str) -> None:
        failed = 0
        while True:
            try:
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as self._line: self._talk(self._line, where)
            except Exception as error:
                failed = 0 if self._up else min(failed + 1, 6)
                self._up, self._down = False, True
                self._note(self, f"not watched: {where}: {error}")
            for lease in list(self._leases.values()):
                lease._state = ""
                lease._known.set()
                if lease._over and lease._until < clock(): self._leases.pop(lease._name, None)
            time.sleep(random.uniform(0.5, 1.0) * 0.03 * 2**failed)

    def _talk(self, line: socket.socket, where: str) -> None:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(PATIENCE), 0))
        line.connect(where)
        self._offset, heard = float("-inf"), b""
        self._asked.clear()
        self._ask(None, {"auth": self._nodes.token, **({"overrun": self._nodes.overrun} if self._nodes.overrun else {})})
        while True:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, int(LOOK * 1e6) if self._leases or self._asked else 0))
            with contextlib.suppress(BlockingIOError):
                said = line.recv(MOST)
                *lines, heard = (heard + said).split(b"\n")
                for one in lines: self._hear(parsed(one))
                if not said or len(heard) > MOST:
                    raise ConnectionError("the watcher has ended the connection" if not said else "an answer without end")
            if self._asked and clock() > self._asked[0][0] + PATIENCE: raise TimeoutError("it did not answer within a second")

    def _hear(self, answer: Any) -> None:
        if not has(answer, ANSWER) or not self._asked: raise ConnectionError("this is no watcher")
        _, lease, until = self._asked.popleft()
        # Its clock less ours, and never more than that: it was read before this came. A greater one is nearer to the truth.
        self._offset = max(self._offset, answer["now_ns"] / 1e9 - clock())
        ok, detail = answer["ok"], str(answer.get("detail") or answer.get("why") or "")
        if not lease and not ok: raise ConnectionError(detail)
        if not lease and "again" in answer: return self._ask(None, {"again": answer["again"]})
        if not lease:
            self._up, self._down = True, False
            self._dirty = dict.fromkeys(self._leases.values())
        self._tell()
        if not lease or until:
            kills, frees = whole(answer.get("kill_ns")) or answer.get("kill") is True, answer.get("release") is True
            lack = "" if kills and frees else "watched, but its death gives nothing back: " if kills else "watched, but it is not killed in time: "
            self._note(lease or self, f"{lack if ok and (kills or frees) else 'not watched: '}{detail}" if lack or not ok else "watched", not lack)
            if lease and kills: lease._arm((until - answer["kill_ns"]) / 1e9)
            if lease: lease._passed = not ok and detail.startswith("until_ns has passed")
        elif self._leases.get(lease._name) is lease:  # its end
            del self._leases[lease._name]
        if lease: lease._known.set()


life = LifeLine()
