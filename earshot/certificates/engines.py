"""Certificates for Docker engines and their clients, issued by a separate authority.

    authority.json    the authority's certificate and key
    client/           ca.pem, cert.pem, key.pem: the folder that Docker's tools expect

Only the owner may read the files. The keys of engines are not stored here.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from earshot.certificates.authority import (
    IssuedCertificate,
    Subject,
    check_validity,
    is_issued_by,
    is_pair,
    is_valid_at,
    issue,
    new_authority,
    read_certificate,
)
from earshot.errors import EarshotError
from earshot.files import cache
from earshot.files.reading import content_of

CLIENT_DAYS: Final = 365
RENEW_DAYS: Final = 30
"""Days before its expiry at which the client's certificate is renewed."""
ENGINE_DAYS: Final = 3600
"""Long, because a new certificate replaces the instance. The authority is valid for ten years."""
_UNIT: Final = "docker"
"""The organizational unit in subjects of certificates."""
_FILES: Final = ("ca.pem", "cert.pem", "key.pem")


@dataclass(frozen=True)
class EngineStore:
    """The folder on this machine for one group of Docker hosts."""

    folder: Path

    @property
    def client(self) -> Path:
        """The folder for `cert_path` and DOCKER_CERT_PATH."""
        return self.folder / "client"

    @property
    def _authority_file(self) -> Path:
        return self.folder / "authority.json"

    def authority(self, parameter: str | None, now: datetime) -> IssuedCertificate | None:
        """The authority in the text of an SSM ``parameter``, or else in this folder; None without
        either.

        Raises EarshotError if the file cannot be read, the text is not an authority, or the
        authority is not valid ``now``.
        """
        text: str | bytes | None = parameter
        if not text:
            if not self._authority_file.exists():
                return None
            text = content_of(self._authority_file, "the authority of the Docker hosts")
        try:
            document = json.loads(text)
            issued = IssuedCertificate(str(document["certificate"]), str(document["key"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            issued = IssuedCertificate("", "")
        if not is_pair(issued):
            raise EarshotError(
                "the authority of the Docker hosts",
                observed="is damaged",
                remedy=f"see who has written its SSM parameter or {self._authority_file}, and put "
                "it back",
            )
        place = f"{self._authority_file} and its SSM parameter"
        renewal = (
            f"delete the SSM parameter and {self._authority_file}, and update the Docker hosts "
            "with `in_turn: false`: a new authority issues all certificates again"
        )
        check_validity(issued.certificate, place, now, renewal)
        return issued

    def keep(self, authority: IssuedCertificate, now: datetime) -> None:
        """Writes the authority and, if it is due, a new certificate for clients."""
        for folder in (self.folder, self.client):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)
        cache.write(self._authority_file, written(authority), 0o600)
        if not self.is_due(authority.certificate, now):
            return
        issued = issue(authority, Subject("deployer", _UNIT), [], CLIENT_DAYS, now)
        texts = (authority.certificate, issued.certificate, issued.key)
        for name, text in zip(_FILES, texts, strict=True):
            cache.write(self.client / name, text, 0o600)

    def remove(self) -> None:
        """Removes the folder with its keys."""
        if self.folder.exists():
            shutil.rmtree(self.folder)

    def is_due(self, authority: str, now: datetime) -> bool:
        """True if clients need a new certificate from ``authority`` (its certificate as PEM), or
        ``authority`` is not valid ``now``."""
        try:
            ca, certificate, key = ((self.client / name).read_text() for name in _FILES)
            ends = read_certificate(certificate).not_after
        except (OSError, ValueError):
            return True
        is_trusted = ca == authority and is_issued_by(certificate, authority)
        return (
            not is_trusted
            or not is_valid_at(authority, now)
            or not is_pair(IssuedCertificate(certificate, key))
            or ends - timedelta(days=RENEW_DAYS) <= now
        )


def new_engines_authority(name: str, now: datetime) -> IssuedCertificate:
    """The authority of the Docker hosts called ``name``."""
    return new_authority(f"docker {name}", now)


def for_engine(
    authority: IssuedCertificate, host: str, names: Iterable[str], now: datetime
) -> IssuedCertificate:
    """A certificate for the engine of ``host`` at ``names``, which clients cannot use."""
    return issue(authority, Subject(host, _UNIT), names, ENGINE_DAYS, now, client=False)


def written(authority: IssuedCertificate) -> str:
    """``authority`` as the text that `EngineStore.authority` reads."""
    return json.dumps({"certificate": authority.certificate, "key": authority.key})
