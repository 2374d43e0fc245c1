"""Messages of all placements for changes that existing data or running nodes prevent."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from earshot.config.cluster import FIRST_SEPARATE_CONTROLLER
from earshot.errors import EarshotError
from earshot.listeners.listed import listed

REMEMBER = (
    "Run the same command once with the current listeners, so that they are recorded, and then "
    "with these"
)
"""The fix if no plan is recorded; with a recorded plan, such a change is made in steps."""
SHOWN = 5
"""Maximum number of replicas that one message names."""


def refuse(problems: Iterable[str]) -> None:
    """Raises EarshotError if there are ``problems``; called before an update stops a broker."""
    if lines := "".join(f"\n- {problem}" for problem in problems):
        raise EarshotError("nothing was changed", observed=lines)


def other_voters(present: Iterable[int], planned: Iterable[int], removal: str) -> str:
    """The message that a static quorum keeps its voters; ``removal`` is how to remove the data."""
    present_ids, planned_ids = sorted(present), sorted(planned)
    keep = f"`controllers.count: {len(present_ids)}`"
    if (mode := _mode(present_ids)) != _mode(planned_ids):
        keep = f"`controllers.mode: {mode}` and {keep}"
    return (
        f"the quorum has the voters {listed(present_ids)} and would get {listed(planned_ids)}: "
        "voters are written into every node's data when it is formatted, and a static "
        f"quorum cannot change them. Set {keep} to keep them, or remove the data with {removal}"
    )


def moving_controllers(current: str, planned: str, remedy: str) -> str:
    """The message that running controllers cannot get other addresses."""
    return (
        f"the controllers would move from {current} to {planned} while they run: no majority would "
        f"find each other during a rolling change. {remedy}"
    )


def older_kafka(version: str, written: str, removal: str) -> str:
    """Why Kafka ``version`` is not started on data of the newer Kafka ``written``."""
    return (
        f"Kafka {version} is older than {written}, which has written the data; a KRaft cluster "
        f"goes forward only. Keep the version, or remove the data with {removal}"
    )


def refused_settings(version: str, refusals: Mapping[int, str]) -> Iterator[str]:
    """One message per distinct refusal of Kafka, with all its nodes; ``refusals`` are by id."""
    messages = {id: text.rstrip(".") for id, text in sorted(refusals.items())}
    for text in dict.fromkeys(messages.values()):
        ids = [id for id in messages if messages[id] == text]
        yield (
            f"Kafka {version} refuses the settings of node {listed(ids)}: {text}. "
            "Correct them in the stack file"
        )


def holds_replicas(id: int, partitions: Sequence[str]) -> str:
    """The message that broker ``id`` is not removed while it holds the replicas ``partitions``."""
    more = f" and {len(partitions) - SHOWN} more" if len(partitions) > SHOWN else ""
    return (
        f"broker {id} would be removed and still holds {len(partitions)} replica(s): "
        f"{', '.join(partitions[:SHOWN])}{more}. Move them to the brokers that stay "
        "(kafka-reassign-partitions), or keep the broker"
    )


def goes_back(version: str, written: str) -> bool:
    """Whether ``version`` is a release of Kafka before that of ``written``."""
    return release(version)[:2] < release(written)[:2]


def release(version: str) -> tuple[int, ...]:
    """The numbers of a Kafka version, for comparison."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def _mode(voters: Sequence[int]) -> str:
    return "separate" if voters[0] >= FIRST_SEPARATE_CONTROLLER else "combined"
