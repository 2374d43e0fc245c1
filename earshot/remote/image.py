"""Builds the validator image from the installed earshot, on the engine that needs it.

Its tag is the version and a digest of the build context, so an image is never outdated. The build
uses the index, mirror and certificates of this machine's pip; the image does not contain them. A
validator on an instance runs a bundle of the same files.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import os
import re
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import earshot
from earshot.engine.connection import MAX_SHOWN, DockerObject, root_cause
from earshot.errors import EarshotError
from earshot.files import cache
from earshot.jvm.jars import spark_connector_jars
from earshot.listeners.listed import clipped
from earshot.remote.archive import archive

if TYPE_CHECKING:
    import docker

NAME: Final = "earshot-validator"
LABEL: Final = "earshot.validator"
"""The label of every validator image; its value is the digest."""
PACKAGES_LABEL: Final = "earshot.validator.packages"
"""The label of the untagged image with the packages; its value is the digest of their inputs."""
SILENT_SECONDS: Final = 900
"""Time limit for a step of the build without output."""
BUILD_SECONDS: Final = 3600
"""Time limit for a whole build; a slow machine needs some minutes."""
MAX_LINES: Final = 100
"""The maximum number of lines of a step that are kept for an error."""
SAY_SECONDS: Final = 10.0
"""Seconds after which a running step prints progress."""
PIP_SECONDS: Final = 20
IDLE_SECONDS: Final = 3600
"""Seconds without use after which no starting run can need an image."""
_PACKAGE: Final = Path(earshot.__file__).parent
_FOLDER: Final = Path(__file__).parent
_PROXIES: Final = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
_DECIDE_PACKAGES: Final = ("Dockerfile", "builders.lock", "requirements.lock")
_CERTIFICATES: Final = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
_PASSED_ON: Final = {
    "index-url": "PIP_INDEX_URL",
    "extra-index-url": "PIP_EXTRA_INDEX_URL",
    "trusted-host": "PIP_TRUSTED_HOST",
    "timeout": "PIP_DEFAULT_TIMEOUT",
    "default-timeout": "PIP_DEFAULT_TIMEOUT",
}
_SECTIONS: Final = ("global", "install", ":env:")
"""Sections of pip's settings; a later one overrides an earlier one."""
_STEP: Final = re.compile(r"Step (\d+/\d+) : (\w+) ?(.*)")

Files = Mapping[str, bytes]
Say = Callable[[str], None]


def ensure_image(client: docker.DockerClient, base: str, say: Say = lambda text: None) -> str:
    """The name of the validator image on the engine of ``client``, built on ``base`` if missing.

    The first build takes minutes. One process of this machine builds, others wait; then unused
    older images are removed. Raises EarshotError with the failed step.
    """
    files = context()
    digest = digest_of(files, base)
    name = f"{NAME}:{earshot.__version__}-{digest}"
    if _has_image(client, name):
        return name
    lock = cache.root() / "docker" / "validator-image.lock"
    with cache.exclusive(lock, lambda: say(f"another run is making {name}: waiting for it")):
        if _has_image(client, name):
            return name
        say(f"{name} is not on the engine yet: making it, which takes minutes the first time")
        packages = packages_digest(files, base)
        _build(client, name, {LABEL: digest}, {"BASE": base, "PACKAGES": packages}, files, say)
        remove_old(client, digest, packages)
    return name


def _has_image(client: docker.DockerClient, name: str) -> bool:
    from docker.errors import ImageNotFound

    try:
        client.images.get(name).tag(name)  # counts as a use: see IDLE_SECONDS
    except ImageNotFound:
        return False
    return True


