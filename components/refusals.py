"""What no placement does to data that is there, in one wording."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from earshot.spec.cluster import FIRST_SEPARATE_CONTROLLER


def other_voters(held: Iterable[int], wanted: Iterable[int], removal: str) -> str:
    """Why a static quorum keeps its voters; ``removal`` is how to remove the data."""
    before, after = sorted(held), sorted(wanted)
    keep = f"`controllers.count: {len(before)}`"
    if (mode := _mode(before)) != _mode(after):
        keep = f"`controllers.mode: {mode}` and {keep}"
    return (
        f"the quorum has the voters {_listed(before)} and would get {_listed(after)}: "
        "voters are written into every node's data when it is formatted, and a static "
        f"quorum cannot change them. Set {keep} to keep them, or remove the data with {removal}"
    )


def moving_controllers(held: str, wanted: str, remedy: str) -> str:
    """Why controllers that run are not given other addresses."""
    return (
        f"the controllers would move from {held} to {wanted} while they run: no majority would "
        f"find each other during a rolling change. {remedy}"
    )


def older_kafka(wanted: str, written: str, removal: str) -> str:
    """Why no older Kafka is started on the data of ``written``."""
    return (
        f"Kafka {wanted} is older than {written}, which has written the data; a KRaft cluster "
        f"goes forward only. Keep the version, or remove the data with {removal}"
    )


def goes_back(wanted: str, written: str) -> bool:
    """Whether ``wanted`` is a release of Kafka before that of ``written``."""
    return _minor(wanted) < _minor(written)


def _mode(voters: Sequence[int]) -> str:
    return "separate" if voters[0] >= FIRST_SEPARATE_CONTROLLER else "combined"


def _minor(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


def _listed(ids: Iterable[int]) -> str:
    return ", ".join(map(str, ids))
