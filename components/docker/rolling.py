"""Whether running containers can get other listeners one after the other."""

from __future__ import annotations

from collections.abc import Iterable

from components.docker.on_engines import Wanted
from components.docker.settings import Running
from components.refusals import REMEMBER
from components.rolling import Links, unrollable


def problems(running: Iterable[Running], wanted: Wanted) -> list[str]:
    """Why they cannot; their own environment has the settings that they were started with."""
    links = {it.seen.node: Links.of_settings(it.values) for it in running}
    stop = f"stop the cluster first (`make down STACK={wanted.stack}`; data is kept)"
    return unrollable(links, Links.of_plan(wanted.plan), f"{REMEMBER}; or {stop}")
