"""Ports for the brokers of a test: each process that runs tests draws from a range of its own.

All are below the range from which Linux takes a port for whoever asks for any (32768 and up), and
none is one that the files of the seeds publish (29092 and more).
"""

import contextlib
import os
import random
import socket

FIRST, EACH = 20_000, 1_500
MOST_WORKERS = 6
"""As many ranges as there are; the last one ends at 29,000."""


def own_range() -> range:
    """Of this process: another one cannot take a port between its choice and a broker's start."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    start = FIRST + EACH * (int(worker) % MOST_WORKERS)
    return range(start, start + EACH)


_kept: set[int] = set()
"""No longer given out in this process."""
_next = random.randrange(EACH)
"""Where in `own_range` the next search begins."""


def kept_ports(length: int, blocks: int) -> list[int]:
    """As `consecutive_ports`, for tests that name their ports as a module is read."""
    starts = consecutive_ports(length, blocks)
    _kept.update(start + offset for start in starts for offset in range(length + 1))
    return starts


def free_ports(count: int) -> list[int]:
    """``count`` ports of `own_range` that are free at this moment."""
    return [_run(1)[0] for _ in range(count)]


def consecutive_ports(length: int, blocks: int) -> list[int]:
    """The first ports of ``blocks`` disjoint runs of ``length`` + 1 free ports each."""
    return list(_run((length + 1) * blocks)[:: length + 1])


def _run(length: int) -> range:
    """Free ports in a row, of those whose last use is longest ago.

    A client that an earlier test has left behind tries its brokers' ports again and again, and
    would be one of whoever listens there next.
    """
    global _next
    ports = own_range()
    for step in range(EACH):
        start = (_next + step) % EACH
        run = ports[start : start + length]
        if len(run) == length and _kept.isdisjoint(run) and all(map(is_free, run)):
            _next = start + length
            return run
    raise AssertionError(f"no {length} free ports in a row on this machine")


def is_free(port: int) -> bool:
    """Whether a broker could listen there at this moment."""
    with socket.socket() as probe, contextlib.suppress(OSError):
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as a broker binds
        probe.bind(("0.0.0.0", port))
        return True
    return False
