"""Clients of a listener that a change removes, from the reports of the nodes."""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping

from earshot.user_data.boot import CLIENTS_SECONDS, NodeReport, NodeState
from earshot_pulumi import leaving
from earshot_pulumi.aws.credentials import Read

POLL = 2.0
"""Seconds between two reads."""
MOST_SECONDS = 4 * CLIENTS_SECONDS
"""A node without a new report by then does not report."""
_NOT_COUNTED = "clients are counted from the step on that marks a listener as leaving"


def problems(
    names: Collection[str],
    parameters: Mapping[int, str],
    read: Read,
    *,
    gone: bool = False,
    progress: Callable[[str], None] = lambda _: None,
    poll: float = POLL,
    seconds: float = MOST_SECONDS,
) -> Iterator[str]:
    """Why the listeners ``names``, which a change takes away, must not go yet.

    ``parameters`` are those in which brokers report, by node id. Reports count that are newer than
    this call, so a client that has left is not seen. Where the change was begun before (``gone``),
    a broker that reports no clients has lost the listeners already, and may still start. Raises
    EarshotError where AWS does not answer.
    """
    first = _reports(parameters, read)
    silent = [id for id, it in first.items() if it and it.clients is None and (gone or it.serves)]
    awaited = parameters.keys() - set(silent)
    if awaited:
        names_text = ", ".join(sorted(names))
        progress(f"asking brokers who uses {names_text}; they report every {CLIENTS_SECONDS} s")
    waiting = {id: parameters[id] for id in awaited}
    used, missing = _renewed(first, waiting, read, gone, poll, seconds)
    if not gone:
        missing |= dict.fromkeys(silent, _NOT_COUNTED)
    yield from leaving.problems({name: it for name, it in used.items() if it and name in names})
    if missing:
        yield _unknown(names, missing)


def _renewed(
    first: Mapping[int, NodeReport | None],
    waiting: dict[int, str],
    read: Read,
    gone: bool,
    poll: float,
    seconds: float,
) -> tuple[dict[str, Counter[str]], dict[int, str]]:
    """By listener, the clients in nodes' reports other than ``first``, and by node, why none came.

    ``waiting`` is used up.
    """
    used: dict[str, Counter[str]] = {}
    missing: dict[int, str] = {}
    end = time.monotonic() + seconds
    while waiting:
        for id, report in _reports(waiting, read).items():
            if report is None or report == first[id]:
                continue
            if gone and report.clients is None:  # an instance that came up meanwhile
                del waiting[id]
                continue
            if report.state is NodeState.STARTING:
                continue
            del waiting[id]
            if not report.serves:
                missing[id] = f"it reports {report.state} {report.detail}".strip()
            elif report.clients is None:
                missing[id] = "it could not count connections"
            for name, origins in (report.clients or {}).items():
                used.setdefault(name, Counter()).update(origins)
        if time.monotonic() > end:
            return used, missing | dict.fromkeys(waiting, "no new report")
        if waiting:
            time.sleep(poll)
    return used, missing


def _reports(parameters: Mapping[int, str], read: Read) -> dict[int, NodeReport | None]:
    values = read(list(parameters.values()))
    return {id: NodeReport.read(values.get(name, "")) for id, name in parameters.items()}


def _unknown(names: Collection[str], missing: Mapping[int, str]) -> str:
    names_text = ", ".join(sorted(names))
    nodes: dict[str, list[str]] = {}
    for id, why in sorted(missing.items()):
        nodes.setdefault(why, []).append(str(id))
    reasons = "; ".join(f"node {', '.join(ids)}: {why}" for why, ids in nodes.items())
    return (
        f"{names_text} would go, and whether clients are connected is not known ({reasons}). Let "
        "them use another listener, then set `remove: anyway` in the stack's file, or a date from "
        "which on it goes"
    )
