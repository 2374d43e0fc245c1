"""Checks before the first broker is stopped: Kafka and Java, and Kafka's own check of settings."""

import functools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from earshot import sockets
from earshot.errors import AddressError, EarshotError
from earshot.jvm.broker_settings import ParserAnswer, ask_kafka
from earshot.jvm.jars import kafka_broker_jars
from earshot.jvm.java import Java, find_java
from earshot.listeners.model import ClusterPlan, Node
from earshot.listeners.properties import NodeSettings, read_properties
from earshot.listeners.render import server_properties
from earshot.transition.refusal import STOP_FIRST
from earshot_pulumi import expired, listener_removal
from earshot_pulumi.local.cluster_memory import ended, ended_first, node_directory, recall
from earshot_pulumi.local.node_files import as_written
from earshot_pulumi.local.process_record import PROPERTIES, running
from earshot_pulumi.node_data import feature_level, is_formatted
from earshot_pulumi.node_links import Links, unrollable
from earshot_pulumi.refusals import (
    REMEMBER,
    goes_back,
    older_kafka,
    refuse,
    refused_settings,
)


@dataclass(frozen=True)
class Kafka:
    """The Java and the jars to run one version of Kafka on this machine."""

    version: str
    java: Java
    jars: tuple[Path, ...]


