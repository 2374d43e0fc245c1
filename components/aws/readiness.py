"""Readiness of instances as a resource: each node's changes wait for that of the one before."""

from pulumi.dynamic import Resource

from components.aws.credentials import reader
from components.aws.reports import Awaited, quorum_with, wait_for
from components.dynamic import Props, Provider, read


class ReadinessProvider(Provider):
    """Waits for one node after a change, or for the whole cluster at the end of a run.

    Inputs: the `nodes` to wait for (see `Awaited`); `voters`, the parameters in which the quorum
    reports; their `region`; `deadline` (s); and whether it is the `whole` cluster.
    """

    ID = "ready"
    DECISIVE = ("nodes", "whole")

    def made(self, olds: Props, news: Props) -> Props:
        whole, nodes = news["whole"], [read(Awaited, it) for it in news["nodes"]]
        # all voters of a new cluster start together, then one wait covers the whole cluster
        if whole or olds:
            values = reader(self._config, news["region"])
            if whole or quorum_with(nodes, news["voters"], values):
                wait_for(nodes, values, news["deadline"], progress=print)
        return news


class AwsReadiness(Resource, module="earshot", name="AwsReadiness"):
    """Waits until nodes have reported that they are in sync, as they were deployed."""
