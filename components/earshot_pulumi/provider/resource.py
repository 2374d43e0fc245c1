"""The bases of the provider's custom resources, as programs and components create them."""

import inspect
from collections.abc import Mapping
from typing import Any

import pulumi

from earshot import __version__
from earshot_pulumi.provider.kind import Outputs, Properties

PACKAGE = "earshot"
START_FUNCTION = f"{PACKAGE}:index:start"
"""A function without a result. A call of it lets the engine start the plugin."""


class EarshotResource(pulumi.CustomResource):
    """A custom resource of the provider.

    Its annotations are its outputs. Python names become camelCase in the schema.
    """

    def _register(self, name: str, args: Any, opts: pulumi.ResourceOptions | None) -> None:
        """Registers the resource with ``args``, a TypedDict."""
        options = pulumi.ResourceOptions(version=__version__)
        inputs = {camel_case(key): value for key, value in dict(args).items()}
        super().__init__(
            type_token(type(self).__name__),
            name,
            {**dict.fromkeys(map(camel_case, output_names(type(self)))), **inputs},
            pulumi.ResourceOptions.merge(options, opts),
        )

    def translate_output_property(self, prop: str) -> str:
        return snake_case(prop)


def type_token(name: str) -> str:
    """The type of the resource class ``name`` in programs and states."""
    return f"{PACKAGE}:index:{name}"


def output_names(resource: type[pulumi.Resource]) -> list[str]:
    """The Python names of the outputs that the class ``resource`` of earshot declares."""
    return [
        name
        for cls in reversed(resource.__mro__)
        if cls.__module__.startswith("earshot_pulumi.")
        for name, annotation in inspect.get_annotations(cls).items()
        if not name.startswith("_") and "Output" in str(annotation)
    ]


def camel_case(name: str) -> str:
    first_word, *words = name.split("_")
    return first_word + "".join(word.title() for word in words)


def snake_case(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


DYNAMIC = "pulumi-python:dynamic/earshot"
"""Package and module of types in states of earlier releases, which used dynamic providers."""


class InternalResource(pulumi.CustomResource):
    """A custom resource that only earshot's components create; `registry.kinds` has its kind by the
    name of its class.

    It is not in the schema, and its properties have Python names in states.
    Its annotations are the outputs that programs read.
    """

    FORMER_NAMES: tuple[str, ...] = ()
    """Names of its type as a dynamic resource; the default is the class's name."""

    def __init__(self, name: str, props: Properties, opts: pulumi.ResourceOptions) -> None:
        kind = type(self).__name__
        former_types = [f"{DYNAMIC}:{type_name}" for type_name in self.FORMER_NAMES or (kind,)]
        aliases = [pulumi.Alias(type_=type_name) for type_name in former_types]
        for alias in opts.aliases or ():  # the former types also had a former parent
            if isinstance(alias, pulumi.Alias) and alias.parent is pulumi.ROOT_STACK_RESOURCE:
                aliases += [
                    pulumi.Alias(type_=type_name, parent=alias.parent) for type_name in former_types
                ]
        options = pulumi.ResourceOptions(version=__version__, aliases=[*aliases])
        options = pulumi.ResourceOptions.merge(options, opts)
        outputs = dict.fromkeys(output_names(type(self)))
        super().__init__(type_token(kind), name, {**outputs, **props}, options)


def types_of(name: str) -> tuple[str, ...]:
    """The types that resources of the class ``name`` may have in a state."""
    return type_token(name), f"{DYNAMIC}:{name}"


def outputs_of(state_resources: Mapping[str, Outputs], *types: str) -> dict[str, Outputs]:
    """The outputs of a state's resources of these ``types``, by name; earlier types win.

    ``state_resources`` maps URNs to resources.
    """
    return {
        urn.rpartition("::")[2]: resource["outputs"]
        for type in reversed(types)
        for urn, resource in state_resources.items()
        if resource["type"] == type
    }
