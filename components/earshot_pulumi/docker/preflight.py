"""Checks on the engines before any broker is touched, and the decisions that come before it.

The preflight looks at what is on the engines, decides which cluster this is, and asks whether Kafka
itself accepts the settings of every node and whether the ports to publish are free. The last two
need the image: where an engine lacks it, only the update pulls it and asks.

A container of the image, without a network, runs `kafka.tools.StorageTool info`. That reads the
settings as a starting broker does, looks for the data directories, and changes nothing.
"""

from __future__ import annotations

import contextlib
import re
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import docker
import pulumi
from docker.errors import DockerException

from earshot.config.docker import DockerHost
from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan
from earshot.listeners.properties import without_references
from earshot.listeners.render import server_properties
from earshot.remote.leftovers import remove_leftovers
from earshot_pulumi import leaving
from earshot_pulumi.docker import (
    host_ports,
    identity,
    images,
    labels,
    on_engines,
    running,
    throwaway,
    volume_data,
)
from earshot_pulumi.docker.container_address import Engines
from earshot_pulumi.docker.in_turn import GRACE
from earshot_pulumi.docker.on_engines import Seen, WantedStack, hosts_of
from earshot_pulumi.docker.throwaway import NotAsked
from earshot_pulumi.provider.internal import CheckedKind, InternalResource
from earshot_pulumi.provider.kind import UNKNOWN, Operation, Properties
from earshot_pulumi.refusals import refuse, refused_settings

AT_ONCE: Final = 8
"""Engines asked at the same time."""
PATIENCE: Final = 40
"""Seconds for one node; an idle machine needs one."""
PARSERS: Final = 4
"""Nodes whose settings one container reads at the same time."""
_VARIABLE: Final = "EARSHOT_SETTINGS_OF_"
"""Shorter names would clash with variables of the image: NODE_VERSION, NODE_ID."""
_NODE: Final = re.compile(r"^### node (\d+)$", re.MULTILINE)
_REFUSAL: Final = re.compile(
    r"^(?:Exception in thread \"[^\"]+\" )?"
    r"(?:org\.apache\.kafka\.common\.config\.ConfigException"
    r"|java\.lang\.IllegalArgumentException: requirement failed): (?P<message>.+)$",
    re.MULTILINE,
)
# Kafka looks the voters' hosts up and ignores the result: an empty hosts file is quick
_SCRIPT: Final = f"""\
for libs in /opt/kafka/libs /usr/share/java/kafka ''; do [[ ! -d $libs ]] || break; done
[[ -n $libs ]] || {{ echo "it has no jars where images of Kafka have them" >&2; exit 3; }}
type java >/dev/null 2>&1 || {{ echo "it has no Java" >&2; exit 3; }}
classes=() # the official image brings an archive; an older Java knows none of these options
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
_IGNORING_ERRORS = contextlib.suppress(DockerException, OSError, EarshotError)
"""For steps that may fail, because others do the same later."""


class EnginePreflightKind(CheckedKind):
    """Decides the ids of the cluster and of this deployment, and asks the engines.

    Inputs beside those of `WantedStack`: `gate`, its digest; `configured`, the cluster's id in the
    stack's file; `state_dir`, the stack's folder; `remove`; and `last`, the plan at the end of a
    change where `plan` is a step before. `absent` are the Docker hosts that lack the image.
    """

    ID_IN = "deployment"
    interrupted = (
        "interrupted before a container was changed: images may be missing, and containers of "
        "removed brokers may be stopped; the next `pulumi up` does the rest"
    )
    IDLE = ("gate", "remove", "absent", "configured", "state_dir")
    """A new evaluation of the plan is no change here."""

    def problems(self, operation: Operation, olds: Properties, news: Properties) -> Iterator[str]:
        # made up once and then kept, like names that Pulumi makes up
        news["deployment"] = olds.get("deployment") or uuid.uuid4().hex[:12]
        news["cluster_id"] = olds.get("cluster_id") or UNKNOWN
        return _problems(operation, olds, news) if on_engines.can_be_asked(news) else iter(())

    def differs(self, operation: Operation, olds: Properties, news: Properties) -> bool:
        return bool(news.get("absent")) or super().differs(operation, olds, news)

    def made(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        wanted, absent = WantedStack.from_props(news), news.get("absent") or ()
        with Engines() as engines:
            on_engines.check_network(engines, wanted)
            images.pull(engines, wanted, absent, operation.log)
            pulled = [it for it in wanted.used_hosts if wanted.hosts[it].name in absent]
            refuse(_image_problems(operation, engines, wanted, pulled, (), olds, news))
            self._stop_removed(engines, wanted, olds, news)
        identity.remember(Path(news["state_dir"]), news["cluster_id"])
        return {**news, "absent": []}

    def _stop_removed(
        self, engines: Engines, wanted: WantedStack, olds: Properties, news: Properties
    ) -> None:
        """Pulumi deletes them only after the validation, which must not find them any more."""
        staying = {node.id for node in wanted.plan.nodes}
        for host in _hosts(olds, news):
            with _IGNORING_ERRORS:
                for found in engines.of(host).containers.list(filters=_of_deployment(news)):
                    if int(found.labels.get(labels.NODE, "-1")) not in staying:
                        found.stop(timeout=GRACE)

    def delete(self, operation: Operation, id: str, olds: Properties) -> None:
        """Removes what an interrupted run left; Pulumi has removed all that its state knew."""
        own = _of_deployment(olds)
        with Engines() as engines:
            for host in hosts_of(olds):
                with _IGNORING_ERRORS:
                    client = engines.of(host)
                    with _IGNORING_ERRORS:
                        # of those who proved listeners or made users: they have passwords
                        remove_leftovers(client, olds["stack"])
                    containers = {"filters": own, "all": True, "ignore_removed": True}
                    _remove(client.containers, containers, force=True, v=True)
                    _remove(client.networks, {"filters": own})
                    # with keys; one with data is of a cluster
                    _remove(client.volumes, {"filters": own})


class EnginePreflight(InternalResource):
    """What must hold on the engines before anything is touched."""

    FORMER_NAMES = ("EnginePreflight", "DockerGround")

    deployment: pulumi.Output[str]
    """The random id in the labels of this deployment's containers and networks."""
    cluster_id: pulumi.Output[str]
    """Kafka's id of the cluster: made up once, then kept."""


