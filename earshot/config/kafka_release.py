"""Texts of a stack file that an instance works with: a release of Kafka, the name of a file."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import field_validator

from earshot.listeners.model import Frozen, matching

_URL = re.compile(r"https?://[!-~]+", re.ASCII)
_SHA512 = re.compile(r"[0-9a-f]{128}", re.ASCII)
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)


class KafkaRelease(Frozen):
    """Kafka as its project publishes it: `kafka_2.13-<version>.tgz`, and its SHA-512 sum."""

    url: Annotated[str, matching(_URL, "an http or https URL of printable ASCII")]
    sha512: Annotated[str, matching(_SHA512, "128 lower-case hexadecimal digits")]

    @field_validator("sha512", mode="before")
    @classmethod
    def _joined(cls, value: object) -> object:
        # the published files break the sum into groups of upper-case digits
        return "".join(value.split()).lower() if isinstance(value, str) else value


FileName = Annotated[str, matching(_FILE, "a file name of letters, digits, '.', '_' and '-'")]
