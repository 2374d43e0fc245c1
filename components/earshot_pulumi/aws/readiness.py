"""Readiness of instances as a resource: each node's changes wait for that of the one before."""

from pulumi.dynamic import Resource

from earshot_pulumi.aws.credentials import reader
from earshot_pulumi.aws.machines import starts
from earshot_pulumi.aws.reports import Awaited, wait_for
from earshot_pulumi.dynamic import Props, Provider, read


class ReadinessProvider(Provider):
    """Waits for one node after a change, or for the whole cluster at the end of a run.

    Inputs: the `nodes` to wait for (see `Awaited`); their `region`; `deadline` (s); whether it is
    the `whole` cluster; and whether nodes change `in_turn`, as they do once the cluster has served.
    """

    ID = "ready"
    DECISIVE = ("nodes", "whole")

    def made(self, olds: Props, news: Props) -> Props:
        # all voters of a new cluster start together, then one wait covers the whole cluster
        if news["whole"] or (olds and news["in_turn"]):
            region = news["region"]
            wait_for(
                [read(Awaited, it) for it in news["nodes"]],
                reader(self._config, region),
                news["deadline"],
                starts(self._config, region),
                progress=print,
            )
        return news


class AwsReadiness(Resource, module="earshot", name="AwsReadiness"):
    """Waits until nodes have reported that they are in sync, as they were deployed."""
