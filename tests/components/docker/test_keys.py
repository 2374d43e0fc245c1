"""Key stores on engines: what is written where, and when it is written again."""

import functools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import APIError, DockerException, NotFound
from earshot_pulumi.docker import labels, throwaway
from earshot_pulumi.docker.container_address import Engines
from earshot_pulumi.docker.keys import DockerKeysKind, with_versions
from earshot_pulumi.docker.put_back import FOLDER
from earshot_pulumi.provider.kind import UNKNOWN

from earshot.config.docker_host import DockerHost
from earshot.errors import EarshotError
from earshot.listeners.security import AUTHORITY, TRUSTED
from earshot.placement.node_container import KEYS
from tests.components.called import Called
from tests.raised import raised


class EngineDouble:
    """Records the creation time of each volume, and the files written into it."""

    def __init__(self) -> None:
        self.volumes: dict[str, Any] = {"keys": "monday"}
        self.written: list[tuple[str, str, dict[str, str]]] = []
        self.variables: list[str] = []
        """Of the one container that has the volume."""
        self.kept_names: list[str] = []
        self.api = SimpleNamespace(inspect_volume=self._inspect)
        self.containers = SimpleNamespace(list=self._containers)

    def _containers(self, **options: Any) -> list[Any]:
        assert options["filters"] == {"volume": "keys"}
        return [SimpleNamespace(attrs={"Config": {"Env": self.variables}})]

    def _inspect(self, name: str) -> dict[str, str]:
        creation = self.volumes.get(name, NotFound(name))
        if isinstance(creation, Exception):
            raise creation
        return {"CreatedAt": creation}

    def fill(
        self,
        image: str,
        volume: str,
        folder: str,
        files: Mapping[str, str],
        keep: Callable[[str], bool],
    ) -> None:
        assert image == "sha256:abc"
        self.written.append((volume, folder, dict(files)))
        self.kept_names = [
            name for name in ("node-1.pem", "old-node-1.pem", "older-ca.pem") if keep(name)
        ]


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> EngineDouble:
    double = EngineDouble()
    monkeypatch.setattr(Engines, "of", lambda self, host: double)
    monkeypatch.setattr(
        throwaway, "fill", lambda client, *args, **kwargs: client.fill(*args, **kwargs)
    )
    return double


@pytest.fixture
def props(root: Path) -> dict[str, Any]:
    (root / "security").mkdir(parents=True)
    (root / "security" / AUTHORITY).write_text("authority")
    (root / "security" / "node-1.pem").write_text("key and certificate")
    return {
        "host": DockerHost(external="a").model_dump(mode="json"),
        "volume": "keys",
        "folder": "/secrets",
        "image": "sha256:abc",
        "store": "node-1",
        "certificate": "print",
        "root": str(root),
    }


KIND = Called(DockerKeysKind())


def test_a_node_gets_its_own_key_store_and_the_authority(
    engine: EngineDouble, props: dict[str, Any]
) -> None:
    outs = KIND.create(props).outs
    files = {"print-ca.pem": "authority", "print-node-1.pem": "key and certificate"}
    assert engine.written == [("keys", "/secrets", files)]
    assert outs == {**props, "made": "monday", "files": sorted(files)}
    assert KIND.differs(outs, props) is False


def test_trusted_certificates_get_both_file_names(
    engine: EngineDouble, props: dict[str, Any]
) -> None:
    (Path(props["root"]) / "security" / TRUSTED).write_text("both")
    KIND.create(props)
    names = {AUTHORITY: "both", TRUSTED: "both", "node-1.pem": "key and certificate"}
    files = {f"print-{name}": text for name, text in names.items()}
    assert engine.written == [("keys", "/secrets", files)]


def test_files_named_by_containers_are_kept(engine: EngineDouble, props: dict[str, Any]) -> None:
    KIND.create(props)
    assert engine.kept_names == []
    engine.variables = ["A=b", "KAFKA_SSL_KEYSTORE_LOCATION=/secrets/old-node-1.pem"]
    KIND.create(props)
    assert engine.kept_names == ["old-node-1.pem"]
    folder = Path(props["root"]).parent / FOLDER
    folder.mkdir()
    before = {"Config": {"Env": ["KAFKA_SSL_TRUSTSTORE_LOCATION=/secrets/older-ca.pem"]}}
    (folder / "kafka-1.json").write_text(json.dumps(before))
    (folder / "kafka-2.json").write_text("[]")
    KIND.create(props)
    assert engine.kept_names == ["old-node-1.pem", "older-ca.pem"]


