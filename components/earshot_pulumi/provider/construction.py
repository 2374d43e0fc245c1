"""Constructs components from the inputs that the engine sends.

Pulumi's SDK drops inputs that the schema lacks, and maps of named types that are outputs, such as
secrets: `security: ${a.output}` would have no effect. Here the component gets all inputs, and
reports the invalid ones.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pulumi
from pulumi.errors import InputPropertiesError
from pulumi.provider import ConstructResult
from pulumi.provider import server as sdk
from pulumi.provider.experimental.analyzer import (
    ComponentDefinition,
    PropertyDefinition,
    TypeDefinition,
)
from pulumi.provider.experimental.component import ComponentProvider

from earshot import __version__
from earshot.errors import EarshotError
from earshot_pulumi.cluster_args import ClusterArgs
from earshot_pulumi.provider.kind import Inputs, Kind, Properties
from earshot_pulumi.provider.resource import PACKAGE, EarshotResource, camel_case, type_token
from earshot_pulumi.provider.schema import completed

NamedType = Callable[[PropertyDefinition], TypeDefinition | None]
"""Returns the type that a property's `ref` names; None for types of other packages."""


class Components(ComponentProvider):
    """The SDK's provider of components, which get every input."""

    def map_inputs(self, inputs: Any, component_def: ComponentDefinition) -> Any:
        """The inputs with the keys of Python. The component reports missing ones."""
        names = component_def.inputs_mapping
        return _python_names(inputs, component_def.inputs, names, self.get_type_definition)

    def construct(
        self, name: str, resource_type: str, inputs: Any, options: Any = None
    ) -> ConstructResult:
        """Raises InputPropertiesError, which the engine shows as an error of the user's program."""
        try:
            return super().construct(name, resource_type, inputs, options)
        except sdk.ComponentInitError as error:
            if isinstance(error.inner, EarshotError | pulumi.RunError):
                # without a list, Pulumi's own code for the answer fails
                raise InputPropertiesError(str(error.inner), []) from None
            raise


class Package(Components):
    """The schema of the provider, and the construction of its components."""

    def __init__(
        self,
        components: Sequence[type[pulumi.ComponentResource]],
        kinds: Mapping[type[EarshotResource], Kind],
    ) -> None:
        super().__init__([*components, *kinds], PACKAGE, None, __version__)  # type: ignore[list-item]
        assert self.schema is not None
        inherited = {
            type_token(component.__name__): self._inherited(*component.__mro__[1:], ClusterArgs)
            for component in components
        }
        self.schema = completed(self.schema, kinds, inherited)

    def _inherited(self, *bases: type) -> dict[str, str]:
        """The docstrings of ``bases`` by name: Pulumi reads only those of the class itself."""
        return {
            camel_case(name): text
            for base in bases
            if base.__module__.startswith("earshot_pulumi.")
            for name in inspect.get_annotations(base)
            if (text := self.analyzer.get_docstring(base, name))
        }


def _python_names(
    inputs: Inputs,
    properties: Mapping[str, PropertyDefinition],
    names: Mapping[str, str],
    named_type: NamedType,
) -> Properties:
    """``inputs`` with the keys of Python; ``names`` maps the schema's to them."""
    return {
        names.get(key, key): _renamed(value, properties[key], named_type)
        if key in properties
        else value
        for key, value in inputs.items()
        if value is not None
    }


def _renamed(value: Any, definition: PropertyDefinition, named_type: NamedType) -> Any:
    if isinstance(value, pulumi.Output):
        return value.apply(
            lambda known_value: _renamed(known_value, definition, named_type),
            run_with_unknowns=True,
        )
    if isinstance(value, Mapping):
        if definition.ref and (map_type := named_type(definition)) is not None:
            return _python_names(
                value, map_type.properties, map_type.properties_mapping, named_type
            )
        if (entry_type := definition.additional_properties) is not None:
            return {key: _renamed(entry, entry_type, named_type) for key, entry in value.items()}
    if isinstance(value, list) and definition.items is not None:
        return [_renamed(element, definition.items, named_type) for element in value]
    return value
