"""Keeps everything that this process holds, with four threads whatever their number: renewals of leases, of tasks and turns, orders to stop, deadlines.

| thread | does | waits for |
| --- | --- | --- |
| renewals | renews leases that are due, those of one client by one call | the nodes, by a connection of its own |
| extends | extends tasks and turns, each by a call, so that many of them keep no lease waiting | the nodes, by a connection of its own |
| stops | waits at a node for an order to stop; only jobs have such orders, and it sleeps while none is held | the nodes, by a connection of its own |
| deadlines | tells the work to stop, and ends the process | nobody: it sends nothing, and runs nothing of the program's |

Each sleeps until something is due. A forked child has none of them, and holds nothing; it starts its own with the first thing that it holds.
"""

from __future__ import annotations

import contextlib, itertools, logging, math, random, threading
from _thread import allocate_lock
from typing import Any, Callable, Dict, List

from .line import Line, Refused, Shape, Unreachable, Wires, clock, own
from .told import tell

# Leases in one call: a node takes 1,000.
MANY = 500
# Seconds. TICK: a wait of the system stands still with a suspended machine, so deadlines are looked at this often. POLL: so long a call waits for an order to stop.
# AT_MOST: not more often is waited for it, and asked for what a node left out.
TICK, POLL, AT_MOST = 0.1, 1.5, 0.5
RENEWED: Shape = {"leases": lambda all: isinstance(all, list)}

# What is held, by its `id`: `_due` is when its next renewal is sent, `_look` does what its deadline asks for and says when to look again.
held: Dict[int, Any] = {}


class Round:
    """A thread that goes round when something is due."""

    def __init__(self, what: str, go: Callable[[], float], most: float = threading.TIMEOUT_MAX) -> None:
        """`go` does it, and says when it is due again; `most`: so long it sleeps at once."""
        self._what, self._go, self._most = what, go, most
        own.add(self)
        self._forked()

    def _forked(self) -> None:
        held.clear()
        # `_first` is kept by the thread that runs.
        self._bell, self._first, self._runs, self._next = allocate_lock(), allocate_lock(), False, math.inf
        self._bell.acquire()

    def begin(self) -> None:
        """Raises `RuntimeError` if no thread can be started."""
        if not self._runs: threading.Thread(target=self._run, name=f"soloist {self._what}", daemon=True).start()

    def soon(self, at: float) -> None:
        """Something is due by then. Waits for nothing."""
        if at < self._next:
            with contextlib.suppress(RuntimeError): self._bell.release()  # it is awake already

    def _run(self) -> None:
        if not self._first.acquire(False): return  # another was started at the same time
        self._runs = True
        while True:
            self._next = math.inf
            try:
                next = self._go()
            except Exception as error:
                next = clock() + TICK
                tell(logging.ERROR, "%s: %r", self._what, error)
            self._next = next
            while clock() < next and not self._bell.acquire(timeout=min(max(0.001, next - clock()), self._most) if next < math.inf else -1):
                if not held: break  # nothing is due any more


class Renewals(Round):
    """`stops`: of what may be told to stop alone; then it waits for that at the node."""

    def __init__(self, what: str, stops: bool) -> None:
        self._stops, self._wires = stops, Wires(1)
        super().__init__(what, self._round)

    def _forked(self) -> None:
        super()._forked()
        self._lines: Dict[Any, Line] = {}

    def anew(self) -> None:
        """There is one more to wait for."""
        for line in list(self._lines.values()): line.cut()
        self.soon(-math.inf)

    def _round(self) -> float:
        began, ways = clock(), {}  # type: float, Dict[Any, List[Any]]
        mine = [each for each in list(held.values()) if each.held() and (each._waits() if self._stops else each._keeper is self)]
        by = min([each._due for each in mine], default=math.inf)
        if not mine or not self._stops and by > began: return by
        for each in sorted(mine, key=lambda one: one._deadline):
            if self._stops or each._due - each._length / 24 <= began:  # what is due a little later travels with the others
                ways.setdefault(each._line.nodes.way, []).append(each)
        pauses = [self._renew(way, all) for way, all in ways.items()]
        return max([began + AT_MOST, *pauses]) if self._stops else min(each._due for each in mine)

    def _renew(self, way: Any, all: List[Any]) -> float:
        """When to try again, if no node answers."""
        if way not in self._lines or self._lines[way].over.is_set(): self._lines[way] = Line(all[0]._line.nodes, self._wires)
        line, parts = self._lines[way], parted(all)
        wait = min([POLL, *(each._every * 0.6 for each in all)]) / len(parts) if self._stops and not line.failed else 0.0
        for nth, part in enumerate(parts):
            if not self._part(line, part, wait):
                if line.over.is_set(): return -math.inf  # hung up, for there is one more to wait for: no failure
                again = clock() + line.pause()
                for each in itertools.chain(*parts[nth:]): each._due = again
                return again
        return -math.inf

    def _part(self, line: Line, part: List[Any], wait: float) -> bool:
        """Whether a node answered."""
        if len(part) > 1:
            sent, said = clock(), [each._said() for each in part]
            body = {"wait_ms": int(wait * 1000), "leases": [{"name": each._name, **words[0]} for each, words in zip(part, said)]}
            timeout = wait + max(0.25, min(1.0 + len(part) / MANY, (part[0].remaining() - wait) / 3))
            try:
                answers = line.once("POST", "/api/v1/renewals", body, timeout, RENEWED)["leases"]
            except Unreachable as error:
                tell(logging.INFO, "not renewed yet: %s", error)
                return False
            except Refused:  # a node that does not know this call, or it cannot read one of them: each for itself
                pass
            else:
                of = {str(one.get("name")): one for one in answers if isinstance(one, dict)}
                lacks = [each for each, words in zip(part, said) if each._try(each._hear, sent, words, of.get(each._name)) is False]
                for each in lacks:  # another node may know more
                    each._due = clock() + random.uniform(0.5, 1.0) * min(each._every, AT_MOST)
                    line.failed, line.nth = 1, line.nth + 1
                return True
        for each in part:
            # Who waits for an order to stop keeps nobody from renewing it meanwhile.
            each._try(each._renew, line, wait if len(part) == 1 else 0.0, soon=not self._stops)
            if line.failed: return False
        return True


def parted(all: List[Any]) -> List[List[Any]]:
    """What is sent by one call: many leases, each name once, or one of anything else."""
    parts: List[Dict[str, Any]] = []
    now: Dict[str, Any] = {}
    for each in all:
        if not each._secret:
            parts.append({"": each})
            continue
        if not now or len(now) == MANY or each._what in now:
            now = {}
            parts.append(now)
        now[each._what] = each
    return [list(part.values()) for part in parts]


renewals, extends, stops = Renewals("renewals", False), Renewals("extends", False), Renewals("stops", True)
deadlines = Round("deadlines", lambda: min([each._look() for each in list(held.values())], default=math.inf), TICK)