@functools.cache
def context() -> Files:
    """The files of the build by path, without the settings of this machine."""
    lock = (_FOLDER / "requirements.lock").read_bytes()
    files = {"Dockerfile": (_FOLDER / "Dockerfile").read_bytes(), "requirements.lock": lock}
    files["builders.lock"] = _entry(lock, b"setuptools")
    for path in sorted(_PACKAGE.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            files[f"app/earshot/{path.relative_to(_PACKAGE).as_posix()}"] = path.read_bytes()
    for jar in spark_connector_jars():
        files[f"jars/{jar.name}"] = jar.read_bytes()
    return files


def digest_of(files: Files, base: str) -> str:
    """The digest of an image's contents, as twelve hexadecimal digits."""
    summed = hashlib.sha256(base.encode())
    for path in sorted(files):
        summed.update(f"\0{path}\0".encode() + hashlib.sha256(files[path]).digest())
    return summed.hexdigest()[:12]


def packages_digest(files: Files, base: str) -> str:
    """The digest of the inputs of the packages, the value of `PACKAGES_LABEL`."""
    return digest_of({key: files[key] for key in _DECIDE_PACKAGES}, base)


def remove_old(client: docker.DockerClient, digest: str, packages: str) -> list[str]:
    """Removes unused validator images of other digests, and their package stages.

    Returns the names of removed images. Images with a foreign tag are kept.
    """
    from docker.errors import APIError

    old_names: list[str] = []
    for image in client.images.list(filters={"label": LABEL}):
        ours = all(tag.startswith(f"{NAME}:") for tag in image.tags)
        current = image.labels[LABEL] == digest and image.tags
        if ours and not current and _idle(image.attrs):
            # two builds of one digest at the same time leave an image without a tag
            old_names += image.tags or [image.id]
    for image in client.images.list(filters={"label": PACKAGES_LABEL, "dangling": True}):
        if image.labels[PACKAGES_LABEL] != packages and _idle(image.attrs):
            old_names.append(image.id)
    removed_names = []
    for name in old_names:
        with contextlib.suppress(APIError):  # a container uses it
            client.images.remove(name)
            removed_names.append(name)
    return removed_names


def _idle(about: DockerObject) -> bool:
    """True if an image was built, and last tagged, more than `IDLE_SECONDS` ago."""
    dates = (about["Created"], about.get("Metadata", {}).get("LastTagTime", ""))
    times = [datetime.fromisoformat(f"{text[:19]}+00:00") for text in dates if len(text) >= 19]
    return datetime.now(UTC) - max(times) > timedelta(seconds=IDLE_SECONDS)


def pip_settings(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The settings of this machine's pip, from files and variables, by option."""
    try:
        listing = subprocess.run(
            [sys.executable, "-m", "pip", "config", "list"],
            check=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PIP_SECONDS,
            env={**environment, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        ).stdout
    except (OSError, subprocess.SubprocessError):
        listing = ""
    settings: dict[str, dict[str, str]] = {section: {} for section in _SECTIONS}
    for line in listing.splitlines():
        key, _, value = line.partition("=")
        section, _, option = key.rpartition(".")
        if section in settings and (plain := value.strip().strip("'\"")):
            settings[section][option.replace("_", "-")] = plain
    return {key: value for section in settings.values() for key, value in section.items()}


def trusted(settings: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> bytes:
    """The certificates in the settings of this machine's pip; empty without any."""
    certificate_files = [
        settings.get("cert", ""),
        *(environment.get(name, "") for name in _CERTIFICATES),
    ]
    for name in filter(None, certificate_files):
        with contextlib.suppress(OSError):
            return Path(name).read_bytes()
    return b""


def _entry(lock: bytes, name: bytes) -> bytes:
    """The entry of one package in a lock file, hashes included."""
    match = re.search(rb"^%s==.*?(?=^\S|\Z)" % name, lock, re.MULTILINE | re.DOTALL)
    if match is None:
        raise EarshotError("requirements.lock", observed=f"no entry for {name.decode()}")
    return match[0]


def _build(
    client: docker.DockerClient,
    name: str,
    labels: dict[str, str],
    arguments: dict[str, str],
    files: Files,
    say: Say,
) -> None:
    from docker.errors import DockerException

    settings = pip_settings()
    arguments |= {
        argument: settings[key] for key, argument in _PASSED_ON.items() if key in settings
    }
    arguments |= {key: os.environ[key] for key in _PROXIES if key in os.environ}
    stream = client.api.build(
        fileobj=io.BytesIO(archive({**files, "trust/ca.pem": trusted(settings)})),
        custom_context=True,
        tag=name,
        buildargs=arguments,
        labels=labels,
        network_mode="host",  # to reach the same package index as this machine
        rm=True,
        forcerm=True,
        decode=True,
        timeout=SILENT_SECONDS,
    )
    try:
        _follow(stream, say)
    except (DockerException, OSError) as reason:  # an OSError is a lost connection
        why = root_cause(reason)
        is_connection_lost = not isinstance(reason, DockerException)
        why = f"stopped answering ({why})" if is_connection_lost else why
        raise _build_error("the engine", why, []) from None
    finally:
        stream.close()  # an interrupted build ends with its connection


def _follow(stream: Generator[DockerObject, None, None], say: Say) -> None:
    """Prints each step when it begins, and the last line of a long step. Raises EarshotError for a
    failed step."""
    step, lines = "the context", deque([""], MAX_LINES)
    begin = last_progress = time.monotonic()
    for event in stream:
        now = time.monotonic()
        if now - begin > BUILD_SECONDS:
            raise _build_error(step, f"took more than {BUILD_SECONDS} s", lines)
        text = str(event.get("stream") or event.get("status") or "").strip()
        if error := event.get("error"):
            raise _build_error(step, str(error), lines)
        if begun := _STEP.match(text):
            step = f"step {begun[1]}: {begun[2]} {begun[3]}"[:100].rstrip()
            lines.clear()
            if begun[2] == "RUN":  # other steps are fast
                say(f"validator image, {step}")
                last_progress = now
        elif text:
            lines.append(text)
            if now - last_progress > SAY_SECONDS:
                say(f"  {text.splitlines()[-1][:100]}")
                last_progress = now


def _build_error(step: str, error: str, lines: Iterable[str]) -> EarshotError:
    last_lines = [
        clipped(line, MAX_SHOWN) for text in lines for line in text.splitlines() if line.strip()
    ][-8:]
    remedy = (
        "check that the engine can pull the base image (`validator.base` in the stack file), "
        "and that its machine can download Debian's and Python's packages; then run it again"
    )
    reason = clipped(" ".join(error.split()), MAX_SHOWN)
    observed = "\n    ".join([f"{step} failed: {reason}", *last_lines])
    return EarshotError("validator image", observed=observed, remedy=remedy)


@dataclass(frozen=True)
class Bundle:
    """The validator's files as an archive on this machine."""

    file: Path
    sha256: str


def bundle(folder: Path) -> Bundle:
    """Writes the bundle of the installed earshot into ``folder``, and removes older ones.

    Raises EarshotError if Spark's jars cannot be fetched.
    """
    files = {path: content for path, content in context().items() if path != "Dockerfile"}
    content = archive(files)  # uncompressed, as compressors differ
    sha256 = hashlib.sha256(content).hexdigest()
    file = folder / f"validator-{sha256[:12]}.tar"
    if not file.exists():
        cache.write(file, content)
    for older in folder.glob("validator-*.tar"):
        if older != file:
            older.unlink(missing_ok=True)
    return Bundle(file, sha256)
