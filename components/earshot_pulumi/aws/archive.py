"""Checks that Kafka's archive is at the stack's URL, if this machine can reach it.

Instances fetch the archive when they boot. If it were missing, or had another checksum, the first
replaced instance would fail.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from typing import Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from earshot.config.aws_sections import KafkaRelease
from earshot.errors import EarshotError

ANSWER_SECONDS: Final = 10
FETCH_SECONDS: Final = 300
"""Seconds to fetch the whole archive, if its checksum is not published next to it."""
_BLOCK: Final = 1 << 20
_MISSING: Final = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE)
_SUM: Final = re.compile(r"[0-9A-Fa-f]{128}")
_PUBLISHED: Final = ".sha512"
_PUBLISHED_BYTES: Final = 10_000


def problem(archive: KafkaRelease, progress: Callable[[str], None] = lambda _: None) -> str | None:
    """Why instances cannot start with ``archive``, or None.

    Raises EarshotError if this machine cannot reach it. Instances may still reach it.
    """
    url, configured = archive.url, archive.sha512
    checksum, source = _published(url), f"{url}{_PUBLISHED} has"
    # the checksum may be published without the archive
    if checksum in (None, configured) and not _exists(url):
        return f"`archive.url`: no file exists at {url}. Check that the version is published there"
    if checksum is None:
        progress(f"{url}: no checksum is published next to it; fetching it to compute one")
        checksum, source = _computed(url), f"the file at {url} has"
    if checksum == configured:
        return None
    return (
        f"`archive.sha512` is {configured[:12]}…, and {source} {checksum[:12]}…. Set the "
        "archive's own checksum"
    )


def sum_in(text: str) -> str | None:
    """The SHA-512 checksum in a published file: in groups after a colon, or before a file name."""
    digits = "".join(text.rpartition(":")[2].split()) if ":" in text else text
    match = _SUM.search(digits)
    return match[0].lower() if match else None


def _published(url: str) -> str | None:
    try:
        content = b""
        with _response(url + _PUBLISHED) as answer:
            for block in _blocks(answer, url + _PUBLISHED):
                content += block
                if len(content) >= _PUBLISHED_BYTES:
                    break
        return sum_in(content[:_PUBLISHED_BYTES].decode(errors="replace"))
    except HTTPError:
        return None


def _exists(url: str) -> bool:
    try:
        with _response(url, "HEAD"):
            return True
    except HTTPError as error:
        if error.code in _MISSING:
            return False
        raise _unknown(url, f"{error.code} {error.reason}") from None


def _computed(url: str) -> str:
    checksum = hashlib.sha512()
    try:
        with _response(url) as answer:
            for block in _blocks(answer, url):
                checksum.update(block)
    except HTTPError as error:
        raise _unknown(url, f"{error.code} {error.reason}") from None
    return checksum.hexdigest()


def _blocks(answer: HTTPResponse, url: str) -> Iterator[bytes]:
    """The content of ``answer`` as it arrives. Raises EarshotError if it is incomplete, or takes
    more than `FETCH_SECONDS`."""
    end, length, received = time.monotonic() + FETCH_SECONDS, answer.length, 0
    # `read` would wait for a whole block, however slowly it arrives
    while (length is None or received < length) and (block := answer.read1(_BLOCK)):
        received += len(block)
        yield block
        if time.monotonic() > end:
            raise _unknown(url, f"not fetched within {FETCH_SECONDS} s")
    if length is not None and received < length:
        missing_count = length - received
        raise _unknown(url, f"the connection ended {missing_count} bytes before its end")


@contextlib.contextmanager
def _response(url: str, method: str = "GET") -> Iterator[HTTPResponse]:
    """The response. Raises HTTPError if the server refuses, else EarshotError."""
    try:
        with urlopen(Request(url, method=method), timeout=ANSWER_SECONDS) as answer:
            yield answer
    except HTTPError:
        raise
    except (OSError, ValueError, HTTPException) as error:
        raise _unknown(url, error) from None


def _unknown(url: str, reason: object) -> EarshotError:
    cause = getattr(reason, "reason", reason)  # urllib wraps the cause
    text = getattr(cause, "strerror", None) or " ".join(str(cause).split())
    return EarshotError(
        f"archive.url: {url.removesuffix(_PUBLISHED)}",
        observed=f"this machine cannot check it ({text})",
    )
