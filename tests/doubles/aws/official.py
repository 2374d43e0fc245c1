"""The types of the official package `pulumi_aws`: the names on the wire of the inputs and outputs
of resources and functions, with those of their parts."""

import functools
import importlib
import re
import warnings
from pathlib import Path
from typing import Any

from tests.doubles.plugin.kind import Shape

PART = re.compile(r"ForwardRef\('(?:outputs\.)?(\w+)'\)")
DEPTH = 4


def inputs(token: str) -> Shape:
    """The input names of a resource, from its arguments class."""
    module, name = _split(token)
    defined = _module(resource(token).__module__)
    arguments = getattr(defined, f"{name}InitArgs", None) or getattr(defined, f"{name}Args")
    return _names(arguments, f"pulumi_aws.{module}._inputs", DEPTH)


def outputs(token: str) -> Shape:
    """The output names of a resource, including its inputs."""
    module, _ = _split(token)
    return _names(resource(token), f"pulumi_aws.{module}.outputs", DEPTH)


def resource(token: str) -> Any:
    """The class of the resource."""
    module, name = _split(token)
    return getattr(_module(f"pulumi_aws.{module}"), name)


def arguments(token: str) -> Shape:
    """The parameter names of a function, as on the wire."""
    module, name = _split(token)
    source = Path(_module(_function(module, name)).__file__).read_text()
    return dict.fromkeys(re.findall(r"__args__\['(\w+)'\]", source))


def results(token: str) -> Shape:
    """The names of a function's results."""
    module, name = _split(token)
    defined = _module(_function(module, name))
    result = getattr(defined, f"{name[0].upper()}{name[1:]}Result")
    package = "pulumi_aws" if module == "index" else f"pulumi_aws.{module}"
    return _names(result, f"{package}.outputs", DEPTH)


def settings() -> Shape:
    """The names of the provider's settings."""
    return _names(_module("pulumi_aws").ProviderArgs, "pulumi_aws._inputs", DEPTH)


@functools.cache
def _names(described_class: Any, parts: str, depth: int) -> Shape:
    """The properties of a class, and below each the properties of its own class."""
    names: dict[str, Shape | None] = {}
    for name, value in vars(described_class).items():
        if not isinstance(value, property) or value.fget is None:
            continue
        wire = getattr(value.fget, "_pulumi_name", name)
        parts_match = PART.search(repr(value.fget.__annotations__.get("return")))
        nested_class = getattr(_module(parts), parts_match[1], None) if parts_match else None
        names[wire] = (
            _names(nested_class, parts, depth - 1) if nested_class is not None and depth else None
        )
    return names


def _module(name: str) -> Any:
    """Loads a module, without the warnings of the package about its own deprecated modules."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        module = importlib.import_module(name)
        getattr(module, "__all__", None)  # the package loads itself at the first attribute
    return module


def _split(token: str) -> tuple[str, str]:
    """`aws:ec2/vpc:Vpc` -> `ec2`, `Vpc`."""
    _, path, name = token.split(":")
    return path.partition("/")[0], name


def _function(module: str, name: str) -> str:
    snake = re.sub(r"([A-Z])", lambda match: f"_{match[1].lower()}", name)
    return f"pulumi_aws.{snake}" if module == "index" else f"pulumi_aws.{module}.{snake}"
