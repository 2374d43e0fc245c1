"""Certificates on this machine: what a node runs with stays when they are regenerated."""

from pathlib import Path
from typing import Any

import pytest
from earshot_pulumi.certificates import CertificatesKind
from earshot_pulumi.local.kinds import LocalCertificatesKind

from earshot.listeners.properties import read_properties
from tests.components.called import Called


def test_nodes_keep_their_files_before_they_are_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: earshot\n")
    monkeypatch.chdir(tmp_path)
    root = tmp_path / ".earshot" / "stacks" / "s" / "kafka"
    store, settings = root / "node-1.pem", root / "node-1" / "server.properties"
    settings.parent.mkdir(parents=True)
    store.write_text("old")
    settings.write_text(f"ssl.keystore.location={store}\n")

    def apply(_self: object, _operation: object, _olds: object, news: dict[str, str]) -> Any:
        store.write_text("new")
        return news

    monkeypatch.setattr(CertificatesKind, "apply", apply)
    props = {"root": str(root)}
    assert Called(LocalCertificatesKind()).update({}, props).outs == props
    own = read_properties(settings.read_text()).values["ssl.keystore.location"]
    assert Path(own).read_text() == "old"
