"""One cluster of a program while it is deployed: its names, its folder, its gate and its proof.

A cluster that is called like its stack is the one of the stack's file. It has the names that stacks
of earlier releases have in their states, so nothing of it is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pulumi

from earshot.checks.policy_config import stack_config
from earshot.config.cluster import ClusterSpec
from earshot.errors import EarshotError
from earshot.placement import PlacementPlan
from earshot.project import Project
from earshot.stack_files import stack_name
from earshot.transition.change import Change
from earshot.validation.contract import Contract
from earshot_pulumi.aws_settings import StackSettings

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,29}", re.ASCII)
_NAME_ALLOWED: Final = "up to 30 small letters, digits and hyphens, or the name of the stack"


def full_name_of(name: str) -> str:
    """What tells cluster ``name`` from those of other stacks: the stack's name and its own.

    Raises EarshotError for a name that a container, a folder or a tag could not have.
    """
    stack = stack_name(pulumi.get_stack())
    if name == stack:
        return name
    if not _NAME.fullmatch(name):
        raise EarshotError(
            f"cluster {name!r}", observed="the name cannot be used", allowed=_NAME_ALLOWED
        )
    return f"{stack}-{name}"


def is_of_stack_file(full_name: str) -> bool:
    """Whether a cluster of this ``full_name`` is the one that the stack's file describes."""
    return full_name == pulumi.get_stack()


def child_name(full_name: str, name: str) -> str:
    """The name of a resource in the program: several clusters have a `broker-1` each."""
    return name if is_of_stack_file(full_name) else f"{full_name}-{name}"


@dataclass(frozen=True)
class ClusterContext:
    """What the resources of one cluster share."""

    name: str
    """The cluster's full name."""
    parent: pulumi.ResourceOptions
    """Options of the component's children."""
    folder: Path
    """Where this machine keeps what belongs to the cluster."""
    gate: Mapping[str, Any] = field(default_factory=dict)
    """The program's own configuration of the gate, on top of the stack's file."""
    aws: StackSettings = field(default_factory=StackSettings)
    """The settings of earshot's own calls of AWS."""
    provider: pulumi.ProviderResource | None = None
    """The program's own `docker.Provider`."""

    @classmethod
    def of(
        cls, name: str, parent: pulumi.ResourceOptions, gate: Mapping[str, Any]
    ) -> ClusterContext:
        """That of the cluster which the program calls ``name``. Raises EarshotError."""
        full = full_name_of(name)
        own = Project.find().state_dir(pulumi.get_stack())
        folder = own if is_of_stack_file(full) else own / "clusters" / full
        return cls(full, parent, folder, gate)

    def options(self, **options: Any) -> pulumi.ResourceOptions:
        """Options of a child that earlier releases registered beside the cluster."""
        own = pulumi.ResourceOptions.merge(self.parent, pulumi.ResourceOptions(**options))
        if not is_of_stack_file(self.name):
            return own
        before = pulumi.ResourceOptions(aliases=[pulumi.Alias(parent=pulumi.ROOT_STACK_RESOURCE)])
        return pulumi.ResourceOptions.merge(own, before)

    def changed_by(self, transformation: pulumi.ResourceTransformation) -> ClusterContext:
        """The same, where ``transformation`` changes the inputs of every resource."""
        more = pulumi.ResourceOptions(transformations=[transformation])
        return replace(self, parent=pulumi.ResourceOptions.merge(self.parent, more))

    def policy(self, spec: ClusterSpec) -> Mapping[str, Any] | None:
        """The configuration of the gate; None with `gate: off`.

        Raises EarshotError for a file that is not such a configuration.
        """
        if spec.gate == "off":
            return None
        project, stack = Project.find(), pulumi.get_stack()
        stack_config(project, stack)
        return {**project.policy_document(stack)[0], **self.gate}

    def announced(self, spec: ClusterSpec, planned: PlacementPlan, change: Change) -> Contract:
        """The contract, still without the cluster's id. ``planned`` is the next step of
        ``change``."""
        self.log_notes(planned, change)
        return Contract.of(
            planned.plan, cluster=self.name, placement=spec.placement, leaving=change.leaving
        )

    def log_notes(self, planned: PlacementPlan, change: Change) -> None:
        for note in filter(None, (*planned.notes, change.note)):
            pulumi.log.info(note)