def _problems(operation: Operation, olds: Properties, news: Properties) -> Iterator[str]:
    known, configured = olds.get("cluster_id"), news.get("configured")
    settled = known if configured in (None, known) else None
    wanted = WantedStack.from_props({**news, "cluster_id": settled or ""})
    hosts = _hosts(olds, news)
    with Engines() as engines:
        for host in wanted.hosts:
            engines.of(host)
        seen = on_engines.look(engines, _answering(engines, hosts, wanted))
        if not settled:
            news["cluster_id"], found = identity.decided(
                wanted, known, configured, Path(news["state_dir"]), seen
            )
            yield from found
        yield from on_engines.problems(wanted, seen)
        there = list(running.running(engines, wanted, seen))
        yield from running.link_problems(there, wanted)
        if leaving.matters(news["remove"]):
            yield from running.client_problems(engines, wanted, there)
        before = WantedStack.from_props(olds) if olds else None
        yield from volume_data.version_problems(engines, wanted, seen, before)
        yield from volume_data.removal_problems(engines, wanted, seen, hosts)
        news["absent"] = absent = images.absent(engines, wanted)
        yield from _image_problems(
            operation, engines, wanted, wanted.used_hosts, absent, olds, news
        )


def _image_problems(
    operation: Operation,
    engines: Engines,
    wanted: WantedStack,
    indexes: Sequence[int],
    absent: Collection[str],
    olds: Properties,
    news: Properties,
) -> list[str]:
    """What the hosts at ``indexes`` are asked in their image, which those in ``absent`` lack yet:
    published ports that a process holds, and settings that Kafka refuses."""
    if not indexes:
        return []
    before = _settings(olds) if olds else {}
    changed = {id: it for id, it in _settings(news).items() if before.get(id) != it}
    # or the change would end half-way
    last = _settings(news, "last") if news.get("last") else {}
    seen = on_engines.look(engines, [wanted.hosts[index] for index in indexes])
    asked = [_AskedHost(engines, wanted, it, absent, operation.log) for it in indexes]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        taken = list(pool.map(lambda host: list(host.taken_ports(seen)), asked))
        refused = list(pool.map(lambda host: host.refusals(changed), asked))
        refused += pool.map(lambda host: host.refusals(last), asked)
    messages = {id: text for of_host in refused for id, text in of_host.items()}
    port_problems = [text for of_host in taken for text in of_host]
    return port_problems + list(refused_settings(wanted.plan.kafka_version, messages))


