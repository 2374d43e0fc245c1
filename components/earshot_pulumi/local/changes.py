"""Checks before the first broker is stopped: what a change needs, and whether Kafka accepts it."""

import functools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from earshot import sockets
from earshot.errors import AddressError, EarshotError
from earshot.jvm.broker_settings import ParserAnswer, ask_kafka
from earshot.jvm.jars import kafka_broker_jars
from earshot.jvm.java import Java, find_java
from earshot.listeners.model import ClusterPlan
from earshot.listeners.properties import NodeSettings, read_properties
from earshot.listeners.render import server_properties
from earshot_pulumi import leaving
from earshot_pulumi.local.node_files import as_written
from earshot_pulumi.local.quorum import node_directory, recall
from earshot_pulumi.local.record import PROPERTIES, running
from earshot_pulumi.node_data import feature_level, is_formatted
from earshot_pulumi.refusals import REMEMBER, goes_back, older_kafka, refuse, refused_settings
from earshot_pulumi.rolling import Links, unrollable

STOP_FIRST = f"{REMEMBER}; or stop the cluster first (`pulumi destroy`; data is kept)"
REMOVAL = "`data: delete` and `pulumi destroy`"


@dataclass(frozen=True)
class Kafka:
    """What is needed to run one version of Kafka on this machine."""

    version: str
    java: Java
    jars: tuple[Path, ...]


def kafka_at_hand(version: str, *, fetching: bool = True) -> Kafka:
    """Kafka ``version``, verified once per process; fetched where it is not in the cache.

    Raises EarshotError where anything is missing.
    """
    try:
        return _verified(version)
    except EarshotError:
        if not fetching:
            raise
    kafka_broker_jars(version)
    return _verified(version)


@functools.cache
def _verified(version: str) -> Kafka:
    return Kafka(version, find_java(), kafka_broker_jars(version, fetching=False))


def problems(root: Path, plan: ClusterPlan, wanted: ClusterPlan | None = None) -> Iterator[str]:
    """Why running nodes must not be changed to ``plan``; fetches nothing, so a preview can call it.

    Kafka itself is asked where its jars are in the cache; `prepare` always asks it. ``wanted`` is
    the plan of a later step, which it must accept too: or the change would end half-way.
    """
    links = {
        id: Links.of_settings(read_properties(text).values)
        for id, text in _running_settings(root, plan)
        if text  # else its settings are not known
    }
    yield from unrollable(links, Links.of_plan(plan), STOP_FIRST)
    yield from _all_kafka_problems(root, plan, wanted, fetching=False)


def prepare(root: Path, plan: ClusterPlan, wanted: ClusterPlan | None = None) -> None:
    """Fetches what ``plan`` needs, and checks that Kafka accepts the nodes' settings and data.

    Raises EarshotError before any node is touched.
    """
    kafka_at_hand(plan.kafka_version)
    refuse(_all_kafka_problems(root, plan, wanted, fetching=True))


def _all_kafka_problems(
    root: Path, plan: ClusterPlan, wanted: ClusterPlan | None, fetching: bool
) -> list[str]:
    plans = [plan] if wanted is None else [plan, wanted]
    found: list[str] = []
    for version in dict.fromkeys(item.kafka_version for item in plans):
        same = [item for item in plans if item.kafka_version == version]
        found += _kafka_problems(root, version, same, fetching)
    return list(dict.fromkeys(found))


def _kafka_problems(
    root: Path, version: str, plans: Sequence[ClusterPlan], fetching: bool
) -> Iterator[str]:
    """Why Kafka ``version`` refuses the settings or the data; ``plans`` are of this version.

    Empty where no running node would change, or where Kafka's jars would have to be fetched.
    """
    settings = [{node.id: server_properties(it, node) for node in it.nodes} for it in plans]
    runs = {id: as_written(text) for id, text in _running_settings(root, plans[0])}
    changed = [it for it in settings if runs and runs != it]
    memory = recall(root)
    older = memory is not None and goes_back(version, memory.kafka_version)
    if not changed and not older:
        return
    try:
        kafka = kafka_at_hand(version, fetching=fetching)
    except EarshotError:
        if fetching:
            raise
        return
    # one question for all plans: what takes the time is Kafka's start
    texts = tuple(dict.fromkeys(text for it in settings for text in it.values()))
    try:
        answer = _answer(kafka, texts)
    except EarshotError as error:
        yield error.line
        return
    refused = {texts[index]: why for index, why in answer.refusals.items()}
    for it in changed:
        why = {id: refused[text] for id, text in it.items() if text in refused}
        yield from refused_settings(version, why)
    if memory is not None and older:
        folders = [path / "log" for path in root.glob("node-*")]
        level, newest = feature_level(folders), answer.metadata_version
        if is_formatted(folders) and (level is None or newest is None or level > newest):
            yield older_kafka(version, memory.kafka_version, REMOVAL)


@functools.cache
def _answer(kafka: Kafka, texts: tuple[str, ...]) -> ParserAnswer:
    """Kafka's answer by the place of each text of properties, asked once per process.

    A check and the update after it need the same.
    """
    return ask_kafka(kafka.java, kafka.jars, dict(enumerate(texts)))


def _running_settings(root: Path, plan: ClusterPlan) -> Iterator[tuple[int, str]]:
    """By id of each running node of ``plan``, the settings that it was started with."""
    for node in plan.nodes:
        directory = node_directory(root, node.id)
        if running(directory) is not None:
            yield node.id, started_with(directory)


def settings_of_running(root: Path) -> dict[int, NodeSettings]:
    """By id of each running node under ``root``, the settings that it was started with.

    Raises EarshotError where this user may not see which nodes run.
    """
    return {
        int(id): read_properties(started_with(directory))
        for directory in root.glob("node-*")
        if (id := directory.name.removeprefix("node-")).isdigit() and running(directory) is not None
    }


def started_with(directory: Path) -> str:
    """The text of the properties that a node was last started with; empty where there is none."""
    try:
        return (directory / PROPERTIES).read_text(encoding="latin-1")
    except OSError:
        return ""


def version_of(directory: Path) -> str:
    """The Kafka version that a node was last started with; empty where that is not known."""
    return read_properties(started_with(directory)).notes.get("kafka_version", "")


def client_problems(root: Path, plan: ClusterPlan) -> Iterator[str]:
    """Listeners of running nodes that ``plan`` lacks, or has with another protocol, and that
    clients are connected to.

    Other nodes of the cluster are no clients: a broker that is restarted connects again.
    """
    directories = {node.id: node_directory(root, node.id) for node in plan.brokers}
    pids = {
        id: record.pid
        for id, directory in directories.items()
        if (record := running(directory)) is not None
    }
    found: dict[str, Counter[str]] = {}
    for id, pid in pids.items():
        # its settings are lost, so its listeners are unknown
        values = read_properties(started_with(directories[id])).values
        try:
            going = leaving.leaving(values, plan, id) if values else {}
        except AddressError as error:
            yield (
                f"{directories[id] / PROPERTIES} is not what node {id} was started with, as "
                f"another program has written it ({error.line}). Put it back from a copy; or stop "
                "the node, and the same command writes the file again and starts it"
            )
            continue
        for connection in sockets.connected(pid, going) if going else ():
            if connection.pid not in pids.values():
                origins = found.setdefault(going[connection.port], Counter())
                origins[connection.origin] += 1
    yield from leaving.problems(found)
