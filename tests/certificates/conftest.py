"""What a shell has for AWS, where certificates come from there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from earshot.certificates.in_aws import read_in_aws
from earshot.certificates.private_ca import authority_of


@pytest.fixture
def ambient(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Credentials and no region, and nothing that was read before."""
    names = ("PROFILE", "SESSION_TOKEN", "ENDPOINT_URL", "DEFAULT_REGION", "DEFAULT_PROFILE")
    for name in names:
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    yield
    read_in_aws.cache_clear()
    authority_of.cache_clear()
