"""Spark's settings for a cluster."""

import pytest

from earshot.listeners.terms import Protocol
from earshot.spark.run import ValidationOptions
from tests.doubles.answers import contract


@pytest.mark.parametrize("protocol", Protocol)
def test_a_listener_that_asks_for_anything_makes_a_run_a_secured_one(protocol: Protocol) -> None:
    plain_contract = contract(INTERNAL=["i:1"], EXTERNAL=["e:1"])
    first_listener, second_listener = plain_contract.listeners
    mixed_contract = plain_contract.model_copy(
        update={
            "listeners": (first_listener, second_listener.model_copy(update={"protocol": protocol}))
        }
    )
    settings = ValidationOptions(record=True).spark(mixed_contract)
    assert settings.secured is (protocol is not Protocol.PLAINTEXT)
    assert settings.record is True
