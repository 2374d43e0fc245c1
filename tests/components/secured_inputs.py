"""A stack's folder, the inputs of its certificates as Pulumi hands them over, and certificates."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from earshot.certificates.authority import Subject, issue, new_authority


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


def key_store(days: int, host: str = "localhost") -> str:
    """A certificate that ends in ``days``, or ended before that many, with its key, as PEM."""
    made = datetime.now(UTC) - timedelta(days=10)
    pair = issue(new_authority("s", made), Subject("node", "s"), [host], 10 + days, made)
    return pair.certificate + pair.key
