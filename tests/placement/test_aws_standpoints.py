"""Where a cluster on AWS is looked at from, and what is left out with which reason."""

from typing import Any

import pytest

from earshot.listeners.terms import Scope
from earshot.placement.aws_standpoints import aws_standpoints
from earshot.placement.standpoint import Kind
from tests.config.aws_documents import EXTERNAL, INTERNAL, ONE_LISTENER, TWO_LISTENERS, read_aws
from tests.config.test_connected import OTHER

CLEAR = {**EXTERNAL, "name": "CLEAR", "port": 9093, "protocol": "PLAINTEXT"}
MIXED = {
    **TWO_LISTENERS,
    "listeners": [INTERNAL, EXTERNAL, CLEAR],
    "clear_text": {"CLEAR": "a trial"},
}


def kinds(**settings: Any) -> dict[Scope, Kind]:
    return {item.scope: item.kind for item in aws_standpoints(read_aws(**settings), "b", "i-1")}


def test_each_scope_has_its_place() -> None:
    assert kinds() == {Scope.INTERNAL: Kind.NOT_RUN}
    assert kinds(validator=True) == {Scope.INTERNAL: Kind.INSTANCE}
    both = {Scope.INTERNAL: Kind.INSTANCE, Scope.EXTERNAL: Kind.HERE}
    assert kinds(validator=True, **ONE_LISTENER) == both
    host = {**INTERNAL, "scopes": ["internal", "host"]}
    assert kinds(listeners=[host])[Scope.HOST] is Kind.NOT_RUN


def test_a_validator_is_found_by_its_bucket_and_waited_for_while_it_comes_up() -> None:
    (place,) = aws_standpoints(read_aws(validator=True, ready_seconds=600), "b", "i-1")
    assert (place.bucket, place.instance, place.region) == ("b", "i-1", "eu-central-1")
    assert place.patience > 600


def test_a_connected_vpc_is_a_vantage_that_no_update_validates_from() -> None:
    settings = {"connected": {"jobs": OTHER}, "validator": True}
    own, jobs = aws_standpoints(read_aws(**settings), "b", "i-1")
    assert (own.kind, jobs.name, jobs.scope) == (Kind.INSTANCE, "jobs", Scope.INTERNAL)
    why = jobs.leaves_out("INTERNAL")
    assert "no machine in VPC vpc-0123abcd" in why and "--vantage jobs`" in why


def test_without_one_every_internal_listener_is_left_out() -> None:
    (place,) = aws_standpoints(read_aws())
    assert "validator: true" in place.leaves_out("INTERNAL")


@pytest.mark.parametrize(
    ("prove", "left"),
    [
        ("here", {"EXTERNAL": "not run: its protocol is SSL"}),
        ("later", {"EXTERNAL": "not run: `prove: later`", "CLEAR": "not run: `prove: later`"}),
    ],
)
def test_what_cannot_be_proved_from_here_is_named(prove: str, left: dict[str, str]) -> None:
    _, external = aws_standpoints(read_aws(prove=prove, **MIXED))
    assert external.without.keys() == left.keys()
    for name, reason in left.items():
        assert external.leaves_out(name).startswith(reason)
