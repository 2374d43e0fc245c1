"""`LocalCluster`."""

import pulumi

from earshot_pulumi.cluster import Cluster
from earshot_pulumi.cluster_args import LocalClusterArgs


class LocalCluster(Cluster):
    """Kafka brokers as processes of this machine; changes restart one broker at a time."""

    _placement = "local"

    def __init__(
        self, name: str, args: LocalClusterArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(name, args, opts)
