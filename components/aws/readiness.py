"""Readiness of instances as a resource: each node's changes wait for that of the one before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pulumi
from pulumi.dynamic import Resource

from components.aws.reports import Awaited, quorum_with, wait_for
from components.aws.ssm import reader
from components.dynamic import Props, Provider, on_lines_of_its_own, read


class ReadinessProvider(Provider):
    """Waits for one node after a change, or for the whole cluster at the end of a run."""

    ID = "ready"
    DECISIVE = ("nodes", "whole")

    def made(self, olds: Props, news: Props) -> Props:
        whole, nodes = news["whole"], [read(Awaited, it) for it in news["nodes"]]
        # all voters of a new cluster start together, then one wait covers the whole cluster
        if whole or olds:
            values = reader(self._config, news["region"])
            with on_lines_of_its_own():
                if whole or quorum_with(nodes, news["voters"], values):
                    wait_for(nodes, values, news["deadline"], progress=print)
        return news


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
        """``nodes`` are those to wait for (see `Awaited`), ``voters`` the parameters in which
        the quorum's nodes report."""
        props = {
            "nodes": list(nodes),
            "voters": list(voters),
            "region": region,
            "deadline": deadline,
            "whole": whole,
        }
        super().__init__(ReadinessProvider(), name, props, opts)
