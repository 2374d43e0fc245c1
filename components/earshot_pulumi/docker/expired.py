"""Running containers whose certificates have expired."""

import tarfile
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial

from earshot.config.docker_host import DockerHost
from earshot.engine.failures import FAILURES
from earshot_pulumi import expired
from earshot_pulumi.docker.container_address import Engines
from earshot_pulumi.docker.engine_objects import (
    EngineContainer,
    EngineObjects,
    TargetStack,
    own_volumes,
)
from earshot_pulumi.docker.inner_listener import text_in
from earshot_pulumi.docker.running import RunningNode


def problems(
    engines: Engines, target: TargetStack, objects: EngineObjects, nodes: Iterable[RunningNode]
) -> Iterator[str]:
    """Why none of the running ``nodes`` of ``target`` can be restarted while the others run."""
    running = {node.container.node: node for node in nodes}
    ends = ends_of(engines, ((node.container, node.host, node.values) for node in running.values()))
    is_down = any(volume.node not in running for volume in own_volumes(target, objects))
    yield from expired.problems(ends, can_go_first=not is_down)


def ends_of(
    engines: Engines, running: Iterable[tuple[EngineContainer, DockerHost, Mapping[str, str]]]
) -> dict[int, datetime]:
    """The end of the certificate of each ``running`` container that has expired, by node id.

    Each is given with its host and its Kafka settings.
    """
    return expired.expired(
        {
            container.node: expired.end_shown(values, partial(_text, engines, host, container.id))
            for container, host, values in running
        }
    )


def _text(engines: Engines, host: DockerHost, container: str, path: str) -> str:
    """The text of a file in a container. Raises ValueError if it cannot be read."""
    try:
        return text_in(engines.of(host), container, path)
    except (tarfile.TarError, *FAILURES) as reason:
        raise ValueError(path) from reason
