"""All that a whole stack registers: every input, what each waits for, and how it is protected.

What is expected is in `registrations.yaml`; `python -m tests.components.aws.test_registrations`
prints what is registered now, to be compared with it before it is taken over.
"""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import yaml

from tests.components.aws.registered import deployed
from tests.components.registrations import as_yaml, shown
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
        print(as_yaml(registered_now(Path(folder))), end="")
