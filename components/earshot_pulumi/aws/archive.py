"""Whether Kafka's archive is at the stack's URL, as far as this machine can see.

Instances fetch the archive when they boot. If it were missing, or had another sum, the first
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

from earshot.config.aws_parts import KafkaRelease
from earshot.errors import EarshotError

ANSWER_SECONDS: Final = 10
FETCH_SECONDS: Final = 300
"""Seconds to fetch the whole archive, where its sum is not published beside it."""
_BLOCK: Final = 1 << 20
_GONE: Final = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE)
_SUM: Final = re.compile(r"[0-9A-Fa-f]{128}")
_PUBLISHED: Final = ".sha512"
_PUBLISHED_BYTES: Final = 10_000


def problem(archive: KafkaRelease, progress: Callable[[str], None] = lambda _: None) -> str | None:
    """Why instances cannot start with ``archive``, or None.

    Raises EarshotError where this machine cannot reach it: instances may reach it all the same.
    """
    url, configured = archive.url, archive.sha512
    checksum, source = _published(url), f"{url}{_PUBLISHED} says"
    # the sum may be there without the archive
    if checksum in (None, configured) and not _is_there(url):
        return f"`archive.url`: there is nothing at {url}. See that the version is published there"
    if checksum is None:
        progress(f"{url}: no sum is published beside it; fetching it to compute one")
        checksum, source = _summed(url), f"what is at {url} has"
    if checksum == configured:
        return None
    return (
        f"`archive.sha512` is {configured[:12]}…, and {source} {checksum[:12]}…. Set the sum that "
        "belongs to the archive"
    )


def sum_in(text: str) -> str | None:
    """The SHA-512 sum in a published file: after a colon in groups, or before the file's name."""
    joined = "".join(text.rpartition(":")[2].split()) if ":" in text else text
    match = _SUM.search(joined)
    return match[0].lower() if match else None


def _published(url: str) -> str | None:
    try:
        with _asked(url + _PUBLISHED) as answer:
            return sum_in(answer.read(_PUBLISHED_BYTES).decode(errors="replace"))
    except HTTPError:
        return None


def _is_there(url: str) -> bool:
    try:
        with _asked(url, "HEAD"):
            return True
    except HTTPError as error:
        if error.code in _GONE:
            return False
        raise _unknown(url, f"{error.code} {error.reason}") from None


def _summed(url: str) -> str:
    end = time.monotonic() + FETCH_SECONDS
    summed = hashlib.sha512()
    try:
        with _asked(url) as answer:
            while block := answer.read(_BLOCK):
                summed.update(block)
                if time.monotonic() > end:
                    raise _unknown(url, f"not fetched within {FETCH_SECONDS} s")
            if answer.length:  # `read` with a size raises nothing for that
                raise _unknown(url, f"the connection ended {answer.length} bytes before its end")
    except HTTPError as error:
        raise _unknown(url, f"{error.code} {error.reason}") from None
    return summed.hexdigest()


@contextlib.contextmanager
def _asked(url: str, method: str = "GET") -> Iterator[HTTPResponse]:
    """The response. Raises HTTPError where the server refuses, else EarshotError."""
    try:
        with urlopen(Request(url, method=method), timeout=ANSWER_SECONDS) as answer:
            yield answer
    except HTTPError:
        raise
    except (OSError, ValueError, HTTPException) as error:
        raise _unknown(url, error) from None


def _unknown(url: str, reason: object) -> EarshotError:
    below = getattr(reason, "reason", reason)  # urllib wraps the cause
    text = getattr(below, "strerror", None) or " ".join(str(below).split())
    return EarshotError(
        f"archive.url: {url.removesuffix(_PUBLISHED)}",
        observed=f"this machine cannot look at it beforehand ({text})",
    )
