"""All that a Docker cluster registers: every input, what each waits for, and its options.

What is expected is in `registrations.yaml`; `python -m tests.components.docker.test_registrations`
prints what is registered now, to be compared with it before it is taken over.
"""

import asyncio
from pathlib import Path
from typing import Any
from unittest import mock

import pulumi
import pytest
import yaml
from earshot_pulumi.docker import host_resources as module
from pulumi.runtime import mocks

from tests.components.docker.test_brokers import Engine, _Answers, deployed
from tests.components.registrations import as_yaml, shown

FILE = Path(__file__).with_name("registrations.yaml")
ONE_HOST: dict[str, Any] = {
    "brokers": 1,
    "controllers": {"mode": "separate", "count": 1},
    "dns": ["192.0.2.53"],
    "hosts": [{"external": "kafka.example.com"}],
}
TWO_HOSTS: dict[str, Any] = {
    "brokers": 2,
    "data": "delete",
    "hosts": [{"name": "a", "engine": "tcp://a.lan:2376", "cert_path": "/keys/a",
               "external": "a.example"}, {"name": "b", "engine": "ssh://ops@b.lan",
                                          "external": "b.example", "internal": "b.lan"}],
}  # fmt: skip
SECURED: dict[str, Any] = {
    "brokers": 1,
    "dns": ["192.0.2.53"],
    "hosts": [{"external": "kafka.example.com"}],
    "security": {"users": [{"name": "app", "prefixes": ["app-"]}]},
}
CASES = {"one host": ONE_HOST, "two hosts": TWO_HOSTS, "secured": SECURED}


def registered_now(settings: dict[str, Any]) -> dict[str, dict[str, Any]]:
    engine = Engine()
    mocks.set_mocks(_Answers(), project="earshot", stack="s", preview=False, monitor=engine)
    # hooks are the engine's to call, and no engine is here
    with mock.patch.object(module, "clearing", lambda *_: pulumi.ResourceHookBinding()):
        deployed(**settings)
    registrations = shown(engine.seen)
    for name, registration in registrations.items():
        if "DockerStopPreflight" in name:
            registration["inputs"]["settings"] = "a digest of the container's"
    return registrations


@pytest.mark.parametrize("case", CASES)
def test_everything_is_registered_as_expected(case: str) -> None:
    expected, registered = yaml.safe_load(FILE.read_text())[case], registered_now(CASES[case])
    assert sorted(registered) == sorted(expected)
    for name, registration in registered.items():
        assert registration == expected[name], name


if __name__ == "__main__":
    asyncio.set_event_loop(asyncio.new_event_loop())
    print(as_yaml({case: registered_now(settings) for case, settings in CASES.items()}), end="")
