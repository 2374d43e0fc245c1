"""Nodes' reports in SSM parameters, and waiting until all nodes report that they are in sync.

Brokers in private subnets cannot be reached from outside. So each node reports which instance it
is, which user data it booted with, and its state.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
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


@dataclass(frozen=True)
class Awaited:
    """One node as it was deployed."""

    node: int
    parameter: str
    instance: str
    user_data: str
    """The digest of the instance's user data."""


def wait_for(
    nodes: Sequence[Awaited],
    read: Read,
    deadline: float,
    *,
    poll: float = POLL,
    progress: Callable[[str], None] = lambda _: None,
) -> None:
    """Returns when every one of ``nodes`` has reported that it is in sync, as deployed.

    Raises EarshotError with the last report of each missing one, as soon as one has given up or
    when ``deadline`` (s) has passed.
    """
    began = time.monotonic()
    shown = began
    while True:
        missing, gave_up = _missing(nodes, read([item.parameter for item in nodes]))
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


def quorum_with(nodes: Sequence[Awaited], voters: Sequence[str], read: Read) -> bool:
    """Whether ``nodes`` and the nodes last reported in sync are a majority of the ``voters``.

    If not, as in a new cluster, waiting for ``nodes`` would never end. The reports of ``nodes``
    themselves do not matter: their new instances may or may not have reported yet.
    """
    reports = {name: NodeReport.read(text) for name, text in read(voters).items()}
    counted = {name for name, it in reports.items() if it and it.serves}
    counted |= {item.parameter for item in nodes} & set(voters)
    return len(counted) * 2 > len(voters)


def _missing(nodes: Sequence[Awaited], values: dict[str, str]) -> tuple[dict[int, str], bool]:
    """By node that is not in sync, what it lacks; and whether one of them has given up."""
    found: dict[int, str] = {}
    gave_up = False
    for item in nodes:
        if item.parameter not in values:
            found[item.node] = f"its parameter {item.parameter} is gone"
        elif (report := NodeReport.read(values[item.parameter])) is None:
            found[item.node] = "it has not reported yet"
        elif lack := report.lacks(item.node, item.instance, item.user_data):
            found[item.node] = lack
            as_deployed = (report.instance, report.user_data) == (item.instance, item.user_data)
            gave_up = gave_up or (report.is_final and as_deployed)
    return found, gave_up


def _not_ready(missing: dict[int, str], late: str) -> EarshotError:
    details = "".join(f"\n  - node {id}: {text}" for id, text in sorted(missing.items()))
    return EarshotError(
        f"node {listed(sorted(missing))}",
        observed=f"not in sync{late}; last report:{details}",
        remedy="look on the instance (`aws ssm start-session --target INSTANCE`, then "
        "`journalctl -u kafka-prepare -u kafka`), fix it, and run the same command again",
    )
