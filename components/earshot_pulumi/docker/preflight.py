"""Checks on the engines before any broker changes.

The preflight inspects the engines, decides the cluster id, and checks that Kafka accepts the
settings of every node and that the ports to publish are free. The last two checks need the image:
if an engine lacks it, only the update pulls it and runs them.

A container of the image, without a network, runs `kafka.tools.StorageTool info`. That reads the
settings as a starting broker does, searches the data directories, and changes nothing.
"""

import contextlib
import re
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import docker
import pulumi

from earshot.config.docker_host import DockerHost
from earshot.engine.connection import DockerObject
from earshot.engine.failures import FAILURES
from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan
from earshot.listeners.properties import without_references
from earshot.listeners.render import server_properties
from earshot.remote.leftovers import remove_leftovers
from earshot_pulumi import listener_removal
from earshot_pulumi.docker import (
    engine_objects,
    host_ports,
    images,
    labels,
    running,
    throwaway,
    volume_data,
)
from earshot_pulumi.docker.container_address import Engines
from earshot_pulumi.docker.engine_objects import EngineObjects, TargetStack, hosts_of
from earshot_pulumi.docker.rolling_restart import GRACE
from earshot_pulumi.docker.throwaway import CommandFailed
from earshot_pulumi.provider.kind import UNKNOWN, Kind, Operation, Properties
from earshot_pulumi.provider.resource import InternalResource
from earshot_pulumi.refusals import refuse, refused_settings

AT_ONCE: Final = 8
"""Maximum number of engines checked at the same time."""
PATIENCE: Final = 40
"""Time limit in seconds for one node; an idle machine needs one second."""
PARSERS: Final = 4
"""Maximum number of nodes whose settings one container reads at the same time."""
_VARIABLE: Final = "EARSHOT_SETTINGS_OF_"
"""Shorter names would clash with variables of the image: NODE_VERSION, NODE_ID."""
_NODE: Final = re.compile(r"^### node (\d+)$", re.MULTILINE)
_REFUSAL: Final = re.compile(
    r"^(?:Exception in thread \"[^\"]+\" )?"
    r"(?:org\.apache\.kafka\.common\.config\.ConfigException"
    r"|java\.lang\.IllegalArgumentException: requirement failed): (?P<message>.+)$",
    re.MULTILINE,
)
# Kafka resolves the voters' hosts and ignores the result, which an empty hosts file speeds up
_SCRIPT: Final = f"""\
for libs in /opt/kafka/libs /usr/share/java/kafka ''; do [[ ! -d $libs ]] || break; done
[[ -n $libs ]] || {{ echo "it has no jars in the folders of Kafka images" >&2; exit 3; }}
type java >/dev/null 2>&1 || {{ echo "it has no Java" >&2; exit 3; }}
classes=() # the official image has an archive; an older Java refuses these options
for archive in /opt/kafka/storage.jsa /opt/kafka/kafka.jsa; do
    [[ -e $archive ]] || continue
    classes=(-Xshare:auto "-XX:SharedArchiveFile=$archive" -Xlog:cds=off -Xlog:cds+dynamic=off)
    break
done
cd "$(mktemp -d)" || exit 3
ask() {{
    printf '%s' "${{!1}}" >"$1.properties"
    timeout {PATIENCE} java -Xmx96m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \\
        "${{classes[@]}}" \\
        -Djdk.net.hosts.file=/dev/null -cp "$libs/*" \\
        kafka.tools.StorageTool info -c "$1.properties" >"$1.answer" 2>&1
}}
count=0
for node in "${{!{_VARIABLE}@}}"; do
    ask "$node" &
    (( ++count % {PARSERS} )) || wait
done
wait
for node in "${{!{_VARIABLE}@}}"; do
    echo "### node ${{node#{_VARIABLE}}}"
    head -c 4000 "$node.answer"
    echo
done
"""
_IGNORING_ERRORS = contextlib.suppress(*FAILURES, EarshotError)
"""For clean-up that a later step or run repeats."""


