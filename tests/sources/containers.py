"""Facts about a container from a test's own inputs."""

from __future__ import annotations

from collections.abc import Sequence

from earshot.facts.cluster import ClusterFacts
from earshot.sources.container import facts_of
from earshot.sources.docker_container import Envs, Inputs, read_container


def container_facts(
    envs: Envs,
    ports: Inputs = (),
    networks: Inputs = (),
    name: str = "",
    image: str = "",
    *,
    hostname: str = "",
    mounts: Sequence[str] = (),
    network_mode: str = "",
) -> ClusterFacts:
    """The facts about the broker in one container, for checking it alone.

    ``ports`` are maps with `internal`, `external`, `ip` and `protocol`; ``networks`` maps with
    `name`, `aliases` and `ipv4Address`; ``mounts`` paths inside the container. Scopes that the
    variable `EARSHOT_SCOPES` names (`INTERNAL:internal,LAN:host+external`) are taken; others are
    told by `audience`, and where nothing tells, the widest is assumed.
    """
    return facts_of(
        read_container(
            {
                "name": name,
                "image": image,
                "hostname": hostname,
                "envs": envs,
                "ports": ports,
                "networksAdvanced": networks,
                "networkMode": network_mode,
                "mounts": [{"target": path} for path in mounts],
            }
        )
    )
