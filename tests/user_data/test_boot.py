from typing import Any

import pytest
from pydantic import ValidationError

from earshot.config.aws_sections import KafkaRelease
from earshot.user_data.boot import NodeReport, NodeState, SecretFile, ssm_report, ssm_secret
from tests.raised import raised
from tests.user_data.nodes import boot


def test_a_volume_is_found_by_its_id() -> None:
    expected = "/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_vol0123456789abcdef0"
    assert boot(volume="vol-0123456789abcdef0").device == expected
    assert boot(volume="/dev/xvdb").device == "/dev/xvdb"


def test_a_checksum_is_a_text_and_may_be_in_groups() -> None:
    groups = " ".join(["0A1B2C3D"] * 16)
    assert KafkaRelease(url="https://x/k.tgz", sha512=groups).sha512 == "0a1b2c3d" * 16
    with pytest.raises(ValidationError, match="string"):
        KafkaRelease.model_validate({"url": "https://x/k.tgz", "sha512": 5})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("volume", "vol-1"),
        ("volume", "/data"),
        ("cluster_id", "short"),
        ("heap", "1"),
        ("report", ()),
        ("report", ("tell\n", "x")),
        ("volume_seconds", 0),
        ("client", {"ssl.keystore.password": "hush"}),
        ("client", {"ssl.truststore.location": "a\nb"}),
        ("archive", {"url": "s3://bucket/key", "sha512": "0" * 128}),
        ("archive", {"url": "https://x/k.tgz", "sha512": "0" * 64}),
        ("secrets", [{"name": "../x", "command": ["cat"]}]),
    ],
)
def test_what_cannot_be_meant_is_refused(key: str, value: Any) -> None:
    caught = raised(ValidationError, boot, **{key: value})
    assert [str(error["loc"][0]) for error in caught.errors()] == [key]


def test_the_role_writes_one_parameter_and_reads_another() -> None:
    report = ssm_report("/earshot/prod/1", "eu-central-1")
    assert " ".join(report) == (
        "aws ssm put-parameter --region eu-central-1 --name /earshot/prod/1 --type String "
        "--overwrite --output text --value"
    )
    secret = ssm_secret("broker.pem", "/earshot/prod/tls", "eu-central-1")
    assert isinstance(secret, SecretFile) and secret.name == "broker.pem"
    assert " ".join(secret.command) == (
        "aws ssm get-parameter --region eu-central-1 --with-decryption "
        "--query Parameter.Value --output text --name /earshot/prod/tls"
    )


def test_the_defaults_of_a_boot() -> None:
    plain = boot()
    assert (plain.heap, plain.secrets, plain.client) == ("1g", (), {})
    assert plain.volume_seconds == 300


def test_how_long_a_boot_may_wait_for_its_volume() -> None:
    assert [boot(volume_seconds=value).volume_seconds for value in (1, 3600)] == [1, 3600]
    for value in (0, 3601):
        with pytest.raises(ValidationError):
            boot(volume_seconds=value)


def test_settings_of_a_client_without_secrets_stay_text() -> None:
    client = {"ssl.truststore.location": "/run/kafka/secrets/a.pem"}
    assert boot(client=client).client == client
    with pytest.raises(ValidationError, match=r"ssl\.key\.password would reveal a secret"):
        boot(client={**client, "ssl.key.password": "hush"})


REPORT = NodeReport(
    node=1, instance="i-1", user_data="ab" * 32, state=NodeState.IN_SYNC, detail="",
    at="2026-01-02T03:04:05Z",
)  # fmt: skip


@pytest.mark.parametrize(("changes", "problem"), [
    ({}, ""),
    ({"node": 2}, "the last report is node 2's"),
    ({"instance": "i-0"}, "the last report is of another instance, i-0"),
    ({"user_data": "cd" * 32}, "i-1 booted with other user data: cdcdcdcdcdcd…, not abababababab…"),
    ({"state": NodeState.STARTING}, "starting"),
    ({"state": NodeState.FAILED, "detail": "no volume"}, "failed: no volume"),
])  # fmt: skip
def test_a_report_lacks_what_differs_from_the_node(changes: dict[str, Any], problem: str) -> None:
    report = REPORT.model_copy(update=changes)
    assert report.lacks(1, "i-1", "ab" * 32) == problem
    assert report.is_final is (changes.get("state") is NodeState.FAILED)


@pytest.mark.parametrize("text", ["", "none", "{}", '{"node": 1}', "[]"])
def test_another_text_is_no_report(text: str) -> None:
    assert NodeReport.read(text) is None
    assert NodeReport.read(REPORT.model_dump_json()) == REPORT
