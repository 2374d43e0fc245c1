"""The folder of a secured stack with its authorities, key stores and passwords.

    ca.pem                the first authority's certificate, readable for all
    ca.key                the first authority's key
    ca@2.pem, ca@2.key    certificate and key of authority 2
    trusted.pem           all trusted authorities, if more than the first are trusted
    node-1.pem            key and certificate of a node
    app.pem               key and certificate of a user
    app.password          the user's first password, or the one in the stack's configuration
    app@2.password        the user's password 2
    validator.properties  client properties of earshot's own user
    users.json            users that the cluster may have, without secrets

Only the owner may read the files, except the certificates of authorities. Lost files are
regenerated, an authority only if no certificate that it has issued is left.
"""

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path

from earshot.certificates.authority import (
    Certificate,
    IssuedCertificate,
    Subject,
    check_validity,
    ends,
    is_issued_by,
    is_pair,
    issue,
    new_authority,
    read_certificate,
)
from earshot.certificates.names import SubjectNames
from earshot.certificates.private_ca import issued_by
from earshot.certificates.target import FIRST, TargetCertificates, numbered
from earshot.errors import EarshotError
from earshot.files import cache
from earshot.listeners.security import AUTHORITY, CLIENTS, TRUSTED


@dataclass(frozen=True)
class UnchangedVersions:
    """Versions of the files that `Store.fill` leaves unchanged, as in `StoredCertificates`."""

    versions: Mapping[str, str]
    passwords: Mapping[str, str]


@dataclass(frozen=True)
class StoredCertificates:
    """The current contents of the folder, without secrets."""

    certificates: Mapping[str, Certificate]
    """Certificates by name of the key store."""
    versions: Mapping[str, str]
    """A digest by name of the key store.

    A node's changes with its chain and its trusted authorities, a user's with the authorities to
    trust.
    """
    passwords: Mapping[str, str]
    """A digest of each user's password, by user."""
    expires: datetime
    """The earliest expiry of the certificates and their chains."""


_KEY = AUTHORITY.removesuffix("pem") + "key"
_PASSWORDS = "[!.]*.password"
_KEYS = (_KEY, numbered(_KEY, "*"))
_PUBLIC = (AUTHORITY, numbered(AUTHORITY, "*"))
_COPIED = (*_PUBLIC, *_KEYS, _PASSWORDS)
"""Patterns of names of copied files; `trusted.pem` and key stores are derived from them."""
_RENEWAL = (
    "stop the cluster and use another authority (`security.tls.authorities: [2]`; the next "
    "number, if 2 was used)"
)


