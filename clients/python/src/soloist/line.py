"""The clock; HTTP to one of several nodes: time-outs, fail-over, jitter; and the live stream. Knows nothing of leases.

The clock is CLOCK_BOOTTIME where there is one (Linux): CLOCK_MONOTONIC stands still while the machine is suspended, and a
lease does not. Elsewhere it is `time.monotonic`.

Every call of Soloist may be repeated with the same body, at any node; so a call that was not answered is simply made again. Only a node
answers: what is not in the shape of its answers was said by something in between (a gateway, a portal), and is as good as no answer. So is what
has not come as a whole when the time for it is over, and what is longer than any answer of a node.

All calls of a process share a few connections, which are kept open; who finds none free waits for its turn. Renewals have connections of their own.

A line belongs to the process that made it: a forked child must neither use nor cut the connection of its parent.
"""

from __future__ import annotations

import contextlib, functools, http.client, json, logging, os, queue, random, re, socket, threading, time, weakref
from typing import Any, Callable, Dict, Iterator, Optional, Sequence
from urllib.parse import quote, urlsplit

from .told import tell

# Seconds. CONNECT: a machine that is gone answers nothing at all. BEGIN, SILENT: the stream begins at once, and a comment comes every 15, so one that
# is silent for longer is dead. COMPLAINT: that no node answers is said once, and then so often.
CONNECT, BEGIN, SILENT, COMPLAINT = 2.0, 5.0, 40.0, 60.0
# Bytes, of an answer and of a frame of the stream, which may tell of thousands of jobs.
MOST, MOST_OF_FRAME = 1 << 20, 1 << 24
# Connections for calls; how many of them may wait at a node for something to happen; a node closes one that was not used for 5 s.
# FAIR: so long who gave one back leaves it to those who want one.
CONNECTIONS, WAITING, IDLE, FAIR = 5, 3, 4.0, 0.0005
# HTTP: not now.
AGAIN = (408, 429)
# Milliseconds: no lease is longer than a day.
LONGEST_SPAN = 86_400_000

Shape = Dict[str, Callable[[Any], bool]]


def clock() -> float:
    """Seconds of this machine, suspended or not."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def text(value: Any) -> bool:
    return isinstance(value, str)


def whole(value: Any) -> bool:
    return type(value) is int and value >= 0


def span(value: Any) -> bool:
    return whole(value) and 0 < value <= LONGEST_SPAN


def has(value: Any, shape: Shape) -> bool:
    """Whether it is an object with these fields, each as it must be."""
    return isinstance(value, dict) and all(name in value and fits(value[name]) for name, fits in shape.items())


def listed(shape: Shape) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(has(one, shape) for one in value)


def parsed(raw: bytes) -> Any:
    with contextlib.suppress(ValueError, RecursionError): return json.loads(raw or b"null")  # no JSON: no answer of a node


def encoded(body: Any) -> Optional[bytes]:
    """Halves of surrogate pairs, as in the name of a file that is no UTF-8, become U+FFFD: no encoder takes them."""
    return body and json.dumps(body, ensure_ascii=False).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


# What other processes must not use: told in a child, when it was forked.
own: "weakref.WeakSet[Any]" = weakref.WeakSet()
if hasattr(os, "register_at_fork"): os.register_at_fork(after_in_child=lambda: [one._forked() for one in list(own)])


class SoloistError(Exception):
    """Anything that Soloist, or the way to it, says no to."""


class Refused(SoloistError):
    """A node understood and refused. `status` is HTTP's; `detail` says what to do."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(f"{detail} (HTTP {status})")
        self.status, self.detail = status, detail


class Unreachable(SoloistError):
    """No node answered: what was asked may or may not have been done."""


def refusal(answer: http.client.HTTPResponse, value: Any) -> SoloistError:
    """What an answer comes to that gives nothing. Only a node's counts, which is RFC 9457 in our own fields."""
    shape: Shape = {"type": text, "title": text, "detail": text, "status": lambda status: status == answer.status}
    said = has(value, shape) and "instance" not in value and answer.getheader("Content-Type", "").startswith("application/problem+json")
    if said and 400 <= answer.status < 500 and answer.status not in AGAIN: return Refused(answer.status, value["detail"])
    return Unreachable(f"{value['detail'] if said else 'not the answer of a node'} (HTTP {answer.status})")


