"""The content of the validator image, and the settings of this machine that reach its build."""

from __future__ import annotations

import io
import os
import re
import tarfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest
from docker.errors import APIError, DockerException, ImageNotFound

from earshot import __version__
from earshot.errors import EarshotError
from earshot.files import cache
from earshot.remote import image
from earshot.remote.image import (
    LABEL,
    PACKAGES_LABEL,
    context,
    digest_of,
    ensure_image,
    pip_settings,
    remove_old,
    trusted,
)
from tests.raised import raised

LONG_AGO = datetime.now(UTC) - timedelta(days=2)


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
    assert re.fullmatch("[0-9a-f]{12}", digest)
    assert digest == digest_of(dict(reversed(files.items())), "base")
    other_contents = [({"a": b"1"}, "base"), ({"a": b"1", "b": b"3"}, "base"), (files, "other")]
    other_contents += [({"a": b"1", "c": b"2"}, "base")]
    assert digest not in [digest_of(*other_content) for other_content in other_contents]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user whose pip has only the settings in `pip.conf` here."""
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
    settings = pip_settings({**os.environ, "PIP_INDEX_URL": "https://other.example/simple"})
    assert settings["cert"] == "/etc/ca.pem"
    assert settings["trusted-host"] == "mirror.example"
    assert settings["index-url"] == "https://other.example/simple"  # as for pip itself
    assert "proxy" not in settings


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
def test_the_build_trusts_the_authorities_of_pip(
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


def failed_step(lines: Sequence[Mapping[str, str]], events: list[str]) -> str:
    """The observed value of the error that ``lines`` of a build end with."""
    follow = partial(image._follow, cast(Any, iter(lines)), events.append)
    return raised(EarshotError, follow).observed


def test_a_step_that_fails_is_named_with_its_last_words() -> None:
    events: list[str] = []
    steps = ("Step 1/2 : FROM base\n", " ---> 0123\n", "Step 2/2 : RUN pip install\n")
    lines = [{"stream": text} for text in (*steps, "Could not find a version\n")]
    assert failed_step([*lines, {"error": "returned a non-zero code: 1"}], events) == (
        "step 2/2: RUN pip install failed: returned a non-zero code: 1\n"
        "    Could not find a version"
    )
    assert events == ["validator image, step 2/2: RUN pip install"]


def test_of_a_step_that_fails_the_last_eight_lines_are_told() -> None:
    lines = [{"status": f"line {number}\n\n"} for number in range(9)]
    reported = "".join(f"\n    line {number}" for number in range(1, 9))
    failure = f"the context failed: no space{reported}"
    assert failed_step([*lines, {"error": "no\n space"}], []) == failure


def test_a_package_that_no_lock_holds_is_named() -> None:
    with pytest.raises(EarshotError, match=r"^requirements\.lock: no entry for setuptools$"):
        image._entry(b"pip==1.0\n", b"setuptools")


def test_a_long_step_says_that_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter(range(0, 100, 6))
    monkeypatch.setattr("time.monotonic", lambda: float(next(moments)))
    messages: list[str] = []
    lines = [
        {"stream": "Step 1/1 : RUN pip"},
        *({"stream": f"line {number}"} for number in range(4)),
    ]
    image._follow(cast(Any, iter(lines)), messages.append)
    assert messages == ["validator image, step 1/1: RUN pip", "  line 1", "  line 3"]


def test_a_build_without_an_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter(range(0, 10_000_000, 10))
    monkeypatch.setattr("time.monotonic", lambda: float(next(moments)))
    endless = ({"stream": f"line {number}"} for number in count())
    error = raised(EarshotError, image._follow, cast(Any, endless), lambda text: None)
    first_line, *last_lines = error.observed.splitlines()
    assert first_line == f"the context failed: took more than {image.BUILD_SECONDS} s"
    assert len(last_lines) == 8


@dataclass
class ImageDouble:
    id: str
    labels: Mapping[str, str]
    tags: list[str] = field(default_factory=list)
    tagged: datetime = LONG_AGO

    @property
    def attrs(self) -> dict[str, Any]:
        moment = self.tagged.strftime("%Y-%m-%dT%H:%M:%S.123456789Z")
        tag_time = moment if self.tags else "0001-01-01T00:00:00Z"
        created = LONG_AGO if self.tags else self.tagged
        return {"Created": created.isoformat(), "Metadata": {"LastTagTime": tag_time}}


class ClientDouble:
    """An engine with images, of which some are in use."""

    def __init__(self, *found_images: ImageDouble, used_name: str = "") -> None:
        self.images = self
        self.found, self.used = found_images, used_name
        self.removed: list[str] = []

    def list(self, filters: Mapping[str, Any]) -> list[ImageDouble]:
        labelled_images = [
            image_double for image_double in self.found if filters["label"] in image_double.labels
        ]
        return (
            [image_double for image_double in labelled_images if not image_double.tags]
            if filters.get("dangling")
            else labelled_images
        )

    def remove(self, name: str) -> None:
        if name == self.used:
            raise APIError("conflict: in use")
        self.removed.append(name)


def test_unused_images_are_removed() -> None:
    name = "earshot-validator:0.1.0-"
    current_time = datetime.now(
        UTC
    )  # and not when the tests began, which may be more than an hour ago
    client = ClientDouble(
        ImageDouble("1", {LABEL: "new"}, [f"{name}new"]),
        ImageDouble("2", {LABEL: "old"}, [f"{name}old"]),
        ImageDouble("3", {LABEL: "used"}, [f"{name}used"]),
        ImageDouble("4", {LABEL: "mine"}, [f"{name}mine", "team/validator:1"]),
        ImageDouble("5", {LABEL: "recent"}, [f"{name}recent"], current_time),
        ImageDouble("6", {}, ["debian:12"]),
        ImageDouble("again", {LABEL: "new"}),
        ImageDouble("7", {PACKAGES_LABEL: "new"}),
        ImageDouble("8", {PACKAGES_LABEL: "old"}),
        ImageDouble("9", {PACKAGES_LABEL: "recent"}, tagged=current_time),
        ImageDouble("10", {PACKAGES_LABEL: "old"}, ["team/packages:1"]),
        used_name=f"{name}used",
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


def test_another_process_builds_the_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = image.context()  # of the real cache
    monkeypatch.setattr(image, "context", lambda: files)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    engine, messages, waits = BusyEngineDouble(), list[str](), threading.Event()

    def say(text: str) -> None:
        messages.append(text)
        waits.set()

    with ThreadPoolExecutor(1) as pool:
        with cache.exclusive(cache.root() / "docker" / "validator-image.lock"):
            future = pool.submit(ensure_image, cast(Any, engine), "base", say)
            assert waits.wait(120)
            engine.made.set()
        name = future.result(120)
    assert engine.wanted == [name, name]
    assert messages == [f"another run is making {name}: waiting for it"]


class BuilderDouble:
    """A double of an engine that lacks the image until it builds it, and records the calls."""

    def __init__(self, lines: Iterable[Any] = ()) -> None:
        self.images = self.api = self
        self.lines = lines
        self.steps: list[str] = []
        self.reported: dict[str, Any] = {}
        self.files: dict[str, bytes] = {}

    def get(self, name: str) -> None:
        raise ImageNotFound("no such image")

    def list(self, filters: Mapping[str, Any]) -> tuple[()]:
        self.steps.append(f"listed {filters['label']}")
        return ()

    def build(self, fileobj: io.BytesIO, **reported: Any) -> BuilderDouble:
        self.steps.append("built")
        self.reported = reported
        with tarfile.open(fileobj=fileobj) as archive:
            for member in archive.getmembers():
                content = archive.extractfile(member)
                assert content is not None and member.mode == 0o644
                self.files[member.name] = content.read()
        return self

    def __iter__(self) -> Iterator[Any]:
        for line in self.lines:
            if isinstance(line, Exception):
                raise line
            yield line

    def close(self) -> None:
        self.steps.append("closed")


FILES = {"Dockerfile": b"1", "builders.lock": b"2", "requirements.lock": b"3", "app/a.py": b"4"}
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The settings of pip on this machine."""
    reported: dict[str, str] = {}
    monkeypatch.setattr(image, "context", lambda: FILES)
    monkeypatch.setattr(image, "pip_settings", lambda: reported)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in (*PROXIES, "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    return reported


def test_an_image_that_is_not_there_is_made(machine: dict[str, str]) -> None:
    engine, messages = BuilderDouble([{"stream": "Step 1/1 : RUN pip"}]), list[str]()
    digest = digest_of(FILES, "base")
    name = f"earshot-validator:{__version__}-{digest}"
    assert ensure_image(cast(Any, engine), "base", messages.append) == name
    assert messages == [
        f"{name} is not on the engine yet: making it, which takes minutes the first time",
        "validator image, step 1/1: RUN pip",
    ]
    assert engine.steps == ["built", "closed", f"listed {LABEL}", f"listed {PACKAGES_LABEL}"]
    packages = {key: content for key, content in FILES.items() if key != "app/a.py"}
    assert engine.reported == {
        "custom_context": True,
        "tag": name,
        "buildargs": {"BASE": "base", "PACKAGES": digest_of(packages, "base")},
        "labels": {LABEL: digest},
        "network_mode": "host",
        "rm": True,
        "forcerm": True,
        "decode": True,
        "timeout": image.SILENT_SECONDS,
    }
    assert engine.files == {**FILES, "trust/ca.pem": b""}


def test_packages_come_the_way_that_this_machine_gets_them(
    machine: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ca.pem").write_bytes(b"certificate")
    pip_settings = {
        "index-url": ("PIP_INDEX_URL", "https://mirror.example/simple"),
        "extra-index-url": ("PIP_EXTRA_INDEX_URL", "https://other.example/simple"),
        "trusted-host": ("PIP_TRUSTED_HOST", "mirror.example"),
        "timeout": ("PIP_DEFAULT_TIMEOUT", "60"),
    }
    machine |= {key: value for key, (_, value) in pip_settings.items()}
    machine |= {"cert": str(tmp_path / "ca.pem"), "no-color": "true"}
    for name in PROXIES:
        monkeypatch.setenv(name, f"of {name}")
    engine = BuilderDouble()
    ensure_image(cast(Any, engine), "base")
    arguments = engine.reported["buildargs"]
    del arguments["BASE"], arguments["PACKAGES"]
    assert arguments == dict(pip_settings.values()) | {name: f"of {name}" for name in PROXIES}
    assert engine.files["trust/ca.pem"] == b"certificate"
    del machine["timeout"]
    machine["default-timeout"] = "30"
    ensure_image(cast(Any, engine), "base")
    assert engine.reported["buildargs"]["PIP_DEFAULT_TIMEOUT"] == "30"


@pytest.mark.parametrize(
    ("error", "observed"),
    [
        (DockerException("no space left"), "the engine failed: no space left"),
        (TimeoutError("timed out"), "the engine failed: stopped answering (timed out)"),
    ],
)
def test_a_build_fails(error: Exception, observed: str, machine: dict[str, str]) -> None:
    engine = BuilderDouble([{"stream": "Step 1/1 : RUN pip"}, error])
    assert raised(EarshotError, ensure_image, cast(Any, engine), "base").observed == observed
    assert engine.steps == ["built", "closed"]
