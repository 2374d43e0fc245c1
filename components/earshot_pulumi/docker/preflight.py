"""Checks on the engines that need the images, before any broker is touched.

They ask whether Kafka itself accepts the settings of every node, and whether the ports to publish
are free. A preview runs them where an engine has its image already.

A container of the image, without a network, runs `kafka.tools.StorageTool info`. That reads the
settings as a starting broker does, looks for the data directories, and changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import docker

from earshot.listeners.model import ClusterPlan
from earshot.listeners.properties import without_references
from earshot.listeners.render import server_properties
from earshot_pulumi.docker import host_ports, on_engines, throwaway
from earshot_pulumi.docker.container_address import Engines
from earshot_pulumi.docker.on_engines import Seen, WantedStack
from earshot_pulumi.docker.throwaway import NotAsked
from earshot_pulumi.provider.internal import CheckedKind, InternalResource
from earshot_pulumi.provider.kind import Operation, Properties, Unknown
from earshot_pulumi.refusals import refused_settings

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


class DockerPreflightKind(CheckedKind):
    """Asks the engines.

    Inputs beside those of `WantedStack`: `images`, their ids by the index of their host, and
    `last`, the plan at the end of a change where `plan` is a step before.
    """

    def problems(self, operation: Operation, olds: Properties, news: Properties) -> list[str]:
        if not on_engines.can_be_asked(news):
            return []
        wanted = WantedStack.from_props(news)
        before = _settings(olds) if olds else {}
        changed = {id: it for id, it in _settings(news).items() if before.get(id) != it}
        last = _settings(news, "last") if news.get("last") else {}
        used = sorted({it.host for it in wanted.containers.values()})
        with Engines() as engines, ThreadPoolExecutor(AT_ONCE) as pool:
            seen = on_engines.look(engines, [wanted.hosts[index] for index in used])
            asked = [
                _Asked(engines, wanted, index, news["images"][str(index)], operation.log)
                for index in used
            ]
            taken = list(pool.map(lambda host: list(host.taken_ports(seen)), asked))
            refused = list(pool.map(lambda host: host.refusals(changed), asked))
            # or the change would end half-way
            refused += pool.map(lambda host: host.refusals(last), asked)
        messages = {id: text for found in refused for id, text in found.items()}
        listed = [text for found in taken for text in found]
        return listed + list(refused_settings(wanted.plan.kafka_version, messages))


class DockerPreflight(InternalResource):
    """What must hold before a broker is touched, and takes the image to find out."""


def _settings(props: Properties, key: str = "plan") -> dict[int, tuple[str, str]]:
    """By id of each node of the plan at ``key``, its properties and the id of its image."""
    containers = WantedStack.from_props(props).containers
    plan = ClusterPlan.model_validate(props[key])
    return {
        node.id: (server_properties(plan, node), props["images"][str(containers[node.id].host)])
        for node in plan.nodes
        if node.id in containers  # a node that comes with a later step has no container yet
    }


class _Asked:
    """A Docker host, and its problems with the plan."""

    def __init__(
        self,
        engines: Engines,
        wanted: WantedStack,
        index: int,
        image: str | Unknown,
        say: Callable[[str], None],
    ) -> None:
        self._wanted, self._index, self._say = wanted, index, say
        self._host = wanted.hosts[index]
        self._client = engines.of(self._host)
        self._image = None if isinstance(image, Unknown) else image

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
            return  # in a preview without the image: the update looks
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
            return {}  # in a preview without the image: the update asks
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
