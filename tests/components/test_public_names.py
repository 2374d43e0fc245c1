"""What `from earshot_pulumi import ...` offers, and what it says where an extra is missing."""

import importlib
import subprocess
import sys

import earshot_pulumi
import pytest

from earshot.errors import EarshotError
from earshot.extras import needed_for
from tests.raised import raised


@pytest.mark.parametrize("name", earshot_pulumi.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(earshot_pulumi, name).__name__ == name


def test_another_name_is_refused() -> None:
    with pytest.raises(ImportError, match="cannot import name 'Listener'"):
        exec("from earshot_pulumi import Listener")


def test_no_sdk_of_a_cloud_is_imported_unasked() -> None:
    code = (
        "import sys; from earshot_pulumi import *; "
        "print([n for n in ('boto3', 'docker', 'pulumi_aws', 'pulumi_docker') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_pulumi(name: str) -> None:
        raise ModuleNotFoundError("No module named 'pulumi'", name="pulumi")

    monkeypatch.setattr(earshot_pulumi, "import_module", without_pulumi)
    assert str(raised(ImportError, exec, "from earshot_pulumi import Proof")) == (
        "Proof needs the package pulumi, which is not installed; fix: pip install 'earshot[deploy]'"
    )


def test_a_component_names_the_extra_that_it_lacks() -> None:
    with pytest.raises(EarshotError) as caught, needed_for("AwsNetwork"):
        raise ModuleNotFoundError("No module named 'pulumi_aws.ec2'", name="pulumi_aws.ec2")
    assert caught.value.line == (
        "AwsNetwork: needs the package pulumi_aws.ec2, which is not installed; "
        "fix: pip install 'earshot[aws]'"
    )


def test_another_missing_module_is_a_fault() -> None:
    with pytest.raises(ModuleNotFoundError), needed_for("AwsNetwork"):
        importlib.import_module("earshot_pulumi.no_such_module")
