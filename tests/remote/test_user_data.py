"""User data of the validator: its files, and the results of linters."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from earshot.errors import EarshotError
from earshot.remote.user_data import CLIENT, BundleRef, ValidatorSettings, validator_user_data
from earshot.user_data.boot import PACKAGING, System, ssm_secret
from earshot.user_data.cloud_config import LIMIT
from tests.raised import raised
from tests.user_data.properties import files_in
from tests.user_data.test_scripts import schema

BUNDLE = BundleRef(key="bundles/0a.tar", sha256="0a" * 32)
RICH: dict[str, Any] = {
    "client": {"security.protocol": "SSL", "ssl.truststore.location": "/run/earshot/secrets/a.pem"},
    "secrets": (ssm_secret("a.pem", "/kafka/a", "eu-central-1"),),
}
PREPARE, VALIDATE = (f"/usr/local/sbin/earshot-{name}" for name in ("prepare", "validate"))


def text(system: System = System.AMAZON_LINUX_2023, **changes: Any) -> str:
    place = ValidatorSettings(
        system=system, region="eu-central-1", bucket="mine-validator-1", bundle=BUNDLE, **changes
    )
    return validator_user_data(place)


@pytest.mark.parametrize("system", System)
@pytest.mark.parametrize("changes", [{}, RICH])
def test_it_is_small_plain_and_always_the_same(system: System, changes: dict[str, Any]) -> None:
    user_data = text(system, **changes)
    assert user_data.startswith("#cloud-config\n") and user_data.isascii()
    assert len(user_data) < LIMIT and user_data == text(system, **changes)


def test_the_bundle_is_fetched_by_its_key_and_checked() -> None:
    script = files_in(text())[PREPARE]
    assert "bundle=s3://mine-validator-1/bundles/0a.tar\n" in script
    assert f"sha256={'0a' * 32}\n" in script
    assert f"/opt/earshot/app-{'0a' * 6}\n" in script, "unpacked under the beginning of its sum"
    assert "need java java-17-amazon-corretto-headless\n" in script


def test_credentials_are_fetched_only_where_they_are_named() -> None:
    plain, rich = files_in(text()), files_in(text(**RICH))
    assert CLIENT not in plain and "ssm" not in plain[PREPARE]
    assert "security.protocol=SSL\n" in rich[CLIENT]
    assert "/kafka/a" in rich[PREPARE]
    assert CLIENT in rich[VALIDATE] and CLIENT not in plain[VALIDATE]


def test_it_looks_every_minute_and_validates_again_when_due() -> None:
    written_files = files_in(text(every=15))
    assert "OnUnitInactiveSec=60s" in written_files["/etc/systemd/system/earshot-validate.timer"]
    assert "-mmin +15" in written_files[VALIDATE]
    assert "-mmin +60" in files_in(text())[VALIDATE], "every hour by default"


@pytest.mark.parametrize("system", System)
def test_all_that_it_runs_is_installed_and_started(system: System) -> None:
    document = yaml.safe_load(text(system))
    file_by_path = {file["path"]: file for file in document["write_files"]}
    for name in ("java", "tar", "aws", "python3.11"):
        package = f"need {name} {PACKAGING[system].packages[name]}\n"
        assert package in file_by_path[PREPARE]["content"]
    assert [" ".join(command) for command in document["runcmd"]] == [
        "systemctl daemon-reload",
        "systemctl enable earshot-prepare.service",
        "systemctl start --no-block earshot-prepare.service",
    ]
    units = ("earshot-prepare.service", "earshot-validate.service", "earshot-validate.timer")
    assert {path: file.get("permissions") for path, file in file_by_path.items()} == {
        **dict.fromkeys(f"/etc/systemd/system/{unit}" for unit in units),
        **dict.fromkeys((PREPARE, VALIDATE, "/usr/local/sbin/earshot-report"), "0755"),
    }


def test_too_much_is_refused_with_what_mends_it() -> None:
    assert re.fullmatch(
        r"the validator: user data: \d+ bytes\n  allowed: 16384 bytes\n"
        r"  fix: set fewer or shorter properties in `validator\.client`",
        str(raised(EarshotError, text, client={"some.property": "x" * LIMIT})),
    )


@pytest.mark.requires("shellcheck")
@pytest.mark.parametrize("system", System)
@pytest.mark.parametrize("changes", [{}, RICH])
def test_shellcheck_finds_nothing(system: System, changes: dict[str, Any], tmp_path: Path) -> None:
    paths = []
    for path, content in files_in(text(system, **changes)).items():
        if path.startswith("/usr/local/sbin/"):
            paths.append(tmp_path / Path(path).name)
            paths[-1].write_text(content)
    assert len(paths) == 3
    completed = subprocess.run(["shellcheck", *paths], capture_output=True, text=True)
    assert (completed.returncode, completed.stdout) == (0, "")


@pytest.mark.requires("cloud-init")
@pytest.mark.parametrize("system", System)
def test_cloud_inits_schema_is_kept(system: System, tmp_path: Path) -> None:
    path = tmp_path / "user-data"
    path.write_text(text(system, **RICH))
    completed = schema(path)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert "Valid" in completed.stdout and "deprecated" not in completed.stdout.lower()


@pytest.mark.parametrize(
    ("key", "value"),
    [("bucket", "Not a bucket"), ("region", "$(x)"), ("bundle", {"key": "a b", "sha256": "0"})],
)
def test_what_could_not_be_a_name_is_refused(key: str, value: Any) -> None:
    settings = {"system": System.DEBIAN, "region": "eu-central-1", "bucket": "mine"}
    with pytest.raises(ValueError, match=key):
        ValidatorSettings.model_validate({**settings, "bundle": BUNDLE, key: value})
