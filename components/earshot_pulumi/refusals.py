"""Messages of all placements for changes that existing data or running nodes prevent."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from earshot.config.cluster import FIRST_SEPARATE_CONTROLLER
from earshot.errors import EarshotError
from earshot.listeners.listed import listed
from earshot.transition.refusal import STOP_FIRST

REMEMBER = (
    "Run the same command once with the current listeners, so that they are recorded, and then "
    "with these"
)
"""The fix if no plan is recorded. With a recorded plan, the change is made in steps."""
REMOVAL = "`data: delete` and `pulumi destroy`"
"""The commands that remove the data."""
NO_WAY_BACK = (
    "a KRaft cluster cannot go back to an older release. Keep the version, or remove the data with "
    f"{REMOVAL}"
)
MAX_SHOWN = 5
"""Maximum number of replicas in one message."""


def refuse(problems: Iterable[str]) -> None:
    """Raises EarshotError if there are ``problems``; called before an update stops a broker."""
    if lines := "".join(f"\n- {problem}" for problem in problems):
        raise EarshotError("nothing was changed", observed=lines)


def other_voters(current: Iterable[int], planned: Iterable[int]) -> str:
    """The message that a static quorum keeps its voters."""
    current_ids, planned_ids = sorted(current), sorted(planned)
    keep = f"`controllers.count: {len(current_ids)}`"
    if (mode := _mode(current_ids)) != _mode(planned_ids):
        keep = f"`controllers.mode: {mode}` and {keep}"
    return (
        f"the quorum has the voters {listed(current_ids)} and would get {listed(planned_ids)}: "
        "voters are written into every node's data when it is formatted, and a static "
        f"quorum cannot change them. Set {keep} to keep them, or remove the data with {REMOVAL}"
    )


def moving_controllers(current: str, planned: str, remedy: str = STOP_FIRST.capitalize()) -> str:
    """The message that running controllers cannot change their addresses."""
    return (
        f"the controllers would move from {current} to {planned} while they run: during a "
        f"rolling change no majority could connect to each other. {remedy}"
    )


def older_kafka(version: str, written: str) -> str:
    """The message that Kafka ``version`` is not started on data of the newer Kafka ``written``."""
    return f"Kafka {version} is older than {written}, which has written the data; {NO_WAY_BACK}"


def refused_settings(version: str, refusals: Mapping[int, str]) -> Iterator[str]:
    """A message per distinct refusal of Kafka, with all nodes that it concerns. ``refusals`` are by
    node id."""
    messages = {id: text.rstrip(".") for id, text in sorted(refusals.items())}
    for text in dict.fromkeys(messages.values()):
        ids = [id for id in messages if messages[id] == text]
        yield (
            f"Kafka {version} refuses the settings of node {listed(ids)}: {text}. "
            "Correct them in the stack file or in the component's inputs"
        )


def holds_replicas(id: int, partitions: Sequence[str]) -> str:
    """The message that broker ``id`` is not removed while it holds the replicas ``partitions``."""
    return (
        f"broker {id} would be removed and still holds {_replicas_text(partitions)}. Move them to "
        "the brokers that stay (kafka-reassign-partitions), or keep the broker"
    )


def leaves_data(id: int, volumes: Sequence[str], partitions: Sequence[str]) -> str:
    """The message that node ``id`` would leave its data in ``volumes``: ``partitions``, or, for a
    voter, the quorum's metadata."""
    content = _replicas_text(partitions) if partitions else "the quorum's metadata"
    way_out = (
        "move the replicas to other brokers first (kafka-reassign-partitions)"
        if partitions
        else "remove the volume if its data is no longer needed"
    )
    return (
        f"node {id} would start with an empty volume and leave its data in volume "
        f"{', '.join(volumes)}: {content}. Keep the node's name and Docker host (`names`, "
        f"`hosts`), or {way_out}"
    )


def _replicas_text(partitions: Sequence[str]) -> str:
    more_text = f" and {len(partitions) - MAX_SHOWN} more" if len(partitions) > MAX_SHOWN else ""
    return f"{len(partitions)} replica(s): {', '.join(partitions[:MAX_SHOWN])}{more_text}"


def goes_back(version: str, written: str) -> bool:
    """True if ``version`` is an older release of Kafka than ``written``."""
    return release(version)[:2] < release(written)[:2]


def release(version: str) -> tuple[int, ...]:
    """The numbers of a Kafka version, for comparison."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def _mode(voters: Sequence[int]) -> str:
    return "separate" if voters[0] >= FIRST_SEPARATE_CONTROLLER else "combined"
