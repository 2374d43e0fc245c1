"""Whether the Kafka in an image accepts brokers' settings, before a broker is started with them.

A container of the image, without a network, runs `kafka.tools.StorageTool info`. That reads the
settings as a starting broker does, looks for the data directories, and changes nothing.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

import docker

from earshot_pulumi.docker import throwaway

PATIENCE: Final = 40
"""Seconds for one node; an idle machine needs one."""
AT_ONCE: Final = 4
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
    (( ++count % {AT_ONCE} )) || wait
done
wait
for node in "${{!{_VARIABLE}@}}"; do
    echo "### node ${{node#{_VARIABLE}}}"
    head -c 4000 "$node.answer"
    echo
done
"""


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
