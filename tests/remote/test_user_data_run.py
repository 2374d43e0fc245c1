"""The validator's scripts as they run: what they fetch, do and put. `aws` and Python are doubles.

The double of `aws` knows `s3 cp` alone, with a folder in the place of the bucket.
"""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from earshot.remote.orders import LATEST, ORDER, STATUS, Status, answer_to, digest
from earshot.remote.user_data import (
    HOME,
    REPORT,
    STATE,
    BundleRef,
    ValidatorSettings,
    validator_user_data,
)
from earshot.user_data.boot import System
from tests.user_data.properties import files_in

AWS = """#!/bin/bash
set -e
[[ $1 == s3 && $2 == cp ]]
shift 2
while [[ $1 == --* ]]; do
    case $1 in --only-show-errors) shift ;; *) shift 2 ;; esac
done
from=${1/s3:\\/\\/mine/$BUCKET} to=${2/s3:\\/\\/mine/$BUCKET}
mkdir -p "$(dirname "$to")"
if [[ $from == - ]]; then cat >"$to"; else cp "$from" "$to"; fi
"""
PYTHON = """#!/bin/bash
echo "looking around"
[[ ! -e $BUCKET/unwell ]] || { echo "no memory" >&2; exit 2; }
echo '{"of": "'"$(sha256sum "$3" | cut -c 1-64)"'"}' >"$4"
exit 1
"""


@dataclass
class Machine:
    """A folder in the place of an instance's disk."""

    root: Path

    def run(self, name: str, *words: str) -> subprocess.CompletedProcess[str]:
        own_variables = {
            "PATH": f"{self.root}/bin:{os.environ['PATH']}",
            "BUCKET": str(self.bucket),
        }
        command = [str(self.root / "usr/local/sbin" / name), *words]
        return subprocess.run(
            command, env=os.environ | own_variables, capture_output=True, text=True
        )

    @property
    def bucket(self) -> Path:
        return self.root / "bucket"

    def order(self, text: str) -> str:
        (self.bucket / ORDER).write_text(text)
        return text

    def document(self, key: str) -> object:
        return json.loads((self.bucket / key).read_text())

    @property
    def status(self) -> Status | None:
        file = self.bucket / STATUS
        return Status.read(file.read_text()) if file.exists() else None

    def reports(self) -> list[Path]:
        return list(self.bucket.rglob("reports/**/*.json"))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    bundle = BundleRef(key="bundles/x.tar", sha256="0a" * 32)
    place = ValidatorSettings(
        system=System.DEBIAN, region="eu-central-1", bucket="mine", bundle=bundle
    )
    scripts = {}
    for path, content in files_in(validator_user_data(place)).items():
        if path.startswith("/usr/local/sbin/"):
            for folder in (STATE, HOME, "/run/earshot", str(Path(REPORT).parent)):
                content = content.replace(folder, f"{tmp_path}{folder}")
            scripts[path] = content
    commands = {"/bin/aws": AWS, f"{HOME}/python/bin/python": PYTHON, **scripts}
    for path, content in commands.items():
        file = Path(f"{tmp_path}{path}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        file.chmod(0o755)
    for folder in (STATE, "/run/earshot", "/bucket"):
        Path(f"{tmp_path}{folder}").mkdir(parents=True)
    Path(f"{tmp_path}/run/earshot/instance").write_text("i-1\n")
    return Machine(tmp_path)


def test_without_an_order_nothing_is_done(machine: Machine) -> None:
    completed = machine.run("earshot-validate")
    assert completed.returncode == 0 and "there is no order yet" in completed.stdout
    assert machine.status is None and machine.reports() == []


def test_an_order_is_carried_out_once(machine: Machine) -> None:
    order = machine.order('{"id": 1}')
    completed = machine.run("earshot-validate")
    assert completed.returncode == 0 and "looking around" in completed.stdout, completed.stderr
    (dated_report,) = machine.bucket.glob("reports/dated/*")
    for key in (LATEST, answer_to(order), str(dated_report)):
        assert machine.document(key) == {"of": digest(order)}
    assert machine.status is not None
    assert (machine.status.state, machine.status.order) == ("ready", digest(order))
    (machine.bucket / LATEST).unlink()
    assert machine.run("earshot-validate").returncode == 0
    assert not (machine.bucket / LATEST).exists(), "it was carried out, and is not due"


def test_it_is_carried_out_again_when_due_and_another_at_once(machine: Machine) -> None:
    machine.order('{"id": 1}')
    machine.run("earshot-validate")
    (machine.bucket / LATEST).unlink()
    handled_mark = Path(f"{machine.root}{STATE}/handled")
    os.utime(handled_mark, (handled_mark.stat().st_mtime - 3700,) * 2)
    machine.run("earshot-validate")
    assert (machine.bucket / LATEST).exists()
    second_order = machine.order('{"id": 2}')
    machine.run("earshot-validate")
    assert machine.document(answer_to(second_order)) == {"of": digest(second_order)}


def test_what_cannot_be_carried_out_is_told_and_not_tried_every_minute(machine: Machine) -> None:
    order = machine.order('{"id": 1}')
    (machine.bucket / "unwell").touch()
    assert machine.run("earshot-validate").returncode == 0
    assert machine.status is not None and machine.status.ends(digest(order), "i-1")
    assert machine.status.detail == "it ended with status 2: looking around no memory"
    assert machine.reports() == []

    (machine.bucket / STATUS).unlink()
    machine.run("earshot-validate")
    assert machine.status is None


def test_what_is_said_is_one_line_of_json_whatever_is_in_it(machine: Machine) -> None:
    detail = 'a "quoted" \\ text\nof two lines\x1b[2J'
    assert machine.run("earshot-report", "failed", "", detail).returncode == 0
    assert machine.status is not None
    assert machine.status.detail == "a quoted  text of two lines [2J"
