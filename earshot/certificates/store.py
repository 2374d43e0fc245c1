"""What a secured stack keeps in a folder of its own: an authority, key stores, passwords.

    ca.pem                the first authority's certificate, readable for all
    ca.key                its key
    ca@2.pem, ca@2.key    the same of the authority with number 2
    trusted.pem           all that are trusted, where that is not the first authority alone
    node-1.pem            key and certificate of a node
    app.pem               key and certificate of a user
    app.password          the user's first password, or the one that configuration gives
    app@2.password        the one with number 2
    validator.properties  how earshot itself comes in
    users.json            users that the cluster may know, without secrets

All but the certificates of authorities are for their owner alone. What is lost is made again, an
authority only where nothing is left that it has issued.
"""

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path

from earshot import cache
from earshot.certificates.authority import (
    Certificate,
    IssuedCertificate,
    Subject,
    ends,
    is_issued_by,
    is_pair,
    issue,
    new_authority,
    read_certificate,
)
from earshot.certificates.names import SubjectNames
from earshot.certificates.private_ca import issued_by
from earshot.errors import EarshotError
from earshot.listeners.security import AUTHORITY, CLIENTS, TRUSTED

_FIRST = 1


@dataclass(frozen=True)
class WantedCertificates:
    """What is to be there."""

    stack: str
    nodes: Mapping[str, tuple[str, ...]]
    """By the name of each key store (`node-1`), the hosts that its certificate is for."""
    node: Subject
    """The subjects of all node certificates."""
    users: tuple[str, ...]
    days: int
    renew_days: int
    given: Mapping[str, str] = field(default_factory=dict, repr=False)
    """By the name of each key store of nodes, its text, where others have made it."""
    authority: str = ""
    """Of those others."""
    private_ca: str = ""
    """The ARN of a private CA of ACM, whose the ``authority`` is, where that issues certificates of
    nodes."""
    authorities: tuple[int, ...] = (_FIRST,)
    """The stack's own by number: the first one issues, and all are trusted."""
    numbers: Mapping[str, int] = field(default_factory=dict)
    """By user, which password it is to have, where that is not the first."""
    given_passwords: Mapping[str, str] = field(default_factory=dict, repr=False)
    """By user, the password itself, where the stack's configuration has it."""

    @property
    def issuer(self) -> int:
        return self.authorities[0]

    @property
    def trusts_more(self) -> bool:
        """Whether nodes trust others than the first authority alone."""
        return self.is_of_others or self.authorities != (_FIRST,)

    @property
    def is_of_others(self) -> bool:
        """Whether others issue certificates of nodes."""
        return bool(self.given or self.private_ca)

    @property
    def passwords(self) -> dict[str, str]:
        """The file of each user's password, by user."""
        return {
            user: numbered(f"{user}.password", self.numbers.get(user, _FIRST))
            for user in self.users
        }

    @property
    def hosts(self) -> dict[str, tuple[str, ...]]:
        """By the name of each key store, of nodes and users, its hosts; none for a user."""
        return {**self.nodes, **dict.fromkeys(self.users, ())}


@dataclass(frozen=True)
class KeptVersions:
    """Versions of what stays as it is, as `HeldCertificates` has them."""

    versions: Mapping[str, str]
    passwords: Mapping[str, str]


@dataclass(frozen=True)
class HeldCertificates:
    """What is there; nothing of it is a secret."""

    certificates: Mapping[str, Certificate]
    """By the name of each key store."""
    versions: Mapping[str, str]
    """By the same, what differs where a node has to read another chain or trusts others, or a user
    has to trust other authorities of nodes than the stack's own."""
    passwords: Mapping[str, str]
    """By user, which password it is: another one has another digest."""
    expires: datetime
    """When the first certificate ends, of those that are sent along with others, too."""


def numbered(name: str, number: int | str) -> str:
    """The file of that ``number``, or a pattern of all but the first, whose is ``name``.

    No user's name has an `@`.
    """
    stem, _, suffix = name.rpartition(".")
    return name if number == _FIRST else f"{stem}@{number}.{suffix}"


_KEY = AUTHORITY.removesuffix("pem") + "key"
_PASSWORDS = "[!.]*.password"
_KEYS = (_KEY, numbered(_KEY, "*"))
_PUBLIC = (AUTHORITY, numbered(AUTHORITY, "*"))
_COPIED = (*_PUBLIC, *_KEYS, _PASSWORDS)
"""Patterns of names; `trusted.pem` and key stores are made of those that are copied."""


