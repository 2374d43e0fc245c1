"""What Spark is told for a cluster."""

import pytest

from earshot.listeners.terms import Protocol
from earshot.spark.run import ValidationOptions
from tests.doubles.answers import contract


@pytest.mark.parametrize("protocol", Protocol)
def test_a_listener_that_asks_for_anything_makes_a_run_a_secured_one(protocol: Protocol) -> None:
    plain = contract(INTERNAL=["i:1"], EXTERNAL=["e:1"])
    first, second = plain.listeners
    mixed = plain.model_copy(
        update={"listeners": (first, second.model_copy(update={"protocol": protocol}))}
    )
    settings = ValidationOptions(record=True).spark(mixed)
    assert settings.secured is (protocol is not Protocol.PLAINTEXT)
    assert settings.record is True
