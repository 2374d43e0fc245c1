"""Calls of AWS with the settings of a stack."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.exceptions import BotoCoreError
from earshot_pulumi.aws.credentials import PARAMETERS_PER_CALL, reader

from earshot.errors import EarshotError

LISTED = [{"s3": "http://127.0.0.1:1"}, {"ssm": "http://127.0.0.1:2"}, {"s3": "http://127.0.0.1:3"}]


class SessionDouble:
    """Has a parameter for each name that begins with `/there`. Keeps options and requests."""

    options: dict[str, Any]
    requests: list[list[str]]

    def __init__(self, **options: Any) -> None:
        SessionDouble.options = dict(options)
        SessionDouble.requests = []

    def client(self, service: str, **options: Any) -> SessionDouble:
        self.options |= {"service": service, **options}
        return self

    def get_parameters(self, Names: list[str], WithDecryption: bool) -> dict[str, Any]:
        assert WithDecryption
        self.requests.append(Names)
        if "/broken" in Names:
            raise BotoCoreError
        names = [name for name in Names if name.startswith("/there")]
        return {"Parameters": [{"Name": name, "Value": f"of {name}"} for name in names]}


def test_parameters_are_read_a_few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boto3, "Session", SessionDouble)
    config = {"aws:profile": "p", "aws:endpoints": LISTED}
    read = reader(config, "eu-central-1")
    options = SessionDouble.options
    assert options.pop("config").retries == {"total_max_attempts": 5, "mode": "standard"}
    assert options == {
        "region_name": "eu-central-1",
        "profile_name": "p",
        "service": "ssm",
        "endpoint_url": "http://127.0.0.1:2",
    }
    names = [f"/there/{number}" for number in range(PARAMETERS_PER_CALL + 1)]
    assert read([*names, "/gone"]) == {name: f"of {name}" for name in names}
    assert [len(names) for names in SessionDouble.requests] == [PARAMETERS_PER_CALL, 2]
    assert read([]) == {}


def test_an_error_of_aws_or_of_the_profile_has_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EarshotError, match="nope"):
        reader({"aws:profile": "nope"}, "eu-central-1")
    monkeypatch.setattr(boto3, "Session", SessionDouble)
    with pytest.raises(EarshotError) as caught:
        reader({}, "eu-central-1")(["/broken"])
    assert str(caught.value) == (
        "SSM parameters in eu-central-1: cannot be read: An unspecified error occurred\n"
        "  fix: let these credentials call ssm:GetParameters, then run the same command again"
    )
