"""Finding the providers among installed packages."""

import json
import sys
from pathlib import Path

import pytest
from pulumi_python_host import dependencies, provider_packages
from pulumi_python_host.interpreter import Interpreter


def install(site: Path, name: str, plugin: object, record: bool = True) -> None:
    package, info = site / name, site / f"{name}-1.2.3.dist-info"
    package.mkdir()
    info.mkdir()
    (package / "pulumi-plugin.json").write_text(json.dumps(plugin))
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2.3\n")
    if record:
        (info / "RECORD").write_text(f"{name}/pulumi-plugin.json,,\n{name}/__init__.py,,\n")


def test_only_resource_providers_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "pulumi_one", {"resource": True})
    install(tmp_path, "pulumi_two", {"resource": True, "name": "deux", "version": "9.0.0"})
    install(tmp_path, "pulumi_policy", {"resource": False, "name": "policy"})
    install(tmp_path, "pulumi_broken", "no object")
    install(tmp_path, "pulumi_unrecorded", {"resource": True}, record=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert provider_packages.find() == [
        {"name": "deux", "version": "9.0.0", "server": ""},
        {"name": "one", "version": "1.2.3", "server": ""},
    ]


def test_packages_of_another_interpreter_are_found(tmp_path: Path) -> None:
    install(tmp_path, "pulumi_one", {"resource": True})
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    packages = dependencies.find_packages(Interpreter(str(python), tmp_path))
    assert {"name": "one", "version": "1.2.3", "server": ""} in packages


def test_an_interpreter_that_does_not_run_has_no_packages(tmp_path: Path) -> None:
    assert dependencies.find_packages(Interpreter("/nowhere/python", tmp_path)) == []
