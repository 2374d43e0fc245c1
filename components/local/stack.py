"""A stack of placement local: the cluster, what it exports, and the proof of its listeners."""

from __future__ import annotations

from pathlib import Path

from components.announced import announce, prove
from components.local.cluster import LocalCluster
from earshot.config.local import LocalSpec
from earshot.placement import plan_local


def deploy(stack: str, spec: LocalSpec, state: Path) -> None:
    """Registers the stack's resources and outputs. Raises EarshotError."""
    planned = plan_local(spec, state / "kafka")
    contract = announce(stack, spec, planned)
    prove(stack, spec, contract, LocalCluster(stack, spec, planned), state)