class EnginePreflightKind(Kind):
    """Decides the ids of the cluster and of this deployment, and checks the engines.

    Inputs in addition to those of `TargetStack`: `gate`, its digest; `configured`, the cluster id
    in the stack's file; `state_dir`, the stack's folder; `remove`; `last`, the plan at the end of a
    change if `plan` is an earlier step of it. Output: `absent`, the Docker hosts without the image.
    """

    ID_IN = "deployment"
    OWNS = ("state_dir",)
    interrupted = (
        "interrupted before a container was changed: images may be missing, and containers of "
        "removed brokers may be stopped; the next `pulumi up` continues from there"
    )
    IDLE = ("gate", "remove", "absent", "configured", "state_dir")
    """Inputs whose change needs no update."""

    def problems(self, operation: Operation, olds: Properties, news: Properties) -> Iterator[str]:
        # generated once and then unchanged, like Pulumi's automatic names
        news["deployment"] = olds.get("deployment") or uuid.uuid4().hex[:12]
        news["cluster_id"] = olds.get("cluster_id") or UNKNOWN
        return _problems(operation, olds, news) if engine_objects.can_be_asked(news) else iter(())

    def differs(self, operation: Operation, olds: Properties, news: Properties) -> bool:
        return bool(news.get("absent")) or super().differs(operation, olds, news)

    def apply(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        target, absent = TargetStack.from_props(news), news.get("absent") or ()
        with Engines() as engines:
            engine_objects.check_network(engines, target)
            images.pull(engines, target, absent, operation.log)
            pulled_indexes = [
                index for index in target.used_hosts if target.hosts[index].name in absent
            ]
            refuse(_image_problems(operation, engines, target, pulled_indexes, (), olds, news))
            self._stop_removed(engines, target, olds, news)
        volume_data.remember_id(Path(news["state_dir"]), news["cluster_id"])
        return {**news, "absent": []}

    def _stop_removed(
        self, engines: Engines, target: TargetStack, olds: Properties, news: Properties
    ) -> None:
        """Stops containers of removed nodes, and removes throwaway ones of killed processes.

        Pulumi deletes the former only after the validation, which must not connect to them any
        more.
        """
        planned_ids = {node.id for node in target.plan.nodes}
        for host in _hosts(olds, news):
            with _IGNORING_ERRORS:
                client = engines.of(host)
                with _IGNORING_ERRORS:
                    remove_leftovers(client, labels.THROWAWAY)
                for container in client.containers.list(filters=_of_deployment(news)):
                    own_labels = labels.of_object(container)
                    is_planned = labels.node_id(own_labels) in planned_ids
                    if target.owns(own_labels) and not is_planned:
                        container.stop(timeout=GRACE)

    def delete(self, operation: Operation, olds: Properties) -> None:
        """Removes leftovers of interrupted runs, which are not in Pulumi's state."""
        own, deployment = _of_deployment(olds), olds["deployment"]
        with Engines() as engines:
            for host in hosts_of(olds):
                with _IGNORING_ERRORS:
                    client = engines.of(host)
                    with _IGNORING_ERRORS:
                        # containers of validations and of `DockerUsers`, which have passwords
                        remove_leftovers(client, olds["stack"])
                        remove_leftovers(client, labels.THROWAWAY)
                    containers = {"filters": own, "all": True, "ignore_removed": True}
                    _remove(client.containers, deployment, containers, force=True, v=True)
                    _remove(client.networks, deployment, {"filters": own})
                    # only volumes with keys have the label of a deployment
                    _remove(client.volumes, deployment, {"filters": own})


class EnginePreflight(InternalResource):
    """Checks on the engines before any container changes."""

    FORMER_NAMES = ("EnginePreflight", "DockerGround")

    deployment: pulumi.Output[str]
    """The random id in the labels of this deployment's containers and networks."""
    cluster_id: pulumi.Output[str]
    """Kafka's id of the cluster. Generated once, then unchanged."""


def _problems(operation: Operation, olds: Properties, news: Properties) -> Iterator[str]:
    current, configured = olds.get("cluster_id"), news.get("configured")
    known_id = current if configured in (None, current) else None
    target = TargetStack.from_props({**news, "cluster_id": known_id or ""})
    hosts = _hosts(olds, news)
    with Engines() as engines:
        for host in target.hosts:
            engines.of(host)
        objects = engine_objects.look(engines, _answering(engines, hosts, target))
        if not known_id:
            news["cluster_id"], id_problems = volume_data.decided_id(
                target, current, configured, Path(news["state_dir"]), objects
            )
            yield from id_problems
        yield from engine_objects.problems(target, objects)
        containers = list(running.running(engines, target.hosts, objects, target.owns))
        yield from running.link_problems(containers, target)
        yield from running.expired_problems(engines, target, objects, containers)
        used = running.client_problems(engines, target, containers)
        yield from listener_removal.blocking(news["remove"], used, operation.log)
        former_stack = TargetStack.from_props(olds) if olds else None
        yield from volume_data.version_problems(engines, target, objects, former_stack)
        own_id = configured or current or volume_data.own_id(target.stack, Path(news["state_dir"]))
        yield from volume_data.data_problems(engines, target, objects, hosts, own_id)
        news["absent"] = hosts_without_image = images.absent(engines, target)
        yield from _image_problems(
            operation, engines, target, target.used_hosts, hosts_without_image, olds, news
        )


def _image_problems(
    operation: Operation,
    engines: Engines,
    target: TargetStack,
    indexes: Sequence[int],
    hosts_without_image: Collection[str],
    olds: Properties,
    news: Properties,
) -> list[str]:
    """Ports that a process holds and settings that Kafka refuses, on the hosts at ``indexes``.

    The checks run in the nodes' image, which ``hosts_without_image`` (names) lack.
    """
    if not indexes:
        return []
    former_settings = _settings(olds) if olds else {}
    changed_settings = {
        id: settings
        for id, settings in _settings(news).items()
        if former_settings.get(id) != settings
    }
    # the last plan is checked, too, so that a change does not stop half-way
    last_settings = _settings(news, "last") if news.get("last") else {}
    objects = engine_objects.look(engines, [target.hosts[index] for index in indexes])
    hosts = [
        _HostPreflight(engines, target, index, hosts_without_image, operation.log)
        for index in indexes
    ]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        ports_by_host = list(pool.map(lambda host: list(host.taken_ports(objects)), hosts))
        messages_by_host = list(pool.map(lambda host: host.refusals(changed_settings), hosts))
        messages_by_host += pool.map(lambda host: host.refusals(last_settings), hosts)
    messages = {id: text for host_texts in messages_by_host for id, text in host_texts.items()}
    port_problems = [text for host_texts in ports_by_host for text in host_texts]
    return port_problems + list(refused_settings(target.plan.kafka_version, messages))


def _answering(
    engines: Engines, hosts: tuple[DockerHost, ...], target: TargetStack
) -> Iterator[DockerHost]:
    """The hosts of ``target``, and removed ``hosts`` with an engine that answers."""
    for host in hosts:
        if host in target.hosts:
            yield host
        else:
            with contextlib.suppress(EarshotError):
                engines.of(host)
                yield host


def _hosts(*props: Properties) -> tuple[DockerHost, ...]:
    """The hosts of several inputs, each engine once, with its name in the last inputs."""
    hosts_by_engine = {host.engine: host for inputs in props for host in hosts_of(inputs)}
    return tuple(hosts_by_engine.values())


def _of_deployment(props: Properties) -> dict[str, str]:
    return {"label": f"{labels.DEPLOYMENT}={props['deployment']}"}


def _remove(collection: Any, deployment: str, listing: DockerObject, **options: bool) -> None:
    """Removes the objects of ``deployment`` that ``collection`` lists with the arguments
    ``listing``.

    A failure does not stop the removal of the others.
    """
    with _IGNORING_ERRORS:
        for leftover in collection.list(**listing):
            with _IGNORING_ERRORS:
                if labels.of_object(leftover).get(labels.DEPLOYMENT) == deployment:
                    leftover.remove(**options)


def _settings(props: Properties, key: str = "plan") -> dict[int, tuple[str, str]]:
    """Properties and image of each node of the plan at ``key``, by node id."""
    containers = TargetStack.from_props(props).containers
    plan = ClusterPlan.model_validate(props[key])
    return {
        node.id: (server_properties(plan, node), containers[node.id].image)
        for node in plan.nodes
        if node.id in containers  # a node that a later step adds has no container yet
    }


class _HostPreflight:
    """Checks of the target on one Docker host, in the nodes' image."""

    def __init__(
        self,
        engines: Engines,
        target: TargetStack,
        index: int,
        hosts_without_image: Collection[str],
        say: Callable[[str], None],
    ) -> None:
        self._target, self._index, self._say = target, index, say
        self._host = target.hosts[index]
        self._client = engines.of(self._host)
        images = (
            container.image for container in target.containers.values() if container.host == index
        )
        self._image = None if self._host.name in hosts_without_image else next(images)

    def taken_ports(self, objects: EngineObjects) -> Iterator[str]:
        """A message for each port of a node that a process outside containers holds."""
        ports_by_container = {
            container.name: container.ports
            for container in objects.containers
            if container.host == self._host.name
        }
        published_ports = [port for ports in ports_by_container.values() for port in ports]
        nodes_by_port = {
            port: id
            for id, container in self._target.containers.items()
            for port in container.ports
            if container.host == self._index
            and port.host_port
            and port
            not in ports_by_container.get(container.name, ())  # not published by the node itself
        }
        if not nodes_by_port:
            return
        try:
            holders = host_ports.holders(
                self._client, self._host, self._image, list(nodes_by_port), published_ports
            )
        except CommandFailed as reason:
            if self._image is not None:
                self._say(
                    f"Docker host {self._host.name}: ports were not checked: {reason.observed}"
                )
            return  # without the image, the update checks the ports
        for port, holder in holders.items():
            yield (
                f"port {port.host_port} of Docker host {self._host.name}, for node "
                f"{nodes_by_port[port]}, is taken by {holder}, which is not a container. Free the "
                "port, or choose another `port` (or `published`) for the listener"
            )

    def refusals(self, settings: Mapping[int, tuple[str, str]]) -> dict[int, str]:
        """Kafka's refusals by node id; ``settings`` are properties and images of nodes."""
        texts = {
            id: without_references(text)
            for id, (text, _) in settings.items()
            if self._target.containers[id].host == self._index
        }
        if self._image is None or not texts:
            return {}  # without the image, the update checks the settings
        try:
            return refusals(self._client, self._image, texts)
        except CommandFailed as reason:
            self._say(
                f"Docker host {self._host.name}: Kafka has not checked the settings: "
                f"{reason.observed}"
            )
            return {}


def refusals(
    client: docker.DockerClient, image: str, properties: Mapping[int, str]
) -> dict[int, str]:
    """Kafka's own message for each node whose settings it refuses, by node id.

    ``properties`` are the texts of properties files by node id. Raises CommandFailed if the image
    cannot run Kafka's tool, e.g. `apache/kafka-native`.
    """
    environment = {f"{_VARIABLE}{id}": text for id, text in properties.items()}
    output = throwaway.ask(client, image, ["bash", "-c", _SCRIPT], environment=environment)
    return dict(_refusals_by_node(output))


def _refusals_by_node(output: str) -> Iterator[tuple[int, str]]:
    _, *ids_and_answers = _NODE.split(output)
    for id, answer in zip(ids_and_answers[::2], ids_and_answers[1::2], strict=True):
        if (refusal := _REFUSAL.search(answer)) is not None:
            yield int(id), refusal["message"].strip()
