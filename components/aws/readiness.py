"""Readiness of instances as a resource: each node's changes wait for that of the one before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, UpdateResult

from components.aws.reports import Awaited, Read, quorum_with, wait_for
from components.aws.ssm import reader
from components.checked import on_lines_of_its_own
from components.owner import OwnedProvider

Props = dict[str, Any]


class ReadinessProvider(OwnedProvider):
    """Waits for one node after a change, or for the whole cluster at the end of a run."""

    _config: Any = None

    def configure(self, req: Any) -> None:
        super().configure(req)
        self._config = req.config

    def diff(self, _id: str, olds: Props, news: Props) -> DiffResult:
        return DiffResult(changes=any(olds.get(key) != news.get(key) for key in ("nodes", "whole")))

    def create(self, props: Props) -> CreateResult:
        # all voters of a new cluster start together, then one wait covers the whole cluster
        if props["whole"]:
            _wait(props, self._read(props))
        return CreateResult("ready", props)

    def update(self, _id: str, _olds: Props, news: Props) -> UpdateResult:
        read = self._read(news)
        if news["whole"] or quorum_with(_nodes(news), news["voters"], read):
            _wait(news, read)
        return UpdateResult(news)

    def read(self, id_: str, props: Props) -> ReadResult:
        return ReadResult(id_, props)

    def _read(self, props: Props) -> Read:
        return reader(self._config, props["region"])


def _nodes(props: Props) -> list[Awaited]:
    return [Awaited.of(item) for item in props["nodes"]]


def _wait(props: Props, read: Read) -> None:
    with on_lines_of_its_own():
        wait_for(
            _nodes(props), read, props["deadline"], progress=lambda text: print(text, flush=True)
        )


class AwsReadiness(Resource, module="earshot", name="AwsReadiness"):
    """Waits until nodes have reported that they are in sync, as they were deployed."""

    def __init__(
        self,
        name: str,
        nodes: Sequence[pulumi.Input[dict[str, Any]]],
        *,
        voters: Sequence[pulumi.Input[str]],
        region: str,
        deadline: float,
        whole: bool = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """``nodes`` are those to wait for (see `Awaited.of`), ``voters`` the parameters in which
        the quorum's nodes report."""
        props = {
            "nodes": list(nodes),
            "voters": list(voters),
            "region": region,
            "deadline": deadline,
            "whole": whole,
        }
        super().__init__(ReadinessProvider(), name, props, opts)
