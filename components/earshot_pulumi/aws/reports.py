"""Nodes' reports in SSM parameters, and waiting until all nodes report that they are in sync.

Brokers in private subnets cannot be reached from outside. So each node reports which instance it
is, which user data it booted with, and its state.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from earshot.errors import EarshotError
from earshot.listeners.listed import listed
from earshot.user_data.boot import NodeReport

POLL = 5.0
"""Seconds between two reads; an account may read parameters 40 times a second:
https://docs.aws.amazon.com/general/latest/gr/ssm.html"""
AT_ONCE = 10
"""Parameters per call."""

Read = Callable[[Sequence[str]], dict[str, str]]
"""The values of the parameters that exist, by name."""
Starts = Callable[[Sequence[str]], Mapping[str, float]]
"""When EC2 last started each instance of these ids, in seconds since the epoch."""


@dataclass(frozen=True)
class Awaited:
    """One node as it was deployed."""

    node: int
    parameter: str
    instance: str
    user_data: str
    """The digest of the instance's user data."""
    hardware: str = ""
    """What EC2 stops and starts the instance to change."""
    granted: str = ""
    """Differs with every change of the node."""
    size_gib: int = 0
    """Of its data volume."""


def wait_for(
    nodes: Sequence[Awaited],
    read: Read,
    deadline: float,
    starts: Starts,
    *,
    poll: float = POLL,
    progress: Callable[[str], None] = lambda _: None,
) -> None:
    """Returns when every one of ``nodes`` has reported that it is in sync, as deployed.

    A report of an earlier boot does not count. Raises EarshotError with the last report of each
    missing one, as soon as one has given up or when ``deadline`` (s) has passed.
    """
    began = time.monotonic()
    started = starts([item.instance for item in nodes])
    shown = began
    while True:
        missing, gave_up = _missing(nodes, read([item.parameter for item in nodes]), started)
        now = time.monotonic()
        if not missing:
            return
        if gave_up or now - began > deadline:
            raise _not_ready(missing, "" if gave_up else f" after {deadline:.0f} s")
        if now - shown > 15:
            shown = now
            details = "; ".join(f"node {id}: {text}" for id, text in sorted(missing.items())[:3])
            progress(f"waiting for node {listed(sorted(missing))} ({now - began:.0f} s): {details}")
        time.sleep(poll)


def _missing(
    nodes: Sequence[Awaited], values: Mapping[str, str], started: Mapping[str, float]
) -> tuple[dict[int, str], bool]:
    """By node that is not in sync, what it lacks; and whether one of them has given up."""
    found: dict[int, str] = {}
    gave_up = False
    for item in nodes:
        if item.parameter not in values:
            found[item.node] = f"its parameter {item.parameter} is gone"
        elif (report := NodeReport.read(values[item.parameter])) is None:
            found[item.node] = "it has not reported yet"
        elif lack := _lack(report, item, started.get(item.instance, 0.0)):
            found[item.node] = lack
            gave_up = gave_up or (report.is_final and lack == report.lacking)
    return found, gave_up


def _lack(report: NodeReport, of: Awaited, started: float) -> str:
    return report.lacks(of.node, of.instance, of.user_data, started, of.size_gib)


def _not_ready(missing: dict[int, str], late: str) -> EarshotError:
    details = "".join(f"\n  - node {id}: {text}" for id, text in sorted(missing.items()))
    return EarshotError(
        f"node {listed(sorted(missing))}",
        observed=f"not in sync{late}; last report:{details}",
        remedy="look on the instance (`aws ssm start-session --target INSTANCE`, then "
        "`journalctl -u kafka-prepare -u kafka`), fix it, and run the same command again",
    )
