"""Messages of all placements for changes that existing data rules out."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from earshot.config.cluster import FIRST_SEPARATE_CONTROLLER
from earshot.errors import EarshotError
from earshot.listeners.listed import listed

REMEMBER = (
    "Run the same command once with the current listeners, so that they are recorded, and then "
    "with these"
)
"""Where nothing is remembered of what runs; else such a change is made in steps."""
SHOWN = 5
"""Replicas that one message names."""


def refuse(problems: Iterable[str]) -> None:
    """Raises EarshotError if there are ``problems``, in an update that has not stopped a broker."""
    if found := "".join(f"\n- {problem}" for problem in problems):
        raise EarshotError("nothing was changed", observed=found)


def other_voters(held: Iterable[int], wanted: Iterable[int], removal: str) -> str:
    """Why a static quorum keeps its voters; ``removal`` is how to remove the data."""
    before, after = sorted(held), sorted(wanted)
    keep = f"`controllers.count: {len(before)}`"
    if (mode := _mode(before)) != _mode(after):
        keep = f"`controllers.mode: {mode}` and {keep}"
    return (
        f"the quorum has the voters {listed(before)} and would get {listed(after)}: "
        "voters are written into every node's data when it is formatted, and a static "
        f"quorum cannot change them. Set {keep} to keep them, or remove the data with {removal}"
    )


def moving_controllers(held: str, wanted: str, remedy: str) -> str:
    """Why running controllers do not get other addresses."""
    return (
        f"the controllers would move from {held} to {wanted} while they run: no majority would "
        f"find each other during a rolling change. {remedy}"
    )


def older_kafka(wanted: str, written: str, removal: str) -> str:
    """Why Kafka ``wanted`` is not started on data of the newer Kafka ``written``."""
    return (
        f"Kafka {wanted} is older than {written}, which has written the data; a KRaft cluster "
        f"goes forward only. Keep the version, or remove the data with {removal}"
    )


def refused_settings(version: str, refusals: Mapping[int, str]) -> Iterator[str]:
    """Kafka's own messages about nodes' settings, each once with all its nodes."""
    messages = {id: text.rstrip(".") for id, text in sorted(refusals.items())}
    for text in dict.fromkeys(messages.values()):
        ids = [id for id in messages if messages[id] == text]
        yield (
            f"Kafka {version} refuses the settings of node {listed(ids)}: {text}. "
            "Correct them in the stack file"
        )


def holds_replicas(id: int, held: Sequence[str]) -> str:
    """Why broker ``id`` is not removed as long as it holds these replicas."""
    more = f" and {len(held) - SHOWN} more" if len(held) > SHOWN else ""
    return (
        f"broker {id} would be removed and still holds {len(held)} replica(s): "
        f"{', '.join(held[:SHOWN])}{more}. Move them to the brokers that stay "
        "(kafka-reassign-partitions), or keep the broker"
    )


def goes_back(wanted: str, written: str) -> bool:
    """Whether ``wanted`` is a release of Kafka before that of ``written``."""
    return release(wanted)[:2] < release(written)[:2]


def release(version: str) -> tuple[int, ...]:
    """The numbers of a Kafka version, for comparison."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def _mode(voters: Sequence[int]) -> str:
    return "separate" if voters[0] >= FIRST_SEPARATE_CONTROLLER else "combined"
