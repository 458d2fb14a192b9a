"""The clock; HTTP to one of several nodes: time-outs, fail-over, jitter; and the live stream. Knows nothing of leases.

The clock is CLOCK_BOOTTIME where there is one (Linux): CLOCK_MONOTONIC stands still while the machine is suspended, and a
lease does not. Elsewhere it is `time.monotonic`.

Every call of Soloist may be repeated with the same body, at any node; so a call that was not answered is simply made again.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import math
import os
import random
import re
import socket
import threading
import time
from typing import Any, Dict, Iterator, Optional, Sequence
from urllib.parse import quote, urlsplit

# Seconds. CONNECT: a machine that is gone answers nothing at all. SILENT: a comment comes every 15, so a stream that is silent for
# longer is dead.
CONNECT, SILENT = 2.0, 40.0
# HTTP: not now.
AGAIN = (408, 429)
BROKEN = (OSError, http.client.HTTPException, ValueError)


def clock() -> float:
    """Seconds of this machine, suspended or not."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class SoloistError(Exception):
    """Anything that Soloist, or the way to it, says no to."""


class Refused(SoloistError):
    """A node understood and refused. `status` is HTTP's; `detail` says what to do."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(f"{detail} (HTTP {status})")
        self.status, self.detail = status, detail


class Unreachable(SoloistError):
    """No node answered: what was asked may or may not have been done."""


class Nodes:
    """Addresses and the token: what every line of one client shares."""

    def __init__(self, addresses: Sequence[str], token: str, *, holder: Optional[str] = None) -> None:
        """`addresses`: of some nodes, `http://a:8080`. `holder`: the name by which people find this process; default: host and
        process id."""
        self.urls = [urlsplit(address) for address in addresses]
        if not self.urls or any(url.scheme not in ("http", "https") or not url.hostname for url in self.urls):
            raise ValueError(f"{addresses!r}: name at least one node, each as http://HOST:PORT")
        self.token, host = token, re.sub(r"[^a-z0-9]+", "-", socket.gethostname().lower()).strip("-")[:40]
        self.holder = holder or f"{host or 'host'}-{os.getpid()}"


class Line:
    """One connection at a time, used by one thread; `cut` may be called by any."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        # Clients that start together do not all begin at the same node.
        self.nth = random.randrange(len(nodes.urls))
        self.over = threading.Event()
        self._connection: Optional[http.client.HTTPConnection] = None

    def drop(self) -> None:
        if self._connection:
            self._connection.close()
        self._connection = None

    def fail(self) -> None:
        """The next try goes to the next node."""
        self.drop()
        self.nth += 1

    def cut(self) -> None:
        """Ends the call under way, and every later one, with `Unreachable`."""
        self.over.set()
        sock = self._connection and self._connection.sock
        if sock:
            with contextlib.suppress(OSError):  # it may be closed already
                sock.shutdown(socket.SHUT_RDWR)

    def open(self, method: str, path: str, body: Any, timeout: float) -> http.client.HTTPResponse:
        """Sends a request to the present node and gives the head of its answer."""
        # A node that answers "Connection: close" leaves a connection without a socket.
        if not (self._connection and self._connection.sock):
            url = self.nodes.urls[self.nth % len(self.nodes.urls)]
            make = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
            self._connection = make(str(url.hostname), url.port, timeout=min(timeout, CONNECT))
            self._connection.connect()
        if self.over.is_set():
            raise Unreachable("closed")
        self._connection.sock.settimeout(timeout)
        headers = {"Authorization": f"Bearer {self.nodes.token}", "Content-Type": "application/json"}
        self._connection.request(method, path, None if body is None else json.dumps(body, ensure_ascii=False).encode(), headers)
        return self._connection.getresponse()

    def once(self, method: str, path: str, body: Any, timeout: float) -> Any:
        """One try at one node; after a failure the next try goes to the next node."""
        try:
            answer = self.open(method, path, body, timeout)
            # What is no JSON was said by something between us and the node.
            value = json.loads(answer.read() or b"null")
        except BROKEN as error:
            self.fail()
            raise Unreachable(f"{type(error).__name__}: {error}") from error
        if answer.status < 300:
            return value
        detail = str((value.get("detail") if isinstance(value, dict) else None) or answer.reason)
        if answer.status < 500 and answer.status not in AGAIN:
            raise Refused(answer.status, detail)
        self.fail()
        raise Unreachable(f"{detail} (HTTP {answer.status})")

    def call(self, method: str, path: str, body: Any, timeout: float, patience: float = math.inf) -> Any:
        """Tries `once` until it is answered; no new try begins after `patience` seconds."""
        began = clock()
        for failed in itertools.count(1):
            try:
                return self.once(method, path, body, timeout)
            except Unreachable:
                if self.over.wait(self.pause(failed)) or clock() - began >= patience:
                    raise

    def pause(self, failed: int) -> float:
        """Seconds before the next try: none until every node has failed once, then more and more, never all clients at once."""
        rounds = min(failed // len(self.nodes.urls), 8)
        return random.uniform(0.25, 1.0) * (min(2.0, 0.1 * 2.0**rounds) if rounds else 0.02)


def frames(nodes: Nodes, logs: Sequence[str]) -> Iterator[Dict[str, Any]]:
    """See `Soloist.follow`."""
    path, line, retry = "/api/v1/live?follow=" + quote(",".join(logs)) if logs else "/api/v1/live", Line(nodes), 1.0
    while True:
        try:
            answer, data = line.open("GET", path, None, SILENT), ""
            if 400 <= answer.status < 500 and answer.status not in AGAIN:
                raise Refused(answer.status, str(json.loads(answer.read() or b"{}").get("detail")))
            for raw in answer if answer.status == 200 else ():
                text = raw.decode().rstrip("\r\n")
                if text.startswith("data:"):
                    data += text[5:]
                elif text.startswith("retry:"):
                    retry = int(text[6:]) / 1000
                elif not text and data:
                    yield json.loads(data)
                    data = ""
        except BROKEN:
            pass  # a gap: the next stream begins with a snapshot
        line.fail()
        time.sleep(random.uniform(retry / 2, retry * 1.5))
