"""Clients of a listener that a change removes, from the reports of the nodes."""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping

from earshot.user_data.boot import CLIENTS_SECONDS, NodeReport, NodeState
from earshot_pulumi import listener_removal
from earshot_pulumi.aws.credentials import Read

POLL = 2.0
"""Seconds between two reads."""
MAX_SECONDS = 4 * CLIENTS_SECONDS
"""Seconds to wait for new reports. A node without one by then does not report."""
_NOT_COUNTED = "clients are counted from the step on that marks a listener as leaving"


def problems(
    names: Collection[str],
    parameters: Mapping[int, str],
    read: Read,
    *,
    may_be_removed: bool = False,
    progress: Callable[[str], None] = lambda _: None,
    poll: float = POLL,
    seconds: float = MAX_SECONDS,
) -> Iterator[str]:
    """Why the listeners ``names`` must not be removed yet.

    ``parameters`` are those in which brokers report, by node id. Only reports that are newer than
    this call count, so a client that has disconnected is not reported. If the change was begun
    before (``may_be_removed``), a broker that reports no clients has lost the listeners already,
    and may still be starting. Raises EarshotError if AWS does not answer.
    """
    former_reports = _reports(parameters, read)
    uncounted_ids = [
        id
        for id, report in former_reports.items()
        if report and report.clients is None and (may_be_removed or report.serves)
    ]
    awaited_ids = parameters.keys() - set(uncounted_ids)
    if awaited_ids:
        names_text = ", ".join(sorted(names))
        progress(
            f"asking brokers for the clients of {names_text}; they report every {CLIENTS_SECONDS} s"
        )
    waiting = {id: parameters[id] for id in awaited_ids}
    origins_by_listener, reasons = _renewed(
        former_reports, waiting, read, may_be_removed, poll, seconds
    )
    if not may_be_removed:
        reasons |= dict.fromkeys(uncounted_ids, _NOT_COUNTED)
    yield from listener_removal.problems(
        {
            name: origins
            for name, origins in origins_by_listener.items()
            if origins and name in names
        }
    )
    if reasons:
        yield _unknown(names, reasons)


def _renewed(
    former_reports: Mapping[int, NodeReport | None],
    waiting: dict[int, str],
    read: Read,
    may_be_removed: bool,
    poll: float,
    seconds: float,
) -> tuple[dict[str, Counter[str]], dict[int, str]]:
    """The clients by listener in nodes' new reports; and by node without one, the reason.

    A report is new if it differs from the one in ``former_reports``. Removes nodes from
    ``waiting``.
    """
    origins_by_listener: dict[str, Counter[str]] = {}
    reasons: dict[int, str] = {}
    end = time.monotonic() + seconds
    while waiting:
        for id, report in _reports(waiting, read).items():
            if report is None or report == former_reports[id]:
                continue
            if may_be_removed and report.clients is None:  # the instance came up meanwhile
                del waiting[id]
                continue
            if report.state is NodeState.STARTING:
                continue
            del waiting[id]
            if not report.serves:
                reasons[id] = f"it reports {report.state} {report.detail}".strip()
            elif report.clients is None:
                reasons[id] = "it could not count connections"
            for name, origins in (report.clients or {}).items():
                origins_by_listener.setdefault(name, Counter()).update(origins)
        if time.monotonic() > end:
            return origins_by_listener, reasons | dict.fromkeys(waiting, "no new report")
        if waiting:
            time.sleep(poll)
    return origins_by_listener, reasons


def _reports(parameters: Mapping[int, str], read: Read) -> dict[int, NodeReport | None]:
    values = read(list(parameters.values()))
    return {id: NodeReport.read(values.get(name, "")) for id, name in parameters.items()}


def _unknown(names: Collection[str], reasons_by_id: Mapping[int, str]) -> str:
    names_text = ", ".join(sorted(names))
    ids_by_reason: dict[str, list[str]] = {}
    for id, reason in sorted(reasons_by_id.items()):
        ids_by_reason.setdefault(reason, []).append(str(id))
    reasons = "; ".join(f"node {', '.join(ids)}: {reason}" for reason, ids in ids_by_reason.items())
    return (
        f"{names_text} would be removed, and whether clients are connected is not known "
        f"({reasons}). Let them use another listener, then set `remove: anyway`, or a "
        "date from which it may be removed"
    )
