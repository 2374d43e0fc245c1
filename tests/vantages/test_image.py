"""What goes into the validator image, and what of this machine reaches its build."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from docker.errors import APIError, ImageNotFound

from earshot import cache
from earshot.errors import EarshotError
from earshot.vantages import image
from earshot.vantages.image import (
    LABEL,
    PACKAGES_LABEL,
    context,
    digest_of,
    ensure_image,
    pip_settings,
    remove_old,
    trusted,
)

NOW = datetime.now(UTC)
LONG_AGO = NOW - timedelta(days=2)


def test_the_context_holds_the_library_its_jars_and_its_locks() -> None:
    files = context()
    assert {"Dockerfile", "requirements.lock", "builders.lock"} <= files.keys()
    assert "app/earshot/__main__.py" in files and "app/earshot/report/report.html.j2" in files
    assert not [path for path in files if path.endswith(".pyc")]
    assert any(path.startswith("jars/spark-sql-kafka") for path in files)
    assert re.fullmatch(
        rb"setuptools==[\w.]+ \\\n(    --hash=sha256:\w+( \\)?\n)+", files["builders.lock"]
    )


def test_the_digest_tells_what_is_in_the_image() -> None:
    files = {"a": b"1", "b": b"2"}
    digest = digest_of(files, "base")
    assert digest == digest_of(dict(reversed(files.items())), "base")
    others = [({"a": b"1"}, "base"), ({"a": b"1", "b": b"3"}, "base"), (files, "other")]
    others += [({"a": b"1", "c": b"2"}, "base")]
    assert digest not in [digest_of(*other) for other in others]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user whose pip is told nothing but what stands in `pip.conf` here."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    monkeypatch.setenv("HOME", str(tmp_path))
    yield tmp_path


def test_pip_is_asked_what_it_is_told(home: Path) -> None:
    (home / "pip.conf").write_text(
        "[global]\ncert = /etc/ca.pem\nindex-url = https://mirror.example/simple\n"
        "[install]\ntrusted-host = mirror.example\n[download]\nproxy = nobody\n"
    )
    environment = {**os.environ, "PIP_INDEX_URL": "https://other.example/simple"}
    found = pip_settings(environment)
    assert found["cert"] == "/etc/ca.pem"
    assert found["trusted-host"] == "mirror.example"
    assert found["index-url"] == "https://other.example/simple"  # as for pip itself
    assert "proxy" not in found


@pytest.mark.parametrize(
    ("settings", "environment", "expected"),
    [
        ({"cert": "one"}, {"SSL_CERT_FILE": "two"}, b"1"),
        ({}, {"SSL_CERT_FILE": "two"}, b"2"),
        ({}, {"REQUESTS_CA_BUNDLE": "one"}, b"1"),
        ({"cert": "none"}, {"REQUESTS_CA_BUNDLE": "two"}, b"2"),
        ({}, {}, b""),
    ],
)
def test_the_build_trusts_whom_pip_trusts(
    settings: Mapping[str, str],
    environment: Mapping[str, str],
    expected: bytes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one").write_bytes(b"1")
    Path("two").write_bytes(b"2")
    assert trusted(settings, environment) == expected


def test_a_step_that_fails_is_named_with_its_last_words() -> None:
    said: list[str] = []
    lines = [
        {"stream": "Step 1/2 : FROM base\n"},
        {"stream": " ---> 0123\n"},
        {"stream": "Step 2/2 : RUN pip install\n"},
        {"stream": "Could not find a version\n"},
        {"error": "returned a non-zero code: 1"},
    ]
    with pytest.raises(EarshotError) as caught:
        image._follow(cast(Any, iter(lines)), said.append)
    assert caught.value.observed == (
        "step 2/2: RUN pip install failed: returned a non-zero code: 1\n"
        "    Could not find a version"
    )
    assert said == ["validator image, step 2/2: RUN pip install"]


def test_a_long_step_says_that_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter(range(0, 100, 6))
    monkeypatch.setattr("time.monotonic", lambda: float(next(moments)))
    said: list[str] = []
    lines = [{"stream": "Step 1/1 : RUN pip"}, *({"stream": f"line {n}"} for n in range(4))]
    image._follow(cast(Any, iter(lines)), said.append)
    assert said == ["validator image, step 1/1: RUN pip", "  line 1", "  line 3"]


@dataclass
class ImageDouble:
    id: str
    labels: Mapping[str, str]
    tags: list[str] = field(default_factory=list)
    tagged: datetime = LONG_AGO

    @property
    def attrs(self) -> dict[str, Any]:
        moment = self.tagged.strftime("%Y-%m-%dT%H:%M:%S.123456789Z")
        named = moment if self.tags else "0001-01-01T00:00:00Z"
        created = LONG_AGO if self.tags else self.tagged
        return {"Created": created.isoformat(), "Metadata": {"LastTagTime": named}}


class ClientDouble:
    """An engine with images, of which some are in use."""

    def __init__(self, *found: ImageDouble, used: str = "") -> None:
        self.images = self
        self.found, self.used = found, used
        self.removed: list[str] = []

    def list(self, filters: Mapping[str, Any]) -> list[ImageDouble]:
        known = [it for it in self.found if filters["label"] in it.labels]
        return [it for it in known if not it.tags] if filters.get("dangling") else known

    def remove(self, name: str) -> None:
        if name == self.used:
            raise APIError("conflict: in use")
        self.removed.append(name)


def test_images_that_nobody_asks_for_any_more_are_removed() -> None:
    name = "earshot-validator:0.1.0-"
    client = ClientDouble(
        ImageDouble("1", {LABEL: "new"}, [f"{name}new"]),
        ImageDouble("2", {LABEL: "old"}, [f"{name}old"]),
        ImageDouble("3", {LABEL: "used"}, [f"{name}used"]),
        ImageDouble("4", {LABEL: "mine"}, [f"{name}mine", "team/validator:1"]),
        ImageDouble("5", {LABEL: "recent"}, [f"{name}recent"], NOW),
        ImageDouble("6", {}, ["debian:12"]),
        ImageDouble("again", {LABEL: "new"}),
        ImageDouble("7", {PACKAGES_LABEL: "new"}),
        ImageDouble("8", {PACKAGES_LABEL: "old"}),
        ImageDouble("9", {PACKAGES_LABEL: "recent"}, tagged=NOW),
        used=f"{name}used",
    )
    assert remove_old(cast(Any, client), "new", "new") == [f"{name}old", "again", "8"]
    assert client.removed == [f"{name}old", "again", "8"]


class BusyEngineDouble:
    """An engine that has the image once another process has made it; it cannot build one."""

    def __init__(self) -> None:
        self.images = self
        self.made = threading.Event()
        self.wanted: list[str] = []

    def get(self, name: str) -> BusyEngineDouble:
        self.wanted.append(name)
        if not self.made.is_set():
            raise ImageNotFound("no such image")
        return self

    def tag(self, name: str) -> None:
        assert name == self.wanted[-1]


def test_an_image_that_another_process_makes_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = image.context()  # of the real cache
    monkeypatch.setattr(image, "context", lambda: files)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    engine, said, waits = BusyEngineDouble(), list[str](), threading.Event()

    def say(text: str) -> None:
        said.append(text)
        waits.set()

    with ThreadPoolExecutor(1) as pool:
        with cache.exclusive(cache.root() / "docker" / "validator-image.lock"):
            asked = pool.submit(ensure_image, cast(Any, engine), "base", say)
            assert waits.wait(20)
            engine.made.set()
        name = asked.result(20)
    assert engine.wanted == [name, name]
    assert said == [f"another run is making {name}: waiting for it"]
