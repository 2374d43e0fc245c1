"""Writes `earshot_pulumi/cluster_args.py`: the inputs of cluster components, as typed maps.

Pulumi reads the schema from annotations and docstrings in source code, so the maps are source code.
They are made from the models that read a stack file, so that both have the same keys.
"""

import sys
import textwrap
import types
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from earshot.config.schema import descriptions
from earshot.placements import PLACEMENTS

FILE = Path(__file__).parent.parent / "components" / "earshot_pulumi" / "cluster_args.py"
CLUSTERS = {"local": "LocalClusterArgs", "docker": "DockerClusterArgs", "aws": "AwsClusterArgs"}
LEFT_OUT = {"placement"}
NAMES = {"ListenerSpec": "ClusterListenerArgs", "DockerHost": "DockerHostArgs"}
"""Names where the model's own says too little, or the component `Listeners` has it."""
POLICY = "How the gate judges; on top of policies/config of the project, if there is one."
_SCALARS = {str: "str", int: "int", float: "float", bool: "bool"}
_HEAD = '''"""The inputs of cluster components; `python -m toolchain.cluster_args` writes this file.

The keys are those of `earshot:cluster` in a stack file, whose models decide what is allowed. The
annotations must be no strings: Pulumi reads the schema from them.
"""

from typing import Any, NotRequired, TypedDict

import pulumi

from earshot_pulumi.policy_args import PolicyArgs

'''


def source() -> str:
    """The text of the file."""
    models = {
        args: PLACEMENTS[name].module("earshot.config").MODEL for name, args in CLUSTERS.items()
    }
    classes: dict[str, str] = {}
    for name, model in models.items():
        _write(model, name, classes, whole=True)
    body = "\n\n".join(classes.values())
    head = _HEAD if "Any]" in body else _HEAD.replace("import Any, ", "import ")
    return head + "\n" + body


def _write(model: type[BaseModel], name: str, classes: dict[str, str], *, whole: bool) -> None:
    """Adds the map of ``model``, after those that it needs."""
    texts = descriptions(model)
    lines = [f"class {name}(TypedDict):", *_docstring(_about(model, whole=whole)), ""]
    for key, field in model.model_fields.items():
        if whole and key in LEFT_OUT:
            continue
        kind = f"pulumi.Input[{_kind(field.annotation, classes)}]"
        if not field.is_required():
            kind = f"NotRequired[{kind}]"
        lines += [f"    {key}: {kind}", *_docstring(texts[key])]
    if whole:
        lines += ["    policy: NotRequired[pulumi.Input[PolicyArgs]]", *_docstring(POLICY)]
    classes[name] = "\n".join(lines) + "\n"


def _about(model: type[BaseModel], *, whole: bool) -> str:
    first = (model.__doc__ or "").split("\n\n")[0]
    return f"A cluster: {first[0].lower()}{first[1:]}" if whole else " ".join(first.split())


def _docstring(text: str) -> Iterator[str]:
    shown = "\n    ".join(textwrap.wrap('"""' + text, 96))
    end = '"""' if len(shown.rpartition("\n")[2]) <= 93 else '\n    """'
    yield f"    {shown}{end}"


def _kind(annotation: Any, classes: dict[str, str]) -> str:
    """The annotation of a value, with an `Input` around each value below it."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _kind(arguments[0], classes)
    if origin in (Union, types.UnionType):
        known = [it for it in arguments if it is not types.NoneType]
        models = [it for it in known if isinstance(it, type) and issubclass(it, BaseModel)]
        return _kind((models or known)[0], classes)
    if origin is Literal or (isinstance(annotation, type) and issubclass(annotation, StrEnum)):
        return "str"
    if origin in (tuple, list):
        return f"list[pulumi.Input[{_kind(arguments[0], classes)}]]"
    if origin in (dict, Mapping) or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return f"dict[str, pulumi.Input[{_kind(arguments[1], classes)}]]"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        name = NAMES.get(annotation.__name__, annotation.__name__.removesuffix("Spec") + "Args")
        if name not in classes:
            _write(annotation, name, classes, whole=False)
        return name
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    raise TypeError(f"no input for {annotation!r}")


if __name__ == "__main__":
    FILE.write_text(source())
    sys.stdout.write(f"wrote {FILE}\n")
