"""Before a container is replaced: the other nodes run, and what it was made with is kept.

Pulumi's engine removes a container before it makes the next one, and asks nobody. So a resource
before each container has the same settings as its inputs, and is updated before it is replaced.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, UpdateResult

from components.checked import Props, on_lines_of_its_own
from components.docker import in_turn, put_back
from components.docker.container_address import ContainerAddress, Engines, is_up
from components.docker.on_engines import hosts_of
from components.owner import OwnedProvider
from earshot.project import Project


def digest(settings: Mapping[str, Any]) -> pulumi.Output[str]:
    """Other text for other inputs of a container; a secret, where one of them is."""
    return pulumi.Output.all(**settings).apply(
        lambda known: hashlib.sha256(
            json.dumps(known, sort_keys=True, default=vars).encode()
        ).hexdigest()
    )


class StopPreflightProvider(OwnedProvider):
    """Checks the other nodes, and keeps what the container was made with."""

    def diff(self, _id: str, olds: Props, news: Props) -> DiffResult:
        # the rest says where to look, and is no reason to look
        return DiffResult(changes=olds.get("settings") != news["settings"])

    def create(self, props: Props) -> CreateResult:
        _prepare(props)
        return CreateResult("good", props)

    def update(self, _id: str, _olds: Props, news: Props) -> UpdateResult:
        _prepare(news)
        return UpdateResult(news)


def _prepare(props: Props) -> None:
    from docker.errors import NotFound

    address = ContainerAddress.from_props(props["place"])
    with on_lines_of_its_own(), Engines() as engines:
        try:
            found = engines.of(address).api.inspect_container(address.name)
        except NotFound:
            return
        if is_up(found):
            in_turn.check_others(
                engines, hosts_of(props), address.name, found["Config"]["Labels"] or {}
            )
            put_back.keep(Project.find().here(Path(props["state_dir"])), found)