def _answering(
    engines: Engines, hosts: tuple[DockerHost, ...], wanted: WantedStack
) -> Iterator[DockerHost]:
    """The stack's hosts, and of those that it is about to lose the ones that answer."""
    for host in hosts:
        if host in wanted.hosts:
            yield host
        else:
            with contextlib.suppress(EarshotError):
                engines.of(host)
                yield host


def _hosts(*props: Properties) -> tuple[DockerHost, ...]:
    """The hosts of several inputs, each engine once, by its name in the last inputs."""
    found = {it.engine: it for inputs in props for it in hosts_of(inputs)}
    return tuple(found.values())


def _of_deployment(props: Properties) -> dict[str, str]:
    return {"label": f"{labels.DEPLOYMENT}={props['deployment']}"}


def _remove(collection: Any, listed: Mapping[str, Any], **options: bool) -> None:
    """Removes what ``collection`` lists, each whatever becomes of the others."""
    with _IGNORING_ERRORS:
        for found in collection.list(**listed):
            with _IGNORING_ERRORS:
                found.remove(**options)


def _settings(props: Properties, key: str = "plan") -> dict[int, tuple[str, str]]:
    """By id of each node of the plan at ``key``, its properties and its image."""
    containers = WantedStack.from_props(props).containers
    plan = ClusterPlan.model_validate(props[key])
    return {
        node.id: (server_properties(plan, node), containers[node.id].image)
        for node in plan.nodes
        if node.id in containers  # a node that comes with a later step has no container yet
    }


class _AskedHost:
    """A Docker host, and its problems with the plan."""

    def __init__(
        self,
        engines: Engines,
        wanted: WantedStack,
        index: int,
        absent: Collection[str],
        say: Callable[[str], None],
    ) -> None:
        self._wanted, self._index, self._say = wanted, index, say
        self._host = wanted.hosts[index]
        self._client = engines.of(self._host)
        images = (it.image for it in wanted.containers.values() if it.host == index)
        self._image = None if self._host.name in absent else next(images)

    def taken_ports(self, seen: Seen) -> Iterator[str]:
        running = {it.name: it.ports for it in seen.containers if it.host == self._host.name}
        published = [port for ports in running.values() for port in ports]
        wanted = {
            port: id
            for id, container in self._wanted.containers.items()
            for port in container.ports
            if container.host == self._index
            and port.host_port
            and port not in running.get(container.name, ())  # else it publishes it now
        }
        if not wanted:
            return
        try:
            holders = host_ports.holders(
                self._client, self._host, self._image, list(wanted), published
            )
        except NotAsked as reason:
            if self._image is not None:
                self._say(f"Docker host {self._host.name}: ports not looked at: {reason.observed}")
            return  # the image is still to be pulled
        for port, holder in holders.items():
            yield (
                f"port {port.host_port} of Docker host {self._host.name}, for node "
                f"{wanted[port]}, is taken by {holder}, which is no container. Free the port, or "
                "choose another `port` (or `published`) for the listener"
            )

    def refusals(self, changed: Mapping[int, tuple[str, str]]) -> dict[int, str]:
        texts = {
            id: without_references(text)
            for id, (text, _) in changed.items()
            if self._wanted.containers[id].host == self._index
        }
        if self._image is None or not texts:
            return {}  # the image is still to be pulled
        try:
            return refusals(self._client, self._image, texts)
        except NotAsked as reason:
            self._say(
                f"Docker host {self._host.name}: Kafka has not read the settings beforehand: "
                f"{reason.observed}"
            )
            return {}


def refusals(
    client: docker.DockerClient, image: str, properties: Mapping[int, str]
) -> dict[int, str]:
    """Kafka's own message, by the id of each node whose settings it refuses.

    ``properties`` are the texts of properties files by node id. Raises NotAsked where the image's
    Kafka cannot run the tool, as in `apache/kafka-native`.
    """
    environment = {f"{_VARIABLE}{id}": text for id, text in properties.items()}
    output = throwaway.ask(client, image, ["bash", "-c", _SCRIPT], environment=environment)
    return dict(_refused(output))


def _refused(output: str) -> Iterator[tuple[int, str]]:
    _, *parts = _NODE.split(output)
    for id, answer in zip(parts[::2], parts[1::2], strict=True):
        if (found := _REFUSAL.search(answer)) is not None:
            yield int(id), found["message"].strip()
