"""A Pulumi CLI with this project's language host."""

import sys
from pathlib import Path

import pytest

from language_host.tests.workspace import Workspace
from toolchain.pulumi_cli import installation, wrapper


@pytest.fixture(scope="session")
def pulumi_bin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The set-up's CLI together with our wrappers, run by the Python that runs the tests."""
    directory = tmp_path_factory.mktemp("cli") / "bin"
    wrapper.install(installation.recorded().directory, directory, python=Path(sys.executable))
    return directory


@pytest.fixture
def workspace(tmp_path: Path, pulumi_bin: Path) -> Workspace:
    (tmp_path / "state").mkdir()
    return Workspace(tmp_path, pulumi_bin)
