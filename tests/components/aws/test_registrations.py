"""All that a whole stack registers: every input, what each waits for, and how it is protected.

What is expected is in `registrations.yaml`; `python -m tests.components.aws.test_registrations`
prints what is registered now, to be compared with it before it is taken over.
"""

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

import yaml

from tests.components.aws.registered import deployed
from tests.components.registrations import as_yaml, shown
from tests.config.aws_documents import EXTERNAL, INTERNAL, OFFICE, OWN_ZONE, ZONES

FILE = Path(__file__).with_name("registrations.yaml")
SETTINGS: dict[str, Any] = {
    "brokers": 1,
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


SECOND_TO_FIRST = {
    "broker-2": "broker-1",
    "eu-central-1b": "eu-central-1a",
    "id of mine-public-b": "id of mine-public-a",
    "subnet:Subnet mine-public-b": "subnet:Subnet mine-public-a",
    "198.51.100.12": "198.51.100.11",
    "10.0.0.12": "10.0.0.11",
    "eipalloc-2": "eipalloc-1",
    "abc0002": "abc0001",
    "kafka/2/": "kafka/1/",
    '"node": 2': '"node": 1',
    '"earshot:node": "2"': '"earshot:node": "1"',
}
"""In what the resources of two brokers differ."""


def registered_now(state: Path, **changes: Any) -> dict[str, dict[str, Any]]:
    return shown(deployed(state, **{**SETTINGS, **changes}).seen)


def test_everything_is_registered_as_expected(tmp_path: Path) -> None:
    expected, found = yaml.safe_load(FILE.read_text()), registered_now(tmp_path)
    assert sorted(found) == sorted(expected)
    for name, item in found.items():
        assert item == expected[name], name


def test_a_second_broker_has_the_resources_of_the_first_in_its_own_zone(tmp_path: Path) -> None:
    found = registered_now(tmp_path, brokers=2)
    first, second = (
        json.dumps({name: item for name, item in found.items() if broker in name})
        for broker in ("mine-broker-1", "mine-broker-2")
    )
    for other, own in SECOND_TO_FIRST.items():
        assert other in second and other not in first
        second = second.replace(other, own)
    assert json.loads(second) == json.loads(first)


if __name__ == "__main__":
    asyncio.set_event_loop(asyncio.new_event_loop())
    with tempfile.TemporaryDirectory() as folder:
        print(as_yaml(registered_now(Path(folder))), end="")
