"""The base of the provider's custom resources, as programs create them."""

import inspect
from typing import Any

import pulumi

from earshot import __version__

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
