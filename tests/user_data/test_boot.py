from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from earshot.user_data.boot import Archive, SecretFile, ssm_report, ssm_secret
from tests.user_data.nodes import boot


def test_a_volume_is_found_by_its_id() -> None:
    expected = "/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_vol0123456789abcdef0"
    assert boot(volume="vol-0123456789abcdef0").device == expected
    assert boot(volume="/dev/xvdb").device == "/dev/xvdb"


def test_a_published_checksum_is_taken_as_it_is_written() -> None:
    groups = " ".join(["0A1B2C3D"] * 16)
    assert Archive(url="https://x/k.tgz", sha512=groups).sha512 == "0a1b2c3d" * 16


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
    with pytest.raises(ValidationError) as caught:
        boot(**{key: value})
    assert [str(error["loc"][0]) for error in caught.value.errors()] == [key]


def test_the_role_writes_one_parameter_and_reads_another() -> None:
    report = ssm_report("/earshot/prod/1", "eu-central-1")
    assert report[:3] == ("aws", "ssm", "put-parameter")
    assert report[-1] == "--value"
    secret = ssm_secret("broker.pem", "/earshot/prod/tls", "eu-central-1")
    assert isinstance(secret, SecretFile)
    assert {"--with-decryption", "/earshot/prod/tls"} <= set(secret.command)
