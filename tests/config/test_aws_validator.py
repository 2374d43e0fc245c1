"""`validator` of placement aws: on, off, or with settings of its own."""

from typing import Any

import pytest

from tests.config.aws_documents import (
    INTERNAL,
    ONE_LISTENER,
    TWO_LISTENERS,
    ZONES,
    read_aws,
    refused,
)


@pytest.mark.parametrize(("value", "there"), [(True, True), (False, False), ({}, True)])
def test_it_is_switched_on_and_off(value: Any, there: bool) -> None:
    assert (read_aws(validator=value).validator is not None) is there


def test_without_a_word_there_is_none() -> None:
    assert read_aws().validator is None


def test_settings_are_its_own() -> None:
    spec = read_aws(validator={"every": 15, "instance": {"type": "m7i.large"}})
    assert spec.validator is not None
    assert (spec.validator.every, spec.validator.instance.arch) == (15, "x86_64")


@pytest.mark.parametrize("settings", [ONE_LISTENER, TWO_LISTENERS])
def test_it_needs_a_way_out_of_a_private_subnet(settings: dict[str, Any]) -> None:
    assert read_aws(**settings).nat_gateways == "none"
    assert read_aws(validator=True, **settings).nat_gateways == "one"
    (line,) = refused(validator=True, nat="none", **settings)
    assert "found none with the validator in private subnets" in line


def test_in_a_vpc_that_is_there_it_needs_a_private_subnet() -> None:
    vpc = {
        "id": "vpc-0123abcd",
        "zones": ZONES[:2],
        "public_subnets": {ZONES[0]: "subnet-0000000a", ZONES[1]: "subnet-0000000b"},
    }
    (line,) = refused(vpc=vpc, validator=True, **TWO_LISTENERS)
    assert line == "vpc.private_subnets: is missing; the validator would be there"


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("on", "validator: found 'on'; allowed: true, false or a map of settings"),
        ({"every": 1}, "validator.every: found 1; allowed: 5 or more"),
        ({"hourly": True}, "validator.hourly: is no known setting"),
        ({"client": {"sasl.password": "x"}}, "validator.client: sasl.password would reveal"),
        ({"secrets": {"a": "/k/{id}"}}, "secrets.a: found /k/{id}; allowed: a name without {id}"),
        ({"secrets": {"a/b": "/k"}}, "secrets['a/b']: found 'a/b'; allowed: a file name"),
    ],
)
def test_what_cannot_be_meant_is_refused(value: Any, line: str) -> None:
    (found,) = refused(validator=value)
    assert line.split(":")[0] in found
    assert line.partition(": is no known")[0] in found


def test_credentials_that_a_listener_takes_are_asked_for() -> None:
    secured = {**INTERNAL, "protocol": "SASL_SSL"}
    (line,) = refused(listeners=[secured], validator=True)
    assert line == "validator.client: is missing; INTERNAL takes SASL_SSL"
    given = {"client": {"sasl.mechanism": "SCRAM-SHA-512"}}
    assert read_aws(listeners=[secured], validator=given).validator