class Nodes:
    """Addresses and the token: what every line of one client shares."""

    def __init__(self, addresses: Sequence[str], token: str, *, holder: Optional[str] = None, overrun: Optional[str] = None) -> None:
        """`addresses`: of some nodes, `http://a:8080`. `holder`: the name by which people find this process; default: host and
        process id. `overrun`: `leave`, then the watcher never kills this process, as for one under a debugger."""
        if overrun not in (None, "leave"): raise ValueError(f"overrun: {overrun!r} is not 'leave'")
        self.urls = [urlsplit(address) for address in addresses]
        if not self.urls or any(url.scheme not in ("http", "https") or not url.hostname for url in self.urls):
            raise ValueError(f"{addresses!r}: name at least one node, each as http://HOST:PORT")
        # What no socket and no header takes is an error here, and not one at each try.
        [(str(url.hostname).encode("idna"), url.port) for url in self.urls]
        if not re.fullmatch(r"[!-~]+", token):
            raise ValueError("the token is empty, or has a blank, a line end or a letter that is not ASCII: give it as it was made")
        # Whatever goes one way may travel together.
        self.way = (tuple(self.urls), token)
        self.token, host = token, re.sub(r"[^a-z0-9]+", "-", socket.gethostname().lower()).strip("-")[:40]
        # Who answered last is asked first. Clients that start together do not all begin at the same node.
        self.answers = random.randrange(len(self.urls))
        self.complained, self.holder, self.overrun = -COMPLAINT, holder or f"{host or 'host'}-{os.getpid()}", overrun


class Received(socket.SocketIO):
    """What a socket receives, each piece in what its wire has left of time and of room."""

    def readinto(self, into: Any) -> Optional[int]:
        self.sock.settimeout(self.wire.left())
        count = super().readinto(memoryview(into)[: self.wire.room])
        self.wire.room -= count or 0
        return count


def bounded(wire: Any, sock: socket.socket, *args: Any, **more: Any) -> http.client.HTTPResponse:
    """An answer, from its first byte on."""
    answer = http.client.HTTPResponse(sock, *args, **more)
    answer.fp.raw.__class__ = Received
    answer.fp.raw.wire, answer.fp.raw.sock = wire, sock
    return answer


class Wire:
    """One connection, kept open from call to call, for one thread at a time."""

    def __init__(self) -> None:
        # Until when and how much the present call may receive.
        self.end, self.room, self._url, self._used = 0.0, 0, None, 0.0  # type: float, int, Any, float
        self._connection: Optional[http.client.HTTPConnection] = None

    def close(self) -> None:
        self._connection = self._connection and self._connection.close()  # it is None then

    def left(self) -> float:
        """Seconds for what is still to be sent and received."""
        left = self.end - clock()
        if left <= 0 or self.room <= 0:
            raise OSError("not answered as a whole in time" if left <= 0 else "answered with more than 1 MiB")
        return left

    def lives(self) -> bool:
        """Whether the node has not closed it meanwhile. After an answer with "Connection: close" there is no socket."""
        try:
            self._connection.sock.settimeout(0)
            return bool(socket.socket.recv(self._connection.sock, 1, socket.MSG_PEEK))
        except (OSError, AttributeError) as error:
            return isinstance(error, BlockingIOError)

    def ask(self, line: Line, method: str, path: str, data: Optional[bytes], end: float, shapes: Sequence[Shape]) -> Any:
        """An answer that has one of the shapes; after any other but a refusal the connection is closed."""
        try:
            answer = self.open(line, method, path, data, end - clock())
            value = parsed(answer.read(MOST))
            if answer.status != 200 or not any(has(value, shape) for shape in shapes): raise refusal(answer, value)
            self._used = clock()
            return value
        except BaseException as error:
            if not isinstance(error, Refused): self.close()
            raise

    def open(self, line: Line, method: str, path: str, data: Optional[bytes], timeout: float) -> http.client.HTTPResponse:
        """Sends a request to the line's present node and gives the head of its answer; all of it within `timeout`."""
        self.end, self.room, url = clock() + timeout, MOST, line.nodes.urls[line.nth % len(line.nodes.urls)]
        if self._url != url or clock() > self._used + IDLE or not self.lives():
            self.close()
            make = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
            # A half of it for each of two addresses, or for one and TLS.
            self._url, self._connection = url, make(str(url.hostname), url.port, timeout=min(timeout / 2, CONNECT))
            self._connection.response_class = functools.partial(bounded, weakref.proxy(self))
            self._connection.connect()
        if line.over.is_set(): raise OSError("closed")
        self._connection.sock.settimeout(self.left())
        self._connection.request(method, path, data, {"Authorization": f"Bearer {line.nodes.token}", "Content-Type": "application/json"})
        return self._connection.getresponse()


# Who wants to wait at a node for something to happen, the longest first.
waiting: Dict[Line, None] = {}


class Wires:
    """So many connections; the one that was used last is the first to be used again."""

    def __init__(self, count: int) -> None:
        self.count = count
        own.add(self)
        self._forked()

    def _forked(self) -> None:
        self.free: Any = queue.LifoQueue()
        self.wanted: Dict[Line, None] = {}
        waiting.clear()
        for _ in range(self.count): self.free.put(Wire())

    @contextlib.contextmanager
    def one(self, line: Line, timeout: float) -> Iterator[Wire]:
        """A connection for this line, which it waits for."""
        self.wanted[line] = None
        try:
            line._wire = self.free.get(timeout=timeout)
        finally:
            self.wanted.pop(line, None)
        try:
            yield line._wire
        finally:
            wire, line._wire = line._wire, None
            self.free.put(wire)
            if self.wanted: time.sleep(FAIR)  # else who has just had one has it again at once


