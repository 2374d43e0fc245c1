"""Whether running containers can get other listeners one after the other."""

from __future__ import annotations

from collections.abc import Iterable

from components.docker.on_engines import WantedStack
from components.docker.settings import Running
from components.refusals import REMEMBER
from components.rolling import Links, unrollable
from earshot.listeners.security import node_name
from earshot.placement.docker_names import KEYS


def problems(running: Iterable[Running], wanted: WantedStack) -> list[str]:
    """Why they cannot; their own environment has the settings that they were started with."""
    found = list(running)
    links = {it.seen.node: Links.of_settings(it.values) for it in found}
    stop = f"stop the cluster first (`make down STACK={wanted.stack}`; data is kept)"
    refused = unrollable(links, Links.of_plan(wanted.plan), f"{REMEMBER}; or {stop}")
    # whether the stack has issued what a node shows
    secured = [f"{KEYS}/{node_name(it.seen.node)}.pem" in it.values.values() for it in found]
    others = [it for it in secured if it is (wanted.plan.security is None)]
    if len(others) > 1 and not refused:
        what = "go" if wanted.plan.security is None else "come"
        refused.append(
            f"`security` would {what} while brokers run: those restarted first would ask for "
            "certificates that the others do not show, or show "
            f"none where the others ask. {stop[0].upper()}{stop[1:]}"
        )
    return refused