class Store:
    """One such folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def due(self, target: WantedCertificates, now: datetime) -> list[str]:
        """The files that `fill` would make or remove, by their names."""
        authorities = {number: self._authority(number) for number in target.authorities}
        issuer = authorities[target.issuer]
        own = issuer.certificate if issuer else ""
        due = [
            numbered(AUTHORITY, number)
            for number, authority in authorities.items()
            if authority is None
        ]
        if target.trusts_more and (due or not self._trusts(target)):
            due.append(TRUSTED)
        for name, hosts in target.hosts.items():
            if self._is_due(name, hosts, own, target, now):
                due.append(f"{name}.pem")
        for user, name in target.passwords.items():
            content = self._read(name).strip() if (self.folder / name).exists() else ""
            if not content or content != (target.given_passwords.get(user) or content):
                due.append(name)
        return due + self._surplus(target)

    def fill(self, target: WantedCertificates, now: datetime) -> HeldCertificates:
        """Makes what is missing, renews what is due, removes what is no longer used.

        Raises EarshotError where the authority is lost and what it has issued is not, or a file is
        no certificate; OSError where the folder cannot be written.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        self.check(target, issued=False)
        due = self.due(target, now)
        for name in self._surplus(target):
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
        return self.held(target)

    def kept(self, target: WantedCertificates, now: datetime) -> KeptVersions:
        """What `fill` would leave as it is."""
        due = {*self.due(target, now)}
        if due & {numbered(AUTHORITY, target.issuer), TRUSTED}:
            return KeptVersions({}, {})
        stores = (name for name in target.hosts if f"{name}.pem" not in due)
        users = (user for user, file in target.passwords.items() if file not in due)
        return KeptVersions(
            {name: self._version(target, name) for name in stores},
            {user: self._digest(user, target.issuer) for user in users},
        )

    def held(self, target: WantedCertificates) -> HeldCertificates:
        """What is there of ``target``. Raises EarshotError where something is missing."""
        texts = {name: self._read(f"{name}.pem") for name in target.hosts}
        authority = self._read(numbered(AUTHORITY, target.issuer))
        return HeldCertificates(
            {name: read_certificate(text) for name, text in texts.items()},
            {name: self._version(target, name) for name in target.hosts},
            {user: self._digest(user, target.issuer) for user in target.users},
            min(map(ends, (authority, *texts.values()))),
        )

    def authority(self) -> str:
        """The certificates of all authorities that are trusted, as PEM. Raises EarshotError."""
        return self._read(TRUSTED if (self.folder / TRUSTED).exists() else AUTHORITY)

    def password(self, user: str) -> str:
        """Raises EarshotError where there is none."""
        first = f"{user}.password"
        others = sorted(path.name for path in self.folder.glob(numbered(first, "*")))
        return self._read(others[-1] if others else first).strip()

    def key_store(self, user: str) -> Path:
        """The file with the user's key and certificate. Raises EarshotError where it is missing."""
        self._read(f"{user}.pem")
        return self.folder / f"{user}.pem"

    def copied(self) -> str:
        """A copy, with keys and passwords, of what the store cannot make again: its authorities,
        and passwords that clients know."""
        names = sorted({path.name for pattern in _COPIED for path in self.folder.glob(pattern)})
        return json.dumps({name: (self.folder / name).read_text() for name in names})

    def restore(self, copy: str, key_stores: Mapping[str, str]) -> None:
        """Lets the files in ``copy``, and ``key_stores`` by name, be as they are there.

        What else the store has stays. Raises EarshotError for a text that is no copy; OSError.
        """
        try:
            files = {str(name): str(text) for name, text in json.loads(copy).items()}
        except (ValueError, AttributeError):
            what, who = "the copy of the stack's authority", "see who has written it"
            remedy = f"{who}; the update of a checkout that has the authority writes it again"
            raise EarshotError(what, observed="is none", remedy=remedy) from None
        for name, text in (
            files | {f"{store}.pem": text for store, text in key_stores.items()}
        ).items():
            path = self.folder / name
            leads_elsewhere = path.name != name
            if not leads_elsewhere and (not path.exists() or path.read_text() != text):
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                public = any(fnmatchcase(name, pattern) for pattern in _PUBLIC)
                self._write(name, text, 0o644 if public else 0o600)

    def _lost(self, observed: str) -> EarshotError:
        remedy = (
            "put both files back from a copy; or stop the cluster (`pulumi destroy`), remove "
            f"{self.folder}, and all certificates and passwords are regenerated"
        )
        what = f"the authority in {self.folder}"
        return EarshotError(what, observed=observed, remedy=remedy)

    def _authority(self, number: int) -> IssuedCertificate | None:
        """None where one of its files is missing. Raises EarshotError where they are of no use."""
        names = _files(number)
        if not all((self.folder / name).exists() for name in names):
            return None
        authority = IssuedCertificate(*map(self._read, names))
        if not is_pair(authority):
            observed = f"{names[0]} is no certificate for the key in {names[1]}, or one of them is "
            raise self._lost(f"{observed}damaged")
        return authority

    def _surplus(self, target: WantedCertificates) -> list[str]:
        """The files that are no longer used."""
        used = {name for number in target.authorities for name in _files(number)}
        used |= {*(f"{name}.pem" for name in target.hosts), *target.passwords.values()}
        used |= {TRUSTED} if target.trusts_more else set()
        kinds = ("[!.]*.pem", _PASSWORDS, *_KEYS)
        file_names = {path.name for kind in kinds for path in self.folder.glob(kind)}
        return sorted(file_names - used)

    def _trusted(self, target: WantedCertificates) -> str:
        """All that nodes trust. Raises EarshotError where one of the stack's own is missing."""
        own = [self._read(numbered(AUTHORITY, number)) for number in sorted(target.authorities)]
        return target.authority + "".join(own)

    def _trusts(self, target: WantedCertificates) -> bool:
        try:
            return (self.folder / TRUSTED).read_text() == self._trusted(target)
        except FileNotFoundError:
            return False

    def check(self, target: WantedCertificates, issued: bool) -> None:
        """Raises EarshotError where the issuing authority is lost, and nodes have certificates of
        it.

        ``issued`` says that they have; else what lies in the folder does. Certificates of another
        authority that is there are none of it.
        """
        if target.is_of_others or self._authority(target.issuer) is not None:
            return
        stores = sorted(self.folder.glob("node-*.pem"))
        paths = [path for kind in _PUBLIC for path in self.folder.glob(kind)]
        authorities = [
            self._read(path.name) for path in paths if path.name not in _files(target.issuer)
        ]
        orphans = [
            path.name for path in stores if not _is_of_any(self._read(path.name), authorities)
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
        raise self._lost(f"{observed}new one would not be trusted by the others")

    def _new_authority(self, stack: str, number: int, now: datetime) -> IssuedCertificate:
        certificate, key = _files(number)
        authority = new_authority(stack if number == _FIRST else f"{stack[:50]} {number}", now)
        self._write(key, authority.key)
        self._write(certificate, authority.certificate, 0o644)
        return authority

    def _is_due(
        self, name: str, hosts: Iterable[str], own: str, target: WantedCertificates, now: datetime
    ) -> bool:
        """``own`` is the certificate of the stack's authority; empty where that is lost."""
        elsewhere = target.private_ca and name in target.nodes
        authority = target.authority if elsewhere else own
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
            not certificate.names.same(SubjectNames.of_hosts(hosts))
            or (certificate.not_before > now and not elsewhere)
            or certificate.not_after - now <= timedelta(days=target.renew_days)
            or not is_issued_by(pem, authority)
            or not is_pair(IssuedCertificate(pem, pem))
        )

    def _digest(self, user: str, issuer: int) -> str:
        # passwords, which users may have chosen, can be tried with the authority's key only
        key = self._read(_files(issuer)[1]).encode()
        return hmac.new(key, self.password(user).encode(), "sha256").hexdigest()[:12]

    def _version(self, target: WantedCertificates, name: str) -> str:
        pem = self._read(f"{name}.pem")
        is_own = name in target.users or target.authorities == (_FIRST,)
        if is_own and not target.is_of_others:
            return read_certificate(pem).fingerprint
        chain = pem[pem.index("-----BEGIN CERTIFICATE") :]
        return hashlib.sha256((chain + self.authority()).encode()).hexdigest()

    def _read(self, name: str) -> str:
        try:
            return (self.folder / name).read_text()
        except OSError as reason:
            observed = f"cannot be read ({reason.strerror})"
            remedy = "deploy the stack again: missing files are made again"
        except UnicodeDecodeError:
            observed = "is damaged"
            remedy = "put it back from a copy; or remove it and deploy the stack again"
        raise EarshotError(str(self.folder / name), observed=observed, remedy=remedy)

    def _write(self, name: str, text: str, mode: int = 0o600) -> None:
        cache.write(self.folder / name, text, mode)


def _files(number: int) -> tuple[str, str]:
    """Where the certificate and the key of the authority with that ``number`` lie."""
    return numbered(AUTHORITY, number), numbered(_KEY, number)


def _is_of_any(pem: str, authorities: Iterable[str]) -> bool:
    """Whether one of these has issued it; a text that is no certificate, or of no authority."""
    try:
        return any(is_issued_by(pem, authority) for authority in authorities)
    except ValueError:
        return False
