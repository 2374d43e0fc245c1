"""Writes `earshot_pulumi/cluster_args.py`: the inputs of cluster components, as typed maps.

Type checkers and editors read them, so the maps are source code. They are made from the models that
read a stack file, so that both have the same keys and descriptions.
"""

import sys
import textwrap
import types
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from earshot_pulumi.provider.schema import names_of_models
from pydantic import BaseModel

from earshot.config.aws_docker_hosts import DockerHostsSpec
from earshot.config.aws_sections import NetworkSpec
from earshot.config.cluster import ClusterSpec
from earshot.config.schema import descriptions
from earshot.placement_registry import PLACEMENTS

FILE = Path(__file__).parent.parent / "components" / "earshot_pulumi" / "cluster_args.py"
CLUSTERS = {name: f"{name.title()}ClusterArgs" for name in PLACEMENTS}
COMPONENTS: dict[str, type[BaseModel]] = {"DockerHosts": DockerHostsSpec, "AwsNetwork": NetworkSpec}
"""Other components whose inputs are the keys of one model."""
LEFT_OUT = {"placement"}
POLICY = "The configuration of the gate. Its keys override those of the project's policies/config."
_SCALARS = {str: "str", int: "int", float: "float", bool: "bool"}
_HEAD = '''"""The inputs of cluster components; `python -m toolchain.cluster_args` writes this file.

The keys are those of `earshot:cluster` in a stack file, whose models describe them and decide what
is allowed. The annotations must be no strings: Pulumi reads the schema from them.
"""

from typing import NotRequired, TypedDict

import pulumi

from earshot_pulumi.policy_args import PolicyArgs


'''


def source() -> str:
    """The text of the file."""
    models = {
        args: PLACEMENTS[name].module("earshot.config").MODEL for name, args in CLUSTERS.items()
    }
    maps: dict[type[BaseModel], _Map] = {}
    annotations_by_model = [
        {key: str(field.annotation) for key, field in model.model_fields.items()}
        for model in models.values()
    ]
    shared = [
        key
        for key in ClusterSpec.model_fields
        if len({annotations[key] for annotations in annotations_by_model}) == 1
    ]
    _write(ClusterSpec, "ClusterArgs", maps, "The inputs of all clusters.", shared)
    for name, model in models.items():
        keys = [key for key in model.model_fields if key not in LEFT_OUT]
        _write(model, name, maps, f"A cluster: {_about(model, lower=True)}", keys)
    for component, spec in COMPONENTS.items():
        about = f"The inputs of `{component}`."
        _write(spec, f"{component}Args", maps, about, spec.model_fields)
    return _HEAD + "\n\n".join(typed_map.text for typed_map in maps.values())


class _Map(NamedTuple):
    name: str
    keys: frozenset[str]
    text: str


def _write(
    model: type[BaseModel],
    name: str,
    maps: dict[type[BaseModel], _Map],
    about: str,
    keys: Iterable[str],
) -> None:
    """Adds the map of ``model`` after the maps that it uses. It inherits the keys of its base's."""
    base = next((ancestor for ancestor in model.__mro__ if ancestor in maps), None)
    inherited = maps[base].keys if base else frozenset[str]()
    lines = [f"class {name}({maps[base].name if base else 'TypedDict'}):", _docstring(about), ""]
    texts = descriptions(model)
    for key in (key for key in keys if key not in inherited):
        field = model.model_fields[key]
        kind = f"pulumi.Input[{_kind(field.annotation, maps)}]"
        if not field.is_required():
            kind = f"NotRequired[{kind}]"
        lines.append(f"    {key}: {kind}")
        if text := texts.get(key):
            lines.append(_docstring(text))
    if model is ClusterSpec:
        lines += ["    policy: NotRequired[pulumi.Input[PolicyArgs]]", _docstring(POLICY)]
    maps[model] = _Map(name, frozenset(keys) | inherited, "\n".join(lines) + "\n")


def _about(model: type[BaseModel], *, lower: bool = False) -> str:
    first_paragraph = " ".join((model.__doc__ or "").split("\n\n")[0].split())
    return f"{first_paragraph[0].lower()}{first_paragraph[1:]}" if lower else first_paragraph


def _docstring(text: str) -> str:
    lines = "\n    ".join(textwrap.wrap('"""' + text, 96))
    end = '"""' if len(lines.rpartition("\n")[2]) <= 93 else '\n    """'
    return f"    {lines}{end}"


def _kind(annotation: Any, maps: dict[type[BaseModel], _Map]) -> str:
    """The annotation of a value, with an `Input` around each value below it."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _kind(arguments[0], maps)
    if origin in (Union, types.UnionType):
        members = [member for member in arguments if member is not types.NoneType]
        models = [
            member
            for member in members
            if isinstance(member, type) and issubclass(member, BaseModel)
        ]
        return _kind((models or members)[0], maps)
    if origin is Literal or (isinstance(annotation, type) and issubclass(annotation, StrEnum)):
        return "str"
    if origin in (tuple, list):
        return f"list[pulumi.Input[{_kind(arguments[0], maps)}]]"
    if origin in (dict, Mapping) or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return f"dict[str, pulumi.Input[{_kind(arguments[1], maps)}]]"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if annotation not in maps:
            name = names_of_models()[annotation] + "Args"
            _write(annotation, name, maps, _about(annotation), annotation.model_fields)
        return maps[annotation].name
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    raise TypeError(f"no input for {annotation!r}")


if __name__ == "__main__":
    FILE.write_text(source())
    sys.stdout.write(f"wrote {FILE}\n")
