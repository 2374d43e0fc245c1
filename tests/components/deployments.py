"""Deployments of clusters that tests register with an engine that is none."""

from __future__ import annotations

from pathlib import Path

import pulumi
from earshot_pulumi.deployment import Deployment


def deployment_of(name: str) -> Deployment:
    """The deployment of the cluster with the full ``name``, whose files are in /state."""
    return Deployment(name, pulumi.ResourceOptions(), Path("/state"))
