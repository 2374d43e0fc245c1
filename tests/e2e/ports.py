"""Ports for the brokers of a test: each process that runs tests has its own range.

All are below the range from which Linux assigns free ports (32768 and up), and none is published by
a file of the seeds (29092 and more).
"""

import contextlib
import os
import random
import socket

FIRST, EACH = 20_000, 1_500
MAX_WORKERS = 6
"""The number of ranges; the last one ends at 29,000."""


def own_range() -> range:
    """The ports of this process: another one cannot take one before a broker's start."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    start = FIRST + EACH * (int(worker) % MAX_WORKERS)
    return range(start, start + EACH)


_reserved: set[int] = set()
"""Ports that are not assigned again in this process."""
_next = random.randrange(EACH)
"""The position in `own_range` at which the next search begins."""


def reserved_ports(length: int, blocks: int) -> list[int]:
    """Like `consecutive_ports`, for tests that name their ports when their module is imported."""
    starts = consecutive_ports(length, blocks)
    _reserved.update(start + offset for start in starts for offset in range(length + 1))
    return starts


def free_ports(count: int) -> list[int]:
    """``count`` ports of `own_range` that are free at this moment."""
    return [_run(1)[0] for _ in range(count)]


def consecutive_ports(length: int, blocks: int) -> list[int]:
    """The first ports of ``blocks`` disjoint runs of ``length`` + 1 free ports each."""
    return list(_run((length + 1) * blocks)[:: length + 1])


def _run(length: int) -> range:
    """Consecutive free ports, those that were not used for the longest time.

    A client that an earlier test left running retries the ports of its brokers, and would connect
    to a new process there.
    """
    global _next
    ports = own_range()
    for step in range(EACH):
        start = (_next + step) % EACH
        run = ports[start : start + length]
        if len(run) == length and _reserved.isdisjoint(run) and all(map(is_free, run)):
            _next = start + length
            return run
    raise AssertionError(f"no {length} free ports in a row on this machine")


def is_free(port: int) -> bool:
    """True if a broker could listen at this port now."""
    with socket.socket() as probe, contextlib.suppress(OSError):
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as a broker binds
        probe.bind(("0.0.0.0", port))
        return True
    return False
