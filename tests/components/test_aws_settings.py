"""The `aws:` settings of a stack as inputs of resources, and in the environment of commands."""

import asyncio
import json
from typing import Any

import pytest
from earshot_pulumi.aws.readiness import AwsReadinessKind
from earshot_pulumi.aws_settings import SETTINGS, StackSettings, endpoint, environment
from earshot_pulumi.provider.kind import Operation, Properties

LISTED = [{"s3": "http://127.0.0.1:1"}, {"ssm": "http://127.0.0.1:2"}, {"s3": "http://127.0.0.1:3"}]


def test_nothing_said_leaves_the_environment_as_it_is() -> None:
    own = {"AWS_SESSION_TOKEN": "t", "PATH": "/bin"}
    assert environment({}, own) == own
    assert own == {"AWS_SESSION_TOKEN": "t", "PATH": "/bin"}
    assert endpoint({}, "s3") is None


def test_a_program_asks_for_its_stacks_settings_as_a_provider_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {"aws:accessKey": "a", "aws:endpoints": json.dumps(LISTED)}
    monkeypatch.setenv("PULUMI_CONFIG", json.dumps(given))
    settings = StackSettings()
    assert settings.get("aws:accessKey") == "a" and settings.get("aws:profile") is None
    assert endpoint(settings, "ssm") == "http://127.0.0.1:2"


def test_what_is_said_goes_before_the_environment() -> None:
    config = {
        "aws:profile": "p",
        "aws:accessKey": "a",
        "aws:secretKey": "s",
        "aws:region": "eu-central-1",
        "aws:endpoints": LISTED,
    }
    assert environment(config, {"AWS_SESSION_TOKEN": "of others", "AWS_PROFILE": "mine"}) == {
        "AWS_PROFILE": "p",
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "s",
        "AWS_REGION": "eu-central-1",
        "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:3",
    }
    assert environment(config | {"aws:token": "t"}, {})["AWS_SESSION_TOKEN"] == "t"


@pytest.mark.parametrize("listed", [LISTED, json.dumps(LISTED)])
def test_an_endpoint_is_that_of_its_service(listed: Any) -> None:
    assert endpoint({"aws:endpoints": listed}, "ssm") == "http://127.0.0.1:2"
    assert endpoint({"aws:endpoints": listed}, "ec2") is None


def test_a_stacks_settings_are_a_secret_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_CONFIG", "{}")
    assert StackSettings().to_props() == {}
    given = {"aws:secretKey": "s3cr3t", "aws:endpoints": LISTED, "aws:other": "x"}
    monkeypatch.setenv("PULUMI_CONFIG", json.dumps(given))

    async def found() -> tuple[bool, Any]:
        settings = StackSettings().to_props()[SETTINGS]
        return await settings.is_secret(), await settings.future()

    own = {"aws:secretKey": "s3cr3t", "aws:endpoints": LISTED}
    assert asyncio.run(found()) == (True, own)


def test_a_run_asks_aws_with_its_own_settings_and_a_destroy_with_those_of_the_last() -> None:
    kind, olds = AwsReadinessKind(), {SETTINGS: {"aws:profile": "of the last run"}}
    operation = Operation("urn:pulumi:s::earshot::earshot:index:AwsReadiness::name")
    assert kind.settings(operation, olds) == {"aws:profile": "of the last run"}
    kind.check(operation, olds, {SETTINGS: {"aws:profile": "of this run"}})
    assert kind.settings(operation, olds) == {"aws:profile": "of this run"}


def test_a_refresh_finds_no_difference_and_does_not_ask_aws() -> None:
    kind = AwsReadinessKind()
    operation = Operation("urn:pulumi:s::earshot::earshot:index:AwsReadiness::name")
    olds: Properties = {"nodes": []}
    news: Properties = {"nodes": [1], SETTINGS: {}}
    assert not kind.diff(operation, olds, news).changed
    kind.check(operation, olds, news)
    assert kind.diff(operation, olds, news).changed
