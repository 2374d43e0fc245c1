"""Deployments of clusters that tests register with an engine that is none."""

from pathlib import Path

import pulumi
from earshot_pulumi.deployment import ClusterContext


def deployment_of(name: str) -> ClusterContext:
    """The deployment of the cluster with the full ``name``, whose files are in /state."""
    return ClusterContext(name, pulumi.ResourceOptions(), Path("/state"))
