"""What a program registered, as plain data that a YAML file can hold."""

import json
import re
from collections.abc import Sequence
from typing import Any

import yaml
from earshot_pulumi.gate import PROVIDER_TYPE

COMPUTED = {
    "contract", "gate", "approved", "plan", "properties", "source", "state_dir", "wanted",
}  # fmt: skip
"""Inputs that others' tests compare, or that differ from one run to the next."""
SHOWN = {"addresses", "certificates", "cloud", "containers", "placement"}
LONG = {"incarnations", "key", "userData", "user_data"}
"""Of which only so much is compared that it is there."""


def shown(seen: Sequence[Any]) -> dict[str, dict[str, Any]]:
    """By type and name, what a registration says."""
    seen = [item for item in seen if item.type != "pulumi:pulumi:Stack"]
    known = {it.urn: _called(it) for it in seen}
    found: dict[str, dict[str, Any]] = {}
    for item in seen:
        request = item.request
        options = {
            "protect": bool(request.protect),
            "retain": bool(request.retainOnDelete),
            "delete_first": bool(request.deleteBeforeReplace),
            "ignore": list(request.ignoreChanges),
            "formerly": [it.spec.type for it in request.aliases if "earshot" in it.spec.type],
        }
        after = {name for urn in request.dependencies for end, name in known.items()
                 if urn.endswith(end)}  # fmt: skip
        # a gate has the inputs of the component around it, as tests/components/test_gate.py says
        omitted = COMPUTED | (SHOWN if item.type == PROVIDER_TYPE else set())
        found[_called(item)] = {
            "inputs": _plain({k: it for k, it in item.inputs.items() if k not in omitted}),
            "after": sorted(after),
            "below": next((it for urn, it in known.items()
                           if str(request.parent).endswith(urn)), ""),
            **{key: value for key, value in options.items() if value},
        }  # fmt: skip
    return found


def _called(item: Any) -> str:
    return f"{item.type.rpartition('/')[2]} {item.name}"


def _plain(value: Any) -> Any:
    match value:
        case dict():
            kept = {key: it for key, it in value.items() if not key.startswith("__")}
            return {key: "..." if key in LONG else _plain(it) for key, it in kept.items()}
        case list():
            return [_plain(it) for it in value]
        case float():
            return int(value) if value.is_integer() else value
        case str():  # the bundle's name is the digest of the library's own files
            return re.sub(r"bundles/[0-9a-f]{64}", "bundles/...", value)
    return value


def as_yaml(registered: Any) -> str:
    """YAML in which a value of several lines stands once; an anchor repeats it."""
    return yaml.dump(_shared(registered, {}), Dumper=_Named, width=100)


class _Named(yaml.SafeDumper):
    def generate_anchor(self, node: yaml.Node) -> str:
        return f"value-{len([anchor for anchor in self.anchors.values() if anchor]) + 1}"


def _shared(value: Any, known: dict[str, Any]) -> Any:
    """``value``, whose equal parts of several lines are one object."""
    match value:
        case dict():
            value = {key: _shared(it, known) for key, it in value.items()}
        case list():
            value = [_shared(it, known) for it in value]
        case _:
            return value
    lines = len(yaml.safe_dump(value, width=100).splitlines())
    return known.setdefault(json.dumps(value, sort_keys=True), value) if lines > 4 else value