def test_files_of_an_earlier_release_are_written_again_by_their_new_names(
    engine: EngineDouble, props: dict[str, Any]
) -> None:
    outs = KIND.create(props).outs
    del outs["files"]
    assert KIND.differs(outs, props)


def test_a_container_names_the_files_of_its_certificate() -> None:
    variables = {"KAFKA_SSL_KEYSTORE_LOCATION": f"{KEYS}/node-1.pem", "KAFKA_LOG_DIRS": "/data"}
    assert with_versions(variables, "0123456789abcdef") == {
        "KAFKA_SSL_KEYSTORE_LOCATION": f"{KEYS}/0123456789ab-node-1.pem",
        "KAFKA_LOG_DIRS": "/data",
    }


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("certificate", "other"),
        ("certificate", UNKNOWN),
        ("image", "other"),
        ("volume", "other"),
        ("folder", "other"),
        ("store", "other"),
    ],
)
def test_inputs_that_decide_the_files_write_them_again(
    engine: EngineDouble, props: dict[str, Any], key: str, value: object
) -> None:
    assert KIND.differs(KIND.create(props).outs, {**props, key: value})


def test_a_volume_that_was_created_again_is_filled_again(
    engine: EngineDouble, props: dict[str, Any]
) -> None:
    outs = KIND.create(props).outs
    engine.volumes["keys"] = "tuesday"
    assert KIND.differs(outs, props)
    assert KIND.update(outs, props).outs == {
        **props,
        "made": "tuesday",
        "files": outs["files"],
    }
    del engine.volumes["keys"]
    assert KIND.differs(outs, props)


def test_an_engine_that_does_not_tell_is_an_error(
    engine: EngineDouble, props: dict[str, Any]
) -> None:
    outs = KIND.create(props).outs
    engine.volumes["keys"] = DockerException("stopped")
    error = raised(EarshotError, KIND.differs, outs, props)
    assert error.object == "volume keys"
    assert "fails (stopped)" in error.observed


def test_a_key_store_that_is_lost_is_named(engine: EngineDouble, props: dict[str, Any]) -> None:
    (Path(props["root"]) / "security" / "node-1.pem").unlink()
    with pytest.raises(EarshotError, match=r"node-1\.pem: cannot be read"):
        KIND.create(props)
    assert engine.written == []


def test_keys_that_cannot_be_written_are_named(
    engine: EngineDouble, props: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **more: object) -> None:
        raise throwaway.CommandFailed(
            "a container of the image x", observed="no space left on device"
        )

    monkeypatch.setattr(engine, "fill", full)
    assert str(raised(EarshotError, KIND.create, props)).strip() == (
        "keys of node-1 in volume keys on Docker host local: cannot be written: a container of the "
        "image x: no space left on device\n  fix: check that the engine runs and has space, then "
        "run the same command again"
    )


def test_a_container_that_was_never_started_lets_the_volume_go(
    monkeypatch: pytest.MonkeyPatch, engine: EngineDouble, props: dict[str, Any]
) -> None:
    removed: list[str] = []

    def remove(name: str, force: bool, v: bool) -> None:
        removed.append(name)
        if name == "a":
            raise APIError("409")

    throwaway = {labels.THROWAWAY: "yes"}

    def listed(*, all: bool, filters: dict[str, str], ignore_removed: bool) -> list[Any]:
        assert all and ignore_removed
        assert filters == {"label": labels.THROWAWAY, "volume": "keys"}
        return [
            SimpleNamespace(remove=functools.partial(remove, name), attrs={"Labels": own})
            for name, own in (("a", throwaway), ("b", throwaway), ("an engine's own", None))
        ]

    monkeypatch.setattr(engine, "containers", SimpleNamespace(list=listed), raising=False)
    KIND.delete(props)
    assert removed == ["a", "b"]


@pytest.mark.parametrize(
    "reason", [EarshotError("Docker engine", observed="does not answer"), TypeError("null")]
)
def test_an_engine_that_is_gone_or_answers_strangely_holds_no_removal_up(
    monkeypatch: pytest.MonkeyPatch, props: dict[str, Any], reason: Exception
) -> None:
    def gone(_self: Engines, host: DockerHost) -> None:
        raise reason

    monkeypatch.setattr(Engines, "of", gone)
    KIND.delete(props)
