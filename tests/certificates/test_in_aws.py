"""Texts in SSM and Secrets Manager, and one clear line for each way in which there is none."""

import sys
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import boto3
import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError, EndpointConnectionError
from moto import mock_aws

from earshot.certificates.in_aws import read_in_aws
from earshot.errors import EarshotError
from tests.raised import raised

pytestmark = pytest.mark.usefixtures("ambient")

REGION = "eu-central-1"
PLACE = "ssm:/kafka/ca.pem"
CREDENTIALS = (
    "give the environment credentials that are valid (AWS_PROFILE, or another of AWS's own ways)"
)


@pytest.fixture
def parameters_in_aws(ambient: None) -> Iterator[None]:
    """Twelve parameters, of which the last is no secret, and three secrets, one of bytes."""
    with (
        mock_aws(),
        closing(boto3.client("ssm", region_name=REGION)) as ssm,
        closing(boto3.client("secretsmanager", region_name=REGION)) as manager,
    ):
        for id in range(11):
            ssm.put_parameter(Name=f"/kafka/{id}", Value=f"key {id}", Type="SecureString")
        ssm.put_parameter(Name="/kafka/ca.pem", Value="authority", Type="String")
        for id in range(2):
            manager.create_secret(Name=f"kafka-{id}", SecretString=f"secret {id}")
        manager.create_secret(Name="bytes", SecretBinary=b"x")
        yield


def refusal(*places: str, region: str = REGION) -> str:
    return str(raised(EarshotError, read_in_aws, places, region))


def test_few_calls_read_all_once(parameters_in_aws: None, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    own = BaseClient._make_api_call

    def counted(self: Any, operation: str, given: Any) -> Any:
        calls.append(operation)
        return own(self, operation, given)

    monkeypatch.setattr(BaseClient, "_make_api_call", counted)
    places = (*(f"ssm:/kafka/{id}" for id in range(11)), PLACE)
    places += ("secretsmanager:kafka-0", "secretsmanager:kafka-1")
    for _ in range(2):
        texts = read_in_aws(places, REGION)
        assert {place: text.content.decode() for place, text in texts.items()} == {
            **{f"ssm:/kafka/{id}": f"key {id}" for id in range(11)},
            PLACE: "authority",
            "secretsmanager:kafka-0": "secret 0",
            "secretsmanager:kafka-1": "secret 1",
        }
        assert {it for it, text in texts.items() if not text.encrypted} == {PLACE}
    assert calls == ["GetParameters"] * 2 + ["GetSecretValue"] * 2
    assert "key" not in repr(texts) and "secret " not in repr(texts)


def test_versions_and_arns_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS answers with names that are without their selectors, which moto leaves out."""
    arn = "arn:aws:ssm:eu-central-1:111122223333:parameter/kafka/ca.pem"
    of_all = {"Name": "/kafka/ca.pem", "ARN": arn, "Type": "String"}
    found = [{**of_all, "Value": "new"}, {**of_all, "Value": "old", "Selector": ":1"}]
    monkeypatch.setattr(BaseClient, "_make_api_call", lambda *_: {"Parameters": found})
    texts = read_in_aws((f"{PLACE}:1", f"ssm:{arn}"), REGION)
    assert [text.content for text in texts.values()] == [b"new", b"old"]
    assert [*texts] == [f"ssm:{arn}", f"{PLACE}:1"]


def test_nothing_is_asked_where_nothing_lies_in_aws() -> None:
    assert read_in_aws((), "") == {}


def test_what_is_no_text_of_the_region_is_named(parameters_in_aws: None) -> None:
    reported = "not found in eu-central-1 with these credentials\n"
    reported += "  fix: put it there, or correct security.tls.from or its region"
    assert refusal("ssm:/kafka/1", "ssm:/a", "ssm:/b") == f"ssm:/a and 1 more: {reported}"
    assert refusal("secretsmanager:a") == (
        "secretsmanager:a: cannot be used: An error occurred (ResourceNotFoundException) when "
        "calling the GetSecretValue operation: Secrets Manager can't find the specified secret.\n"
        "  fix: put it there, or correct security.tls.from or its region"
    )
    assert refusal("secretsmanager:bytes") == (
        "secretsmanager:bytes: is a binary secret\n  allowed: one that holds a text, as PEM is"
    )


PERMISSION = "let these credentials call {}, and kms:Decrypt where a key of your own encrypts it"
OF_SECRETS = PERMISSION.format("secretsmanager:GetSecretValue")
LATER = "run the same command again in a minute: AWS refuses more calls for now"
REACHED = "see that this machine reaches AWS, and that region and credentials are the right ones"


@pytest.mark.parametrize(
    ("place", "code", "remedy"),
    [
        (PLACE, "AccessDeniedException", PERMISSION.format("ssm:GetParameters")),
        ("secretsmanager:ca", "AccessDeniedException", OF_SECRETS),
        (PLACE, "ThrottlingException", LATER),
        (PLACE, "ExpiredTokenException", CREDENTIALS),
        (PLACE, "InternalServerError", REACHED),
    ],
)
def test_aws_refusals(place: str, code: str, remedy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Any, operation: str, given: Any) -> None:
        raise ClientError({"Error": {"Code": code, "Message": "no\nway"}}, operation)

    monkeypatch.setattr(BaseClient, "_make_api_call", refuse)
    call = "GetParameters" if place == PLACE else "GetSecretValue"
    assert refusal(place) == (
        f"{place}: cannot be used: An error occurred ({code}) when calling the {call} operation: "
        f"no way\n  fix: {remedy}"
    )


def test_a_machine_without_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Any, operation: str, given: Any) -> None:
        raise EndpointConnectionError(endpoint_url="https://nowhere.example")

    monkeypatch.setattr(BaseClient, "_make_api_call", refuse)
    assert refusal(PLACE) == (
        f'{PLACE}: cannot be used: Could not connect to the endpoint URL: "https://nowhere.example"'
        f"\n  fix: {REACHED}"
    )


def unusable(reason: str, fix: str) -> str:
    return f"{PLACE}: cannot be used: {reason}\n  fix: {fix}"


def test_what_the_environment_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    region = "name the region as security.tls.from.region, in AWS_DEFAULT_REGION or in the profile"
    assert refusal(PLACE, region="") == unusable("You must specify a region.", region)
    with monkeypatch.context() as patch:
        patch.delenv("AWS_ACCESS_KEY_ID")
        assert refusal(PLACE) == unusable("Unable to locate credentials", CREDENTIALS)
    with monkeypatch.context() as patch:
        patch.setenv("AWS_PROFILE", "no-such-profile")
        reason = "The config profile (no-such-profile) could not be found"
        assert refusal(PLACE) == unusable(reason, CREDENTIALS)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "boto3", None)
        reason = "boto3 is not installed"
        assert refusal(PLACE) == unusable(reason, "pip install 'earshot[aws]'")