class Store:
    """The folder of one stack; see the module's docstring."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def due(self, target: TargetCertificates, now: datetime) -> list[str]:
        """The names of files that `fill` would write or remove.

        Raises EarshotError if a certificate is due and the stack's authority is not valid ``now``.
        """
        authorities = {number: self._authority(number) for number in target.authorities}
        issuer = authorities[target.issuer]
        own_certificate = issuer.certificate if issuer else ""
        due = [
            numbered(AUTHORITY, number)
            for number, authority in authorities.items()
            if authority is None
        ]
        if target.trusts_more and (due or not self._trusts(target)):
            due.append(TRUSTED)
        for name, hosts in target.hosts.items():
            if self._is_due(name, hosts, own_certificate, target, now):
                due.append(f"{name}.pem")
                if issuer and (name in target.users or not target.is_of_others):
                    place = str(self.folder / numbered(AUTHORITY, target.issuer))
                    check_validity(issuer.certificate, place, now, _RENEWAL)
        for user, name in target.passwords.items():
            content = self._read(name).strip() if (self.folder / name).exists() else ""
            if not content or content != (target.given_passwords.get(user) or content):
                due.append(name)
        return due + self._former_files(target)

    def fill(self, target: TargetCertificates, now: datetime) -> StoredCertificates:
        """Creates missing files, renews certificates that are due, removes unused files.

        Raises EarshotError if the authority is lost and certificates of it are not, or if a file is
        not a certificate; OSError if the folder cannot be written.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        self.check(target, issued=False)
        due = self.due(target, now)
        for name in self._former_files(target):
            (self.folder / name).unlink(missing_ok=True)
        contents = {
            number: self._authority(number) or self._new_authority(target.stack, number, now)
            for number in target.authorities
        }
        authority = contents[target.issuer]
        if TRUSTED in due and target.trusts_more:
            self._write(TRUSTED, self._trusted(target), 0o644)
        for name, hosts in target.hosts.items():
            if f"{name}.pem" not in due:
                continue
            if name in target.given:
                text = target.given[name]
            elif name in target.nodes and target.private_ca:
                text = issued_by(target.private_ca, target.node, hosts, target.days)
            else:
                subject = Subject(name, CLIENTS) if name in target.users else target.node
                issued = issue(authority, subject, hosts, target.days, now)
                text = issued.key + issued.certificate
            self._write(f"{name}.pem", text)
        for user, name in target.passwords.items():
            if name in due:
                configured = target.given_passwords.get(user)
                self._write(name, (configured or secrets.token_urlsafe(24)) + "\n")
        return self.contents(target)

    def unchanged(self, target: TargetCertificates, now: datetime) -> UnchangedVersions:
        """The versions of files that `fill` would leave unchanged."""
        due = {*self.due(target, now)}
        if due & {numbered(AUTHORITY, target.issuer), TRUSTED}:
            return UnchangedVersions({}, {})
        stores = (name for name in target.hosts if f"{name}.pem" not in due)
        users = (user for user, file in target.passwords.items() if file not in due)
        return UnchangedVersions(
            {name: self._version(target, name) for name in stores},
            {user: self._digest(user, target.issuer) for user in users},
        )

    def contents(self, target: TargetCertificates) -> StoredCertificates:
        """The files of ``target``. Raises EarshotError if one is missing."""
        texts = {name: self._read(f"{name}.pem") for name in target.hosts}
        authority = self._read(numbered(AUTHORITY, target.issuer))
        return StoredCertificates(
            {name: read_certificate(text) for name, text in texts.items()},
            {name: self._version(target, name) for name in target.hosts},
            {user: self._digest(user, target.issuer) for user in target.users},
            min(map(ends, (authority, *texts.values()))),
        )

    def authority(self) -> str:
        """The certificates of all trusted authorities, as PEM. Raises EarshotError."""
        return self._read(TRUSTED if (self.folder / TRUSTED).exists() else AUTHORITY)

    def password(self, user: str) -> str:
        """The newest password of ``user``. Raises EarshotError if there is none."""
        first_file = f"{user}.password"
        other_files = sorted(path.name for path in self.folder.glob(numbered(first_file, "*")))
        return self._read(other_files[-1] if other_files else first_file).strip()

    def key_store(self, user: str) -> Path:
        """The file with the user's key and certificate. Raises EarshotError if it is missing."""
        self._read(f"{user}.pem")
        return self.folder / f"{user}.pem"

    def copied(self) -> str:
        """A copy of the files that cannot be regenerated, as JSON: authorities and passwords.

        The copy is a secret.
        """
        names = sorted({path.name for pattern in _COPIED for path in self.folder.glob(pattern)})
        return json.dumps({name: (self.folder / name).read_text() for name in names})

    def restore(self, copy: str, key_stores: Mapping[str, str]) -> None:
        """Writes the files in ``copy`` and ``key_stores`` (texts by name); other files stay.

        Raises EarshotError if ``copy`` is invalid, or OSError.
        """
        try:
            files = {str(name): str(text) for name, text in json.loads(copy).items()}
        except (ValueError, AttributeError):
            raise EarshotError(
                "the copy of the stack's authority",
                observed="is not a JSON object",
                remedy="find out what has written it; the update of a checkout that has the "
                "authority writes it again",
            ) from None
        files |= {f"{store}.pem": text for store, text in key_stores.items()}
        for name, text in files.items():
            path = self.folder / name
            leads_elsewhere = path.name != name
            if not leads_elsewhere and (not path.exists() or path.read_text() != text):
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                public = any(fnmatchcase(name, pattern) for pattern in _PUBLIC)
                self._write(name, text, 0o644 if public else 0o600)

    def _lost_authority(self, observed: str) -> EarshotError:
        remedy = (
            "put both files back from a copy; or stop the cluster (`pulumi destroy`), remove "
            f"{self.folder}, and all certificates and passwords are regenerated"
        )
        subject = f"the authority in {self.folder}"
        return EarshotError(subject, observed=observed, remedy=remedy)

    def _authority(self, number: int) -> IssuedCertificate | None:
        """The authority ``number``; None if a file is missing. Raises EarshotError if damaged."""
        names = _files(number)
        if not all((self.folder / name).exists() for name in names):
            return None
        authority = IssuedCertificate(*map(self._read, names))
        if not is_pair(authority):
            raise self._lost_authority(
                f"{names[0]} is not a certificate for the key in {names[1]}, or one of them is "
                "damaged"
            )
        return authority

    def _former_files(self, target: TargetCertificates) -> list[str]:
        """The files that are no longer used."""
        used_files = {name for number in target.authorities for name in _files(number)}
        used_files |= {*(f"{name}.pem" for name in target.hosts), *target.passwords.values()}
        used_files |= {TRUSTED} if target.trusts_more else set()
        kinds = ("[!.]*.pem", _PASSWORDS, *_KEYS)
        file_names = {path.name for kind in kinds for path in self.folder.glob(kind)}
        return sorted(file_names - used_files)

    def _trusted(self, target: TargetCertificates) -> str:
        """Certificates of all authorities that nodes trust.

        Raises EarshotError if one of the stack's own is missing.
        """
        own_certificates = [
            self._read(numbered(AUTHORITY, number)) for number in sorted(target.authorities)
        ]
        return target.authority + "".join(own_certificates)

    def _trusts(self, target: TargetCertificates) -> bool:
        try:
            return (self.folder / TRUSTED).read_text() == self._trusted(target)
        except FileNotFoundError:
            return False

    def check(self, target: TargetCertificates, issued: bool) -> None:
        """Raises EarshotError if the issuing authority is lost and nodes have certificates of it.

        They have if the folder has node certificates that no other authority in it has issued, or,
        without any, if ``issued`` is true.
        """
        if target.is_of_others or self._authority(target.issuer) is not None:
            return
        stores = sorted(self.folder.glob("node-*.pem"))
        paths = [path for kind in _PUBLIC for path in self.folder.glob(kind)]
        authorities = [
            self._read(path.name) for path in paths if path.name not in _files(target.issuer)
        ]
        orphans = [
            path.name
            for path in stores
            if not _is_issued_by_any(self._read(path.name), authorities)
        ]
        if not orphans and (stores or not issued):
            return
        problem = (
            f"{', '.join(orphans)} are there"
            if orphans
            else "nodes of this stack have certificates"
        )
        certificate, key = _files(target.issuer)
        observed = (
            f"{certificate} or {key} is missing, and {problem}: nodes with certificates of a "
        )
        raise self._lost_authority(f"{observed}new one would not be trusted by the others")

    def _new_authority(self, stack: str, number: int, now: datetime) -> IssuedCertificate:
        certificate, key = _files(number)
        authority = new_authority(stack if number == FIRST else f"{stack[:50]} {number}", now)
        self._write(key, authority.key)
        self._write(certificate, authority.certificate, 0o644)
        return authority

    def _is_due(
        self,
        name: str,
        hosts: Iterable[str],
        own_certificate: str,
        target: TargetCertificates,
        now: datetime,
    ) -> bool:
        """True if the key store ``name`` must be written.

        ``own_certificate`` is the certificate of the stack's authority; empty if it is lost.
        """
        elsewhere = target.private_ca and name in target.nodes
        authority = target.authority if elsewhere else own_certificate
        if not authority:
            return True
        try:
            pem = (self.folder / f"{name}.pem").read_text()
            if name in target.given:
                return pem != target.given[name]
            certificate = read_certificate(pem)
        except (FileNotFoundError, IsADirectoryError, ValueError):
            return True
        return (
            not certificate.names.has_same_names(SubjectNames.of_hosts(hosts))
            or (certificate.not_before > now and not elsewhere)
            or certificate.not_after - now <= timedelta(days=target.renew_days)
            or not is_issued_by(pem, authority)
            or not is_pair(IssuedCertificate(pem, pem))
        )

    def _digest(self, user: str, issuer: int) -> str:
        # with the authority's key, so that others cannot guess passwords from their digest
        key = self._read(_files(issuer)[1]).encode()
        return hmac.new(key, self.password(user).encode(), "sha256").hexdigest()[:12]

    def _version(self, target: TargetCertificates, name: str) -> str:
        pem = self._read(f"{name}.pem")
        is_own = name in target.users or target.authorities == (FIRST,)
        if is_own and not target.is_of_others:
            return read_certificate(pem).fingerprint
        chain = pem[pem.index("-----BEGIN CERTIFICATE") :]
        return hashlib.sha256((chain + self.authority()).encode()).hexdigest()

    def _read(self, name: str) -> str:
        try:
            return (self.folder / name).read_text()
        except OSError as reason:
            observed = f"cannot be read ({reason.strerror})"
            remedy = "deploy the stack again: missing files are created again"
        except UnicodeDecodeError:
            observed = "is damaged"
            remedy = "put it back from a copy; or remove it and deploy the stack again"
        raise EarshotError(str(self.folder / name), observed=observed, remedy=remedy)

    def _write(self, name: str, text: str, mode: int = 0o600) -> None:
        cache.write(self.folder / name, text, mode)


def _files(number: int) -> tuple[str, str]:
    """The names of the certificate and the key of authority ``number``."""
    return numbered(AUTHORITY, number), numbered(_KEY, number)


def _is_issued_by_any(pem: str, authorities: Iterable[str]) -> bool:
    """True if one of ``authorities`` has issued the certificate ``pem``; False if it is invalid."""
    try:
        return any(is_issued_by(pem, authority) for authority in authorities)
    except ValueError:
        return False