CALLS = Wires(CONNECTIONS)


class Line:
    """The way to the nodes for one task, used by one thread; `cut` may be called by any. `wires`: whose connections it uses."""

    _wire: Optional[Wire] = None

    def __init__(self, nodes: Nodes, wires: Wires = CALLS) -> None:
        self.nodes, self.nth, self.over, self.forked = nodes, nodes.answers, threading.Event(), False
        # Tries since one was answered.
        self.failed, self._wires = 0, wires
        own.add(self)

    def _forked(self) -> None:
        threading.Event.__init__(self.over)  # a thread of the parent may have had its lock
        self.over.set()
        self._wire, self.forked = None, True

    def cut(self) -> None:
        """Ends the call under way, and every later one, with `Unreachable`."""
        self.over.set()
        with contextlib.suppress(OSError, AttributeError): self._wire._connection.sock.shutdown(socket.SHUT_RDWR)  # there may be no connection, or it is closed already

    @contextlib.contextmanager
    def waits(self, most: float) -> Iterator[float]:
        """So long it may wait at a node. While others do it is nothing, and asked less and less often the more there are."""
        waiting[self] = None
        try:
            if self in list(waiting)[:WAITING]:
                yield most
            else:
                self.over.wait(random.uniform(0.5, 1.0) * min(most, max(1.0, 0.02 * len(waiting))))
                yield 0.0
        finally:
            waiting.pop(self, None)

    def once(self, method: str, path: str, body: Any, timeout: float, *shapes: Shape) -> Any:
        """One try at one node, whose answer has one of the shapes; after a failure the next try goes to the next node."""
        self.nth, self.failed, end = self.nth if self.failed else self.nodes.answers, self.failed + 1, clock() + timeout
        data = encoded(body)  # what cannot be encoded is the caller's error: no other try would help
        try:
            with self._wires.one(self, timeout) as wire:
                if self.failed > 1: wire.close()  # something in between may have forgotten all that are open
                value = wire.ask(self, method, path, data, end, shapes)
        except Refused:
            self.failed, self.nodes.answers = 0, self.nth
            raise
        except Exception as error:  # whatever the library makes of what no node said
            self.nth += 1
            if self.failed >= len(self.nodes.urls) and not self.over.is_set() and clock() >= self.nodes.complained + COMPLAINT:
                self.nodes.complained = clock()
                tell(logging.WARNING, "no node answers at %s: %s", ", ".join(url.netloc for url in self.nodes.urls), error)
            raise error if isinstance(error, Unreachable) else Unreachable(f"{type(error).__name__}: {error}") from error
        self.failed, self.nodes.answers = 0, self.nth
        return value

    def call(self, method: str, path: str, body: Any, timeout: float, patience: float, *shapes: Shape) -> Any:
        """Tries `once` until it is answered; no new try begins after `patience` seconds."""
        began = clock()
        while True:
            try:
                return self.once(method, path, body, timeout, *shapes)
            except Unreachable:
                if self.over.wait(self.pause()) or clock() - began >= patience: raise

    def pause(self) -> float:
        """Seconds before the next try: none until every node has failed once, then more and more, never all clients at once."""
        rounds = min(self.failed // len(self.nodes.urls), 8)
        return random.uniform(0.25, 1.0) * (min(2.0, 0.1 * 2.0**rounds) if rounds else 0.02)


def frames(nodes: Nodes, logs: Sequence[str]) -> Iterator[Dict[str, Any]]:
    """See `Soloist.follow`."""
    wire, path, retry = Wire(), "/api/v1/live?follow=" + quote(",".join(logs)) if logs else "/api/v1/live", 1.0
    line = Line(nodes)
    while True:
        try:
            answer, data = wire.open(line, "GET", path, None, BEGIN), ""
            if answer.status != 200: raise refusal(answer, parsed(answer.read(MOST)))
            for raw in answer:
                wire.end, wire.room = clock() + SILENT, MOST_OF_FRAME - len(data)
                text = raw.decode().rstrip("\r\n")
                if text.startswith("data:"):
                    data += text[5:]
                elif text.startswith("retry:"):
                    retry = int(text[6:]) / 1000
                elif not text and data:
                    yield json.loads(data)
                    data = ""
        except Exception as error:
            if line.over.is_set() or isinstance(error, Refused): raise  # over: in a forked child
            # Else a gap, or no stream of a node: the next one begins with a snapshot.
        wire.close()
        line.nth += 1
        time.sleep(random.uniform(retry / 2, retry * 1.5))
