"""Files of pulumi_aws one by one: the same classes as from the whole package, without the rest."""

import re
import subprocess
import sys
import tomllib

import pytest
from earshot_pulumi.aws.sdk import PACKAGES

from toolchain.paths import ROOT

SOURCES = "\n".join(
    path.read_text() for path in (ROOT / "components" / "earshot_pulumi" / "aws").glob("*.py")
)
USED = re.compile(r"\baws\.([a-z0-9]+)\.(\w+)(?=[,(\])])")

FRESH = """
import sys
import earshot_pulumi.aws
import pulumi_aws as aws

for package, name in {used}:
    getattr(getattr(aws, package), name)
print(sorted({{name for name in sys.modules if name.startswith("pulumi_aws.ec2.get_")}}))

volume, looked_up = aws.ebs.Volume, aws.ebs.get_volume
result, enum = aws.ebs.GetVolumeResult, aws.ssm.ParameterType
kept = (volume, looked_up, result, aws.ebs.VolumeArgs, aws.ebs.GetVolumeFilterArgs)
print(hasattr(aws.ebs, "Nothing"), "pulumi_aws.ebs.snapshot" in sys.modules)
again = (aws.ebs.Volume, aws.ebs.get_volume, aws.ebs.GetVolumeResult)
print(kept == (*again, aws.ebs.VolumeArgs, aws.ebs.GetVolumeFilterArgs), aws.ebs.outputs.__name__)
print(aws.ebs.__name__, looked_up.__module__, enum.__module__, aws.iam.Role.__module__)
try:
    aws.ebs.Nothing
except AttributeError as error:
    print(error)
"""

FIRST = """
import pulumi_aws
import earshot_pulumi.aws

print(type(pulumi_aws.ebs).__name__)
"""


def printed(program: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.splitlines()


def test_what_the_component_uses_loads_no_whole_package_and_is_the_same() -> None:
    used = sorted(set(USED.findall(SOURCES)))
    assert {package for package, _ in used} == set(PACKAGES)
    assert printed(FRESH.format(used=used)) == [
        "['pulumi_aws.ec2.get_subnet', 'pulumi_aws.ec2.get_vpc']",
        "False True",
        "True pulumi_aws.ebs.outputs",
        "pulumi_aws.ebs pulumi_aws.ebs.get_volume pulumi_aws.ssm._enums pulumi_aws.iam.role",
        "module 'pulumi_aws.ebs' has no attribute 'Nothing'",
    ]


IMPORTED = """
import earshot_pulumi.aws
import pulumi_aws as aws
import pulumi_aws.ebs.get_ebs_volumes

print(type(aws.ebs.get_ebs_volumes).__name__)
"""


@pytest.mark.parametrize(
    ("program", "type"), [(FIRST, "_LazyModule"), (IMPORTED, "function")],
    ids=["a package imported before", "a file imported after"],
)  # fmt: skip
def test_other_imports_keep_their_meaning(program: str, type: str) -> None:
    assert printed(program) == [type]


def test_types_of_the_packages_in_use_are_checked() -> None:
    """What mypy skips is of any type: it would pass every mistake in a package it does not read."""
    overrides = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["overrides"]
    normal = [it["module"] for it in overrides if it.get("follow_imports") == "normal"]
    (modules,) = (names for names in normal if "pulumi_aws" in names)
    packages = {name.split(".")[1] for name in modules if name.endswith(".*")}
    assert packages == set(PACKAGES)
    lookups = set(re.findall(r"\baws\.(get_\w+)\(", SOURCES))
    assert lookups == {name.split(".")[1] for name in modules if name.startswith("pulumi_aws.get_")}
