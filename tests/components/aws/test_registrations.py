"""All that a whole stack registers: every input, what each waits for, and how it is protected.

What is expected is in `registrations.yaml`; `python -m tests.components.aws.test_registrations`
prints what is registered now, to be compared with it before it is taken over.
"""

import asyncio
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from earshot_pulumi.gate import PROVIDER_TYPE

from tests.components.aws.registered import deployed
from tests.config.aws_documents import EXTERNAL, INTERNAL, OFFICE, OWN_ZONE, ZONES

FILE = Path(__file__).with_name("registrations.yaml")
SETTINGS: dict[str, Any] = {
    "brokers": 2,
    "vpc": {"zones": ZONES[:2]},
    "controllers": {"mode": "separate", "count": 1},
    "listeners": [INTERNAL, {**EXTERNAL, "protocol": "PLAINTEXT"}],
    "clear_text": {"EXTERNAL": "a trial without data"},
    "clients": {**OFFICE, "groups": {"apps": "sg-0123abcd"}},
    "cluster_id": "5L6g3nShT-eMCtK-X86swQ",
    "flow_logs": True,
    "nat": "per-zone",
    "secrets": {"key.pem": "/kafka/{id}/key"},
    "validator": {"secrets": {"a.pem": "/kafka/a"}, "keep_days": 7},
    "volume": {"iops": 4000, "throughput": 250},
    **OWN_ZONE,
}
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


def registered_now(state: Path) -> dict[str, dict[str, Any]]:
    return shown(deployed(state, **SETTINGS).seen)


def test_everything_is_registered_as_expected(tmp_path: Path) -> None:
    expected, found = yaml.safe_load(FILE.read_text()), registered_now(tmp_path)
    assert sorted(found) == sorted(expected)
    for name, item in found.items():
        assert item == expected[name], name


if __name__ == "__main__":
    asyncio.set_event_loop(asyncio.new_event_loop())
    with tempfile.TemporaryDirectory() as folder:
        print(yaml.safe_dump(registered_now(Path(folder)), width=100), end="")
