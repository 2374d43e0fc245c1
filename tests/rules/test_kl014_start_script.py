"""What the start scripts of images refuse."""

from __future__ import annotations

import pytest

from earshot.facts.container import Container
from earshot.rules.kl014_start_script import _wurstmeister

IMAGE = "wurstmeister/kafka:2.13-2.8.1"
NONE = f"sets no listeners, and {IMAGE} refuses to start"
ADVERTISED = f"sets KAFKA_ADVERTISED_LISTENERS alone, and {IMAGE} refuses to start"


@pytest.mark.parametrize(
    ("env", "observed"),
    [
        ({}, [NONE]),
        ({"HOSTNAME_COMMAND": "hostname"}, []),
        ({"KAFKA_ADVERTISED_LISTENERS": "A://h:1"}, [ADVERTISED]),
        ({"KAFKA_ADVERTISED_LISTENERS": "A://h:1", "HOSTNAME_COMMAND": "hostname"}, [ADVERTISED]),
        ({"KAFKA_ADVERTISED_LISTENERS": "A://h:1", "KAFKA_LISTENERS": "A://:1"}, []),
        ({"KAFKA_ADVERTISED_HOST_NAME": "h"}, []),
    ],
)
def test_wurstmeister_needs_listeners_or_a_name(env: dict[str, str], observed: list[str]) -> None:
    container = Container("kafka", IMAGE, env=env)
    assert [found.observed for found in _wurstmeister(container)] == observed
