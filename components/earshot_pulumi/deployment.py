"""One cluster of a program while it is deployed: names, folder, gate configuration.

A cluster with the stack's name is the one of the stack's file. Its resources have the names of
earlier releases, so that an upgrade replaces none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pulumi

from earshot.checks.policy_config import stack_config
from earshot.config.cluster import ClusterSpec
from earshot.errors import EarshotError
from earshot.files.stack_files import stack_name
from earshot.placement import PlacementPlan
from earshot.project import Project
from earshot.transition.change import Change
from earshot.validation.contract import Contract
from earshot_pulumi.aws_settings import StackSettings
from earshot_pulumi.provider.kind import Inputs

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,29}", re.ASCII)
_NAME_ALLOWED: Final = "up to 30 small letters, digits and hyphens, or the name of the stack"


def full_name_of(name: str) -> str:
    """The name of cluster ``name``, unique among stacks: the stack's name and its own.

    Raises EarshotError if containers, folders or tags cannot have the name.
    """
    stack = stack_name(pulumi.get_stack())
    if name == stack:
        return name
    if not _NAME.fullmatch(name):
        raise EarshotError(
            f"cluster {name!r}", observed="the name cannot be used", allowed=_NAME_ALLOWED
        )
    return f"{stack}-{name}"


def state_folder() -> Path:
    """The folder of the stack's files on this machine. Raises EarshotError."""
    project = Project.of_program()
    folder = project.state_dir(pulumi.get_stack())
    if project.has_file:
        return folder
    # without a Pulumi.yaml, several projects may share the current folder
    return folder.with_name(f"{pulumi.get_project()}.{folder.name}")


def is_of_stack_file(full_name: str) -> bool:
    """True if the cluster ``full_name`` is the one that the stack's file describes."""
    return full_name == pulumi.get_stack()


def child_name(full_name: str, name: str) -> str:
    """The name of a cluster's resource in the program, unique among its clusters."""
    return name if is_of_stack_file(full_name) else f"{full_name}-{name}"


@dataclass(frozen=True)
class ClusterContext:
    """The settings that all resources of one cluster share."""

    name: str
    """The cluster's full name."""
    parent: pulumi.ResourceOptions
    """Options of the component's children."""
    folder: Path
    """The cluster's folder on this machine."""
    gate: Inputs = field(default_factory=dict)
    """The program's configuration of the gate, which overrides the stack file's."""
    aws: StackSettings = field(default_factory=StackSettings)
    """The settings of earshot's own calls of AWS."""
    provider: pulumi.ProviderResource | None = None
    """The program's own `docker.Provider`, if it has one."""

    @classmethod
    def of(cls, name: str, parent: pulumi.ResourceOptions, gate: Inputs) -> ClusterContext:
        """The context of the cluster that the program calls ``name``. Raises EarshotError."""
        full_name = full_name_of(name)
        state_dir = state_folder()
        folder = state_dir if is_of_stack_file(full_name) else state_dir / "clusters" / full_name
        return cls(full_name, parent, folder, gate)

    def options(self, **options: Any) -> pulumi.ResourceOptions:
        """Options of a child that earlier releases registered without a parent."""
        merged = pulumi.ResourceOptions.merge(self.parent, pulumi.ResourceOptions(**options))
        if not is_of_stack_file(self.name):
            return merged
        alias = pulumi.ResourceOptions(aliases=[pulumi.Alias(parent=pulumi.ROOT_STACK_RESOURCE)])
        return pulumi.ResourceOptions.merge(merged, alias)

    def changed_by(self, transformation: pulumi.ResourceTransformation) -> ClusterContext:
        """This context with a ``transformation`` of the inputs of every resource."""
        options = pulumi.ResourceOptions(transformations=[transformation])
        return replace(self, parent=pulumi.ResourceOptions.merge(self.parent, options))

    def policy(self, spec: ClusterSpec) -> Inputs | None:
        """The configuration of the gate; None with `gate: off`.

        Raises EarshotError if the file is invalid.
        """
        if spec.gate == "off":
            return None
        project, stack = Project.of_program(), pulumi.get_stack()
        stack_config(project, stack)
        return {**project.policy_document(stack)[0], **self.gate}

    def contract_of_step(
        self, spec: ClusterSpec, planned: PlacementPlan, change: Change
    ) -> Contract:
        """Logs the notes of ``planned``, the next step of ``change``, and returns its contract.

        The contract does not have the cluster's id yet.
        """
        self.log_notes(planned, change)
        return Contract.of(
            planned.plan, cluster=self.name, placement=spec.placement, leaving=change.leaving
        )

    def log_notes(self, planned: PlacementPlan, change: Change) -> None:
        for note in filter(None, (*planned.notes, change.note)):
            pulumi.log.info(note)
