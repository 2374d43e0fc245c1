"""The provider's components, resources and gate, each imported at its first use."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import earshot_pulumi
from earshot.errors import EarshotError
from earshot.placement_registry import PLACEMENTS
from earshot_pulumi.provider import former
from earshot_pulumi.provider.kind import Kind, Properties, Show
from earshot_pulumi.provider.resource import type_token

if TYPE_CHECKING:
    from earshot_pulumi.provider.construction import Package

PUBLIC = {"Proof": "given.proof"}
"""Custom resources of the schema, and the module with the class and its kind."""
COMPONENTS = tuple(
    name
    for name in earshot_pulumi.__all__
    if name[0].isupper() and not name.endswith("Args") and name not in PUBLIC
)
"""Names of the components in `earshot_pulumi`."""
KINDS = {
    **PUBLIC,
    "BegunChange": "change_memory",
    "Certificates": "certificates",
    "ProvedChange": "change_memory",
    "Validation": "validation",
}
"""Custom resources of all placements, and the module with the kind, called `NAMEKind`."""

PACKAGES = (*PLACEMENTS, "docker_hosts")
"""Packages of `earshot_pulumi` with custom resources."""


@functools.cache
def kinds() -> Mapping[str, str]:
    """The module with the kind of each custom resource, by the resource's name.

    Most are internal to components; a package of `PACKAGES` lists its own.
    """
    package_kinds = {
        name: f"{package}.{module}"
        for package in PACKAGES
        for name, module in importlib.import_module(f"earshot_pulumi.{package}").KINDS.items()
    }
    return {**KINDS, **package_kinds}


def package() -> Package:
    """The components and the public resources, with their schema."""
    from earshot_pulumi.provider.construction import Package  # slow to import

    components = [getattr(earshot_pulumi, name) for name in COMPONENTS]
    public_kinds = {getattr(earshot_pulumi, name): kind(type_token(name)) for name in PUBLIC}
    return Package(components, public_kinds)


@functools.cache
def kind(token: str) -> Kind:
    """The behaviour of the resources of type ``token``. Raises EarshotError for other types."""
    dynamic_name = former.name_of(token)
    name = dynamic_name or token.removeprefix(type_token(""))
    name = former.KINDS.get(name, name)
    if name in former.GONE:
        return former.FormerKind(Kind())
    if dynamic_name is not None:
        return former.FormerKind(kind(type_token(name)))
    if name in COMPONENTS:
        raise EarshotError(
            f"resource type {token}",
            observed="is a component, which cannot be imported or read by an id",
            remedy="create it in the program",
        )
    if name not in kinds():
        raise EarshotError(
            f"resource type {token}",
            observed="is not one of earshot's",
            allowed=", ".join(map(type_token, [*COMPONENTS, *PUBLIC])),
        )
    module = importlib.import_module(f"earshot_pulumi.{kinds()[name]}")
    instance: Kind = getattr(module, f"{name}Kind")()
    return instance


def prepare() -> None:
    """Imports the kinds that every cluster has, before the first call needs them."""
    for module in set(KINDS.values()) - set(PUBLIC.values()):
        importlib.import_module(f"earshot_pulumi.{module}")


def judge(inputs: Properties, show: Show) -> Properties:
    """The inputs of a provider instance, checked if it is a gate. Raises InvalidInputs."""
    if not {"plan", "placement"} & inputs.keys():
        return inputs  # an instance that is not a gate
    from earshot_pulumi.provider.judge import judge  # slow to import

    return judge(inputs, show)
