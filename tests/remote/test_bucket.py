"""Objects of a bucket, and one clear line for each way in which there is none."""

from collections.abc import Iterator

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError
from moto import mock_aws

from earshot.errors import EarshotError
from earshot.remote.bucket import Bucket, fetch, is_url

NAME = "mine-validator-1"
LATEST = f"s3://{NAME}/reports/latest.json"


@pytest.fixture(autouse=True)
def credentials(ambient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    with mock_aws():
        place = {"LocationConstraint": "eu-central-1"}
        s3 = boto3.client("s3", region_name="eu-central-1")
        s3.create_bucket(Bucket=NAME, CreateBucketConfiguration=place)
        yield Bucket(NAME, "eu-central-1")
        s3.close()


def test_what_was_put_is_there(bucket: Bucket) -> None:
    assert bucket.get("reports/latest.json") is None
    bucket.put("reports/latest.json", b"{}")
    assert bucket.get("reports/latest.json") == b"{}"
    assert fetch(LATEST) == b"{}"


def test_what_has_not_been_reported_yet_is_said_to_be_so(bucket: Bucket) -> None:
    for url in (LATEST, "s3://no-such-bucket/reports/latest.json"):
        with pytest.raises(EarshotError, match="does not exist: nothing has been reported"):
            fetch(url)


@pytest.mark.parametrize("url", ["s3://bucket", "s3://bucket/", "s3://B/x", "s3:///x"])
def test_what_is_no_objects_url_is_refused(url: str) -> None:
    assert is_url(url)
    with pytest.raises(EarshotError, match="is no object's URL"):
        fetch(url)


def test_missing_credentials_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(EarshotError, match="Unable to locate credentials") as caught:
        fetch(LATEST)
    assert "AWS_PROFILE" in caught.value.remedy


def test_a_missing_profile_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "no-such-profile")
    with pytest.raises(EarshotError, match="profile"):
        fetch(LATEST)


def test_a_silent_endpoint_is_named(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**arguments: str) -> None:
        raise EndpointConnectionError(endpoint_url="https://nowhere.example")

    monkeypatch.setattr(bucket._s3, "put_object", refuse)
    with pytest.raises(EarshotError, match=r"cannot be reached: .*nowhere\.example"):
        bucket.put("order.json", b"")
