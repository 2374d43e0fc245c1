"""The validator image: made on the engine where it is needed, of what is installed here.

Its tag names the version and a digest of the context, so that an image is there or is not: it is
never out of date. How this machine's pip reaches its index (certificates, mirror) goes into the
build and not into the image. A validator on an instance runs a bundle of the same files.
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
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import earshot
from earshot import cache
from earshot.engine import root_cause
from earshot.errors import EarshotError
from earshot.jvm.jars import spark_connector_jars
from earshot.remote.archive import archive

if TYPE_CHECKING:
    import docker

NAME: Final = "earshot-validator"
LABEL: Final = "earshot.validator"
"""On every validator image, with its digest."""
PACKAGES_LABEL: Final = "earshot.validator.packages"
"""On the nameless image of the stage with the packages, with the digest of what decides them."""
SILENT_SECONDS: Final = 900
"""What one step of the build may take without a word."""
SAY_SECONDS: Final = 10.0
"""Seconds after which a running step prints progress."""
PIP_SECONDS: Final = 20
IDLE_SECONDS: Final = 3600
"""An image that was not used for so long belongs to no run that is about to use it."""
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
"""Of pip's settings; a later one goes before an earlier one."""
_STEP: Final = re.compile(r"Step (\d+/\d+) : (\w+) ?(.*)")

Files = Mapping[str, bytes]
Say = Callable[[str], None]


def ensure_image(client: docker.DockerClient, base: str, say: Say = lambda text: None) -> str:
    """The validator image on the engine of ``client``, on top of ``base``; its name.

    Made where it is not there yet, which takes minutes the first time, by one process of this
    machine while others wait; then older ones that nothing uses are removed. Raises EarshotError
    with the step that failed.
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
        packages = digest_of({key: files[key] for key in _DECIDE_PACKAGES}, base)
        _build(client, name, {LABEL: digest}, {"BASE": base, "PACKAGES": packages}, files, say)
        remove_old(client, digest, packages)
    return name


def _has_image(client: docker.DockerClient, name: str) -> bool:
    from docker.errors import ImageNotFound

    try:
        client.images.get(name).tag(name)  # it is needed now: see IDLE_SECONDS
    except ImageNotFound:
        return False
    return True


@functools.cache
def context() -> Files:
    """The files of the build by path, but for what belongs to this machine alone."""
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
    """Twelve hexadecimal digits that change with whatever is in the image."""
    summed = hashlib.sha256(base.encode())
    for path in sorted(files):
        summed.update(f"\0{path}\0".encode() + hashlib.sha256(files[path]).digest())
    return summed.hexdigest()[:12]


def remove_old(client: docker.DockerClient, digest: str, packages: str) -> list[str]:
    """Removes validator images of other digests, and stages of theirs, that are not used.

    Returns what was removed. Only images with our label and no name but ours are considered.
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
        with contextlib.suppress(APIError):  # a container uses it: the engine refuses
            client.images.remove(name)
            removed_names.append(name)
    return removed_names


def _idle(about: Mapping[str, Any]) -> bool:
    """Whether an image was made, and last given a name, long ago."""
    dates = (about["Created"], about.get("Metadata", {}).get("LastTagTime", ""))
    times = [datetime.fromisoformat(f"{text[:19]}+00:00") for text in dates if len(text) >= 19]
    return datetime.now(UTC) - max(times) > timedelta(seconds=IDLE_SECONDS)


def pip_settings(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What this machine's pip is set to, by files or by variables: option -> value."""
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
    """The certificates that this machine's pip trusts by its settings; empty where it has none."""
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
        network_mode="host",  # packages come the way that this machine gets them
        rm=True,
        forcerm=True,
        decode=True,
        timeout=SILENT_SECONDS,
    )
    try:
        _follow(stream, say)
    except (DockerException, OSError) as reason:  # of these two an OSError is a lost connection
        why = root_cause(reason)
        is_connection_lost = not isinstance(reason, DockerException)
        why = f"stopped answering ({why})" if is_connection_lost else why
        raise _build_error("the engine", why, []) from None
    finally:
        stream.close()  # an interrupted build ends with its connection


def _follow(stream: Generator[dict[str, Any], None, None], say: Say) -> None:
    """Prints each step when it begins, and the last line of a long step. Raises EarshotError for a
    failed step."""
    step, lines, last_progress = "the context", [""], time.monotonic()
    for event in stream:
        text = str(event.get("stream") or event.get("status") or "").strip()
        if error := event.get("error"):
            raise _build_error(step, str(error), lines)
        if begun := _STEP.match(text):
            step, lines = f"step {begun[1]}: {begun[2]} {begun[3]}"[:100].rstrip(), []
            if begun[2] == "RUN":  # the others take no time
                say(f"validator image, {step}")
                last_progress = time.monotonic()
        elif text:
            lines.append(text)
            if time.monotonic() - last_progress > SAY_SECONDS:
                say(f"  {text.splitlines()[-1][:100]}")
                last_progress = time.monotonic()


def _build_error(step: str, error: str, lines: Iterable[str]) -> EarshotError:
    last_lines = [line for text in lines for line in text.splitlines() if line.strip()][-8:]
    remedy = (
        "see that the engine can have the base image (`validator.base` in the stack file), "
        "and that Debian's and Python's packages can be had from its machine; then run it again"
    )
    observed = "\n    ".join([f"{step} failed: {' '.join(error.split())}", *last_lines])
    return EarshotError("validator image", observed=observed, remedy=remedy)


@dataclass(frozen=True)
class Bundle:
    """An archive on this machine."""

    file: Path
    sha256: str


def bundle(folder: Path) -> Bundle:
    """Writes the bundle of the installed earshot into ``folder``, and removes older ones.

    Raises EarshotError if Spark's jars cannot be fetched.
    """
    files = {path: content for path, content in context().items() if path != "Dockerfile"}
    content = archive(files)  # not compressed, for compressors differ
    sha256 = hashlib.sha256(content).hexdigest()
    file = folder / f"validator-{sha256[:12]}.tar"
    if not file.exists():
        cache.write(file, content)
    for older in folder.glob("validator-*.tar"):
        if older != file:
            older.unlink(missing_ok=True)
    return Bundle(file, sha256)
