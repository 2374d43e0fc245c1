"""Before a container is replaced: the other nodes run, and what it was made with is kept.

Pulumi's engine removes a container before it makes the next one, and asks nobody. So a resource
before each container has the same settings as its inputs, and is updated before it is replaced.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import pulumi

from components.docker import in_turn, put_back
from components.docker.container_address import ContainerAddress, Engines, is_up
from components.docker.on_engines import hosts_of
from components.dynamic import Props, Provider, here, on_lines_of_its_own


def digest(settings: Mapping[str, Any]) -> pulumi.Output[str]:
    """Other text for other inputs of a container; a secret, where one of them is."""
    return pulumi.Output.all(**settings).apply(
        lambda known: hashlib.sha256(
            json.dumps(known, sort_keys=True, default=vars).encode()
        ).hexdigest()
    )


class StopPreflightProvider(Provider):
    """Checks the other nodes, and keeps what the container was made with."""

    ID = "good"
    DECISIVE = ("settings",)  # the rest says where to look, and is no reason to look

    def made(self, _olds: Props, news: Props) -> Props:
        address = ContainerAddress.from_props(news["place"])
        with on_lines_of_its_own(), Engines() as engines:
            found = engines.inspect(str(address), address, address.name)
            if found and is_up(found):
                own = found["Config"]["Labels"] or {}
                in_turn.check_others(engines, hosts_of(news), address.name, own)
                put_back.keep(here(news["state_dir"]), found)
        return news
