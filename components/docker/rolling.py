"""Whether running containers can get other listeners one after the other."""

from __future__ import annotations

from components.docker.container_address import Engines, engine_failed
from components.docker.on_engines import Seen, Wanted
from components.refusals import BESIDE
from components.rolling import Links, unrollable
from earshot.listeners.properties import read_environment


def problems(engines: Engines, wanted: Wanted, seen: Seen) -> list[str]:
    """Why they cannot; their own environment has the settings that they were started with."""
    from docker.errors import DockerException, NotFound

    running: dict[int, Links] = {}
    hosts = {host.name: host for host in wanted.hosts}
    for found in seen.containers:
        host = hosts.get(found.host)
        if host is None or not wanted.owns(found.labels) or not found.running:
            continue
        try:
            config = engines.of(host).api.inspect_container(found.id)["Config"]
        except NotFound:
            continue
        except (DockerException, OSError) as reason:
            raise engine_failed(f"Docker host {host.name}", host, reason) from None
        variables = dict(entry.partition("=")[::2] for entry in config["Env"] or ())
        running[found.node] = Links.of_settings(read_environment(variables).values)
    stop = f"stop the cluster first (`make down STACK={wanted.stack}`; data is kept)"
    return unrollable(running, Links.of_plan(wanted.plan), f"{BESIDE}; or {stop}")
