"""Run this while I am the one: the client of Soloist. Standard library only.

| module | what it does |
| --- | --- |
| `line` | the clock; HTTP to one of several nodes, with time-outs, fail-over and a few connections; the live stream |
| `life` | the life line: tells the watcher of a node on this machine under what this process works |
| `keep` | renews and watches all that is held, whatever its number, by three threads |
| `client` | leases, turns and tasks: the deadline, the interrupt, the watchdog |

It stores nothing and decides nothing: the node says who may work.
"""

from .client import Dead, Hold, Lease, Loop, NotGranted, Overrun, Retry, Soloist, Stopped, Task, Tick, Turn, release_on_exit
from .line import Refused, SoloistError, Unreachable

__version__ = "0.1.0"
__all__ = ["Soloist", "Lease", "Tick", "Turn", "Task", "Loop", "Hold", "Overrun", "Stopped", "Retry", "Dead", "NotGranted", "Refused",
           "Unreachable", "SoloistError", "release_on_exit"]
