"""Checks on this machine before any instance changes.

They compare the stack with its last run, and check that Kafka's archive is at the URL from which
instances fetch it when they boot, if this machine can reach it, and that Kafka accepts the settings
of every node. A preview does not check the settings while a node's name is unknown.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import time
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from typing import Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from earshot.config.aws_sections import KafkaRelease
from earshot.errors import EarshotError
from earshot.jvm.broker_settings import ask_kafka, lacks_class
from earshot.jvm.jars import kafka_broker_jars
from earshot.jvm.java import find_java
from earshot.listeners.model import ClusterPlan
from earshot.listeners.properties import without_references
from earshot.listeners.render import server_properties
from earshot.user_data.boot import NodeReport
from earshot_pulumi.aws import changes
from earshot_pulumi.aws.changes import HeldStack
from earshot_pulumi.aws.credentials import reader
from earshot_pulumi.aws_settings import SETTINGS, AwsKind
from earshot_pulumi.properties import read
from earshot_pulumi.provider.kind import UNKNOWN, Operation, Properties
from earshot_pulumi.provider.resource import InternalResource
from earshot_pulumi.refusals import refused_settings

Say = Callable[[str], None]


class ChangePreflightKind(AwsKind):
    """Compares its inputs with those of the last run, checks the archive's URL, and runs Kafka's
    parser on this machine.

    Inputs in addition to those of `HeldStack`: `region`; `reports`, the nodes' parameters there;
    the `archive`; and `properties`, the text of each node's settings by id.
    """

    ID = "held"
    interrupted = "interrupted: nothing was changed"
    IDLE = ("written", SETTINGS)
    """Inputs whose difference alone is no change. The next change stores them."""

    def problems(self, operation: Operation, olds: Properties, news: Properties) -> Iterator[str]:
        if olds:
            news["written"] = olds.get("written") or self._served_version(operation, olds)
            yield from changes.problems(read(HeldStack, olds), read(HeldStack, news))
        yield from _archive_problems(olds, news, operation.log)
        yield from _settings_problems(olds, news, operation.log)

    def _served_version(self, operation: Operation, olds: Properties) -> str:
        """The Kafka version of the last run, if a node has served with it and so has formatted the
        data; empty if none has, or if that is unknown."""
        try:
            values = reader(self.settings(operation), olds["region"])(olds["reports"])
        except EarshotError as reason:
            operation.log(f"whether a node has served is not known: {reason.line}")
            return ""
        reports = map(NodeReport.read, values.values())
        has_served = any(report is not None and report.serves for report in reports)
        return str(olds["kafka_version"]) if has_served else ""


class ChangePreflight(InternalResource):
    """The checks before an instance changes, as a resource."""

    FORMER_NAMES = ("ChangePreflight", "AwsGround")


def settings_of(plan: ClusterPlan) -> dict[str, str]:
    """The input `properties`: the text of each node's settings by id."""
    return {str(node.id): server_properties(plan, node) for node in plan.nodes}


def _archive_problems(olds: Properties, news: Properties, say: Say) -> list[str]:
    if news["archive"] == olds.get("archive"):
        return []
    try:
        problem = archive_problem(KafkaRelease.model_validate(news["archive"]), progress=say)
    except EarshotError as reason:
        say(reason.line)
        return []
    return [problem] if problem else []


def _settings_problems(olds: Properties, news: Properties, say: Say) -> list[str]:
    version, new_texts = news["kafka_version"], news["properties"]
    if new_texts is UNKNOWN:  # because a name in them is
        return []
    old_texts = olds.get("properties", {}) if version == olds.get("kafka_version") else {}
    changed_texts = {int(id): text for id, text in new_texts.items() if old_texts.get(id) != text}
    return list(refused_settings(version, _refusals(version, changed_texts, say)))


def _refusals(version: str, properties: Mapping[int, str], say: Say) -> dict[int, str]:
    if not properties:
        return {}
    texts = {id: without_references(text) for id, text in properties.items()}
    try:
        refusals = ask_kafka(find_java(), kafka_broker_jars(version), texts).refusals
    except EarshotError as reason:
        say(f"Kafka has not checked the settings: {reason.line}")
        return {}
    # the archive may have more classes than the published jars
    return {id: text for id, text in refusals.items() if not lacks_class(text)}


ANSWER_SECONDS: Final = 10
FETCH_SECONDS: Final = 300
"""Seconds to fetch the whole archive, if its checksum is not published next to it."""
_BLOCK: Final = 1 << 20
_MISSING: Final = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE)
_SUM: Final = re.compile(r"[0-9A-Fa-f]{128}")
_PUBLISHED: Final = ".sha512"
_PUBLISHED_BYTES: Final = 10_000


def archive_problem(archive: KafkaRelease, progress: Say = lambda _: None) -> str | None:
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
        with _response(url + _PUBLISHED) as answer:
            return sum_in(answer.read(_PUBLISHED_BYTES).decode(errors="replace"))
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
    end = time.monotonic() + FETCH_SECONDS
    checksum = hashlib.sha512()
    try:
        with _response(url) as answer:
            while block := answer.read(_BLOCK):
                checksum.update(block)
                if time.monotonic() > end:
                    raise _unknown(url, f"not fetched within {FETCH_SECONDS} s")
            if answer.length:  # `read` with a size does not report it
                raise _unknown(url, f"the connection ended {answer.length} bytes before its end")
    except HTTPError as error:
        raise _unknown(url, f"{error.code} {error.reason}") from None
    return checksum.hexdigest()


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