def find_kafka(version: str, *, fetching: bool = True) -> Kafka:
    """Kafka ``version``, verified once per process; fetched if it is not in the cache.

    Raises EarshotError if anything is missing.
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


def problems(root: Path, plan: ClusterPlan, final_plan: ClusterPlan | None = None) -> Iterator[str]:
    """Why running nodes must not be changed to ``plan``; fetches nothing, for previews.

    Kafka checks the settings if its jars are in the cache; `prepare` always runs that check.
    ``final_plan`` is the plan at the end of the change; Kafka must accept it too, so that the
    change does not stop half-way.
    """
    links = {
        id: Links.of_settings(read_properties(text).values)
        for id, text in _running_settings(root, plan)
        if text  # else its settings are lost
    }
    yield from unrollable(links, Links.of_plan(plan), f"{REMEMBER}; or {STOP_FIRST}")
    yield from _all_kafka_problems(root, plan, final_plan, fetching=False)


def prepare(root: Path, plan: ClusterPlan, final_plan: ClusterPlan | None = None) -> None:
    """Fetches the Kafka of ``plan``, and checks that it accepts the nodes' settings and data.

    Raises EarshotError.
    """
    find_kafka(plan.kafka_version)
    refuse(_all_kafka_problems(root, plan, final_plan, fetching=True))


def _all_kafka_problems(
    root: Path, plan: ClusterPlan, final_plan: ClusterPlan | None, fetching: bool
) -> list[str]:
    plans = [plan] if final_plan is None else [plan, final_plan]
    messages: list[str] = []
    for version in dict.fromkeys(candidate.kafka_version for candidate in plans):
        version_plans = [candidate for candidate in plans if candidate.kafka_version == version]
        messages += _kafka_problems(root, version, version_plans, fetching)
    return list(dict.fromkeys(messages))


def _kafka_problems(
    root: Path, version: str, plans: Sequence[ClusterPlan], fetching: bool
) -> Iterator[str]:
    """Why Kafka ``version`` refuses the settings of ``plans`` or the data under ``root``.

    Empty if no running node would change, or if Kafka's jars are missing and ``fetching`` is false.
    """
    settings = [{node.id: server_properties(plan, node) for node in plan.nodes} for plan in plans]
    running_texts = {id: as_written(text) for id, text in _running_settings(root, plans[0])}
    changed_settings = [
        texts_by_id for texts_by_id in settings if running_texts and running_texts != texts_by_id
    ]
    memory = recall(root)
    is_older = memory is not None and goes_back(version, memory.kafka_version)
    if not changed_settings and not is_older:
        return
    try:
        kafka = find_kafka(version, fetching=fetching)
    except EarshotError:
        if fetching:
            raise
        return
    # one check for all plans, as most of its time is Kafka's start
    texts = tuple(dict.fromkeys(text for texts_by_id in settings for text in texts_by_id.values()))
    try:
        answer = _answer(kafka, texts)
    except EarshotError as error:
        yield error.line
        return
    reasons_by_text = {texts[index]: reason for index, reason in answer.refusals.items()}
    for texts_by_id in changed_settings:
        reasons_by_id = {
            id: reasons_by_text[text] for id, text in texts_by_id.items() if text in reasons_by_text
        }
        yield from refused_settings(version, reasons_by_id)
    if memory is not None and is_older:
        folders = [path / "log" for path in root.glob("node-*")]
        level, newest = feature_level(folders), answer.metadata_version
        if is_formatted(folders) and (level is None or newest is None or level > newest):
            yield older_kafka(version, memory.kafka_version)


@functools.cache
def _answer(kafka: Kafka, texts: tuple[str, ...]) -> ParserAnswer:
    """Kafka's answer for texts of properties files, by their index.

    Cached, because a check and the update after it have the same texts.
    """
    return ask_kafka(kafka.java, kafka.jars, dict(enumerate(texts)))


def _running_settings(root: Path, plan: ClusterPlan) -> Iterator[tuple[int, str]]:
    """The id of each running node of ``plan``, and the properties that it was started with."""
    for node in plan.nodes:
        directory = node_directory(root, node.id)
        if running(directory) is not None:
            yield node.id, started_with(directory)


def settings_of_running(root: Path) -> dict[int, NodeSettings]:
    """The settings that each running node under ``root`` was started with, by node id.

    Raises EarshotError if this user may not see which nodes run.
    """
    return {
        int(id): read_properties(started_with(directory))
        for directory in root.glob("node-*")
        if (id := directory.name.removeprefix("node-")).isdigit() and running(directory) is not None
    }


def expired_problems(root: Path) -> Iterator[str]:
    """Why no node under ``root`` can be restarted while others, whose certificates have expired,
    run."""
    ends = _expired(root)
    are_others_up = bool(ends) and not ended(root, except_id=min(ends))
    yield from expired.problems(ends, can_go_first=are_others_up)


def in_order(root: Path, nodes: Sequence[Node]) -> list[Node]:
    """``nodes`` in the order of a change: those that have ended, those whose certificate has
    expired, the others."""
    ends = _expired(root)
    return ended_first(root, sorted(nodes, key=lambda node: node.id not in ends))


def _expired(root: Path) -> dict[int, datetime]:
    """The end of the certificate of each running node under ``root`` that has expired, by id."""
    running_nodes = settings_of_running(root).items()
    return expired.of_running(
        (id, settings.values, expired.read_text) for id, settings in running_nodes
    )


def started_with(directory: Path) -> str:
    """The properties file that a node was last started with, as text; empty if there is none."""
    try:
        return (directory / PROPERTIES).read_text(encoding="latin-1")
    except OSError:
        return ""


def version_of(directory: Path) -> str:
    """The Kafka version that a node was last started with; empty if unknown."""
    return read_properties(started_with(directory)).notes.get("kafka_version", "")


def client_problems(root: Path, plan: ClusterPlan) -> Iterator[str]:
    """A message for each listener with connected clients that ``plan`` removes, or whose protocol
    it changes.

    Connections from other nodes of the cluster do not count: a restarted broker reconnects.
    """
    directories = {node.id: node_directory(root, node.id) for node in plan.brokers}
    pids = {
        id: record.pid
        for id, directory in directories.items()
        if (record := running(directory)) is not None
    }
    origins_by_listener: dict[str, Counter[str]] = {}
    for id, pid in pids.items():
        values = read_properties(started_with(directories[id])).values
        try:
            # without its settings, a node's listeners are unknown
            removed_ports = listener_removal.removed_ports(values, plan, id) if values else {}
        except AddressError as error:
            yield (
                f"{directories[id] / PROPERTIES} has other settings than those with which node "
                f"{id} was started, because another program has written it ({error.line}). Restore "
                "it from a copy; or stop the node, and the same command writes the file again and "
                "starts the node"
            )
            continue
        for connection in sockets.connected(pid, removed_ports) if removed_ports else ():
            if connection.pid not in pids.values():
                origins = origins_by_listener.setdefault(removed_ports[connection.port], Counter())
                origins[connection.origin] += 1
    yield from listener_removal.problems(origins_by_listener, plan)
