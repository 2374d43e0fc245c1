"""Pulumi's language host for YAML, built once per user from its published Go module."""

import os
import subprocess
import sys
from pathlib import Path

from earshot.files import cache
from toolchain.pulumi_cli import go

VERSION = "1.25.0"
MODULE = f"github.com/pulumi/pulumi-yaml/cmd/pulumi-language-yaml@v{VERSION}"
NAME = "pulumi-language-yaml"


def ensure_yaml_host() -> Path:
    """The folder of the executable, which is built at first in two minutes."""

    def make(new_folder: Path) -> None:
        compiler = go.ensure(Path(sys.executable))
        environment = os.environ | {"GOBIN": str(new_folder), "CGO_ENABLED": "0"}
        subprocess.run([compiler, "install", MODULE], env=environment, check=True, timeout=600)

    return cache.ensure(cache.root() / f"{NAME}-{VERSION}", make, _is_complete)


def _is_complete(folder: Path) -> bool:
    return os.access(folder / NAME, os.X_OK)
