"""A stack's folder, and the inputs of its certificates as Pulumi hands them over."""

from pathlib import Path
from typing import Any

import pytest


def cluster_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder, yet to be created, of stack `s` in a project that is the working directory."""
    (tmp_path / "Pulumi.yaml").write_text("name: earshot\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path / ".earshot" / "stacks" / "s" / "kafka"


def certificate_inputs(root: Path, **changes: Any) -> dict[str, Any]:
    """All numbers are floats."""
    return {
        "stack": "s",
        "root": str(root),
        "hosts": {"node-1": ["localhost"]},
        "users": ["validator", "app"],
        "mechanism": "SCRAM-SHA-512",
        "days": 90.0,
        "renew_days": 30.0,
        **changes,
    }
