"""Certificates for Docker engines and those who use them, by an authority of their own.

    authority.json    the authority's certificate and key
    client/           ca.pem, cert.pem, key.pem: what Docker's tools take as a folder

All is for its owner alone. The keys of engines are not kept here.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from earshot import cache
from earshot.certificates.authority import (
    IssuedCertificate,
    Subject,
    is_issued_by,
    is_pair,
    issue,
    new_authority,
    read_certificate,
)
from earshot.errors import EarshotError
from earshot.reading import content_of

CLIENT_DAYS: Final = 365
RENEW_DAYS: Final = 30
"""Days before its end at which the client's certificate is renewed."""
ENGINE_DAYS: Final = 3600
"""Just below the authority's own ten years: a new key replaces the instance."""
_UNIT: Final = "docker"
_FILES: Final = ("ca.pem", "cert.pem", "key.pem")


@dataclass(frozen=True)
class EngineStore:
    """The folder of one group of Docker hosts on this machine."""

    folder: Path

    @property
    def client(self) -> Path:
        """The folder that `cert_path` and DOCKER_CERT_PATH take."""
        return self.folder / "client"

    @property
    def _copy(self) -> Path:
        return self.folder / "authority.json"

    def authority(self, copy: str | None) -> IssuedCertificate | None:
        """The authority in ``copy``, or else in this folder; None where there is none.

        Raises EarshotError for a file that cannot be read, and for a text that is no authority.
        """
        text: str | bytes | None = copy
        if not text:
            if not self._copy.exists():
                return None
            text = content_of(self._copy, "the authority of the Docker hosts")
        try:
            document = json.loads(text)
            issued = IssuedCertificate(str(document["certificate"]), str(document["key"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            issued = IssuedCertificate("", "")
        if not is_pair(issued):
            raise EarshotError(
                "the authority of the Docker hosts",
                observed="is damaged",
                remedy=f"see who has written its SSM parameter or {self._copy}, and put it back",
            )
        return issued

    def keep(self, authority: IssuedCertificate, now: datetime) -> None:
        """Writes the authority and, where that is due, a certificate for clients."""
        for folder in (self.folder, self.client):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)
        cache.write(self._copy, written(authority), 0o600)
        if not self.is_due(authority.certificate, now):
            return
        issued = issue(authority, Subject("deployer", _UNIT), [], CLIENT_DAYS, now)
        texts = (authority.certificate, issued.certificate, issued.key)
        for name, text in zip(_FILES, texts, strict=True):
            cache.write(self.client / name, text, 0o600)

    def remove(self) -> None:
        """Removes the folder, keys included."""
        if self.folder.exists():
            shutil.rmtree(self.folder)

    def is_due(self, authority: str, now: datetime) -> bool:
        """Whether clients need a new certificate of ``authority``, which is one in PEM."""
        try:
            ca, certificate, key = ((self.client / name).read_text() for name in _FILES)
            ends = read_certificate(certificate).not_after
        except (OSError, ValueError):
            return True
        good = ca == authority and is_issued_by(certificate, authority)
        paired = is_pair(IssuedCertificate(certificate, key))
        return not good or not paired or ends - timedelta(days=RENEW_DAYS) <= now


def new_engines_authority(name: str, now: datetime) -> IssuedCertificate:
    """The authority of the Docker hosts called ``name``."""
    return new_authority(f"docker {name}", now)


def for_engine(
    authority: IssuedCertificate, host: str, names: Iterable[str], now: datetime
) -> IssuedCertificate:
    """A certificate for the engine of ``host`` at ``names``; it opens no other engine."""
    return issue(authority, Subject(host, _UNIT), names, ENGINE_DAYS, now, client=False)


def written(authority: IssuedCertificate) -> str:
    """``authority`` as `EngineStore.authority` reads it."""
    return json.dumps({"certificate": authority.certificate, "key": authority.key})
