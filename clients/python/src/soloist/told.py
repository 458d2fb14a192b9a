"""Log lines, written by a thread of their own: a handler that hangs, or raises, holds up nothing that keeps a lease or stops the work.

So many lines wait; what comes beyond that is left out and counted.
"""

from __future__ import annotations

import atexit, logging, os, queue, threading
from typing import Any, Callable, Optional

log = logging.getLogger("soloist")
# Lines that wait; seconds that the end of the program waits for them.
KEPT, PARTING = 200, 0.5


class Told:
    """`tell(level, text, *args)`: as `log.log`, and never waits."""

    def __init__(self) -> None:
        self._begin()
        atexit.register(self._part)
        if hasattr(os, "register_at_fork"): os.register_at_fork(after_in_child=self._begin)  # the writer stays with the parent

    def _begin(self) -> None:
        self._waiting: "queue.SimpleQueue[Callable[[], Any]]" = queue.SimpleQueue()
        self._lost, self._writer = 0, None  # type: int, Optional[threading.Thread]

    def __call__(self, level: int, text: str, *args: Any, **more: Any) -> None:
        if self._waiting.qsize() >= KEPT:
            self._lost += 1
            return
        self._waiting.put(lambda: log.log(level, text, *args, **more))
        if not self._writer:
            try:
                self._writer = threading.Thread(target=self._write, name="soloist log", daemon=True)
                self._writer.start()
            except RuntimeError:  # no more threads: the next line tries again
                self._writer = None

    def _write(self) -> None:
        while True:
            write = self._waiting.get()
            try:
                lost, self._lost = self._lost, 0
                if lost: log.warning("%d lines of this log were left out: it is written too slowly", lost)
                write()
            except BaseException:  # a handler's, which is the program's own
                pass

    def _part(self) -> None:
        written = threading.Event()
        if self._writer:
            self._waiting.put(written.set)
            written.wait(PARTING)


tell = Told()
