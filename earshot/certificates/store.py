"""What a secured stack keeps in a folder of its own: an authority, key stores, passwords.

    ca.pem                the authority's certificate, which everybody may read
    trusted.pem           the same and others', where those have issued certificates of nodes
    ca.key                its key
    node-1.pem            key and certificate of a node
    app.pem               key and certificate of a user
    app.password          the user's password
    validator.properties  how earshot itself comes in
    users.json            users that the cluster may know, without secrets

All but `ca.pem` and `trusted.pem` are for their owner alone. What is lost is made again, the
authority only where nothing is left that it has issued.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from earshot import cache
from earshot.certificates.authority import (
    Certificate,
    Issued,
    Subject,
    ends,
    is_issued_by,
    is_pair,
    issue,
    new_authority,
    read_certificate,
)
from earshot.certificates.names import SubjectNames
from earshot.errors import EarshotError
from earshot.listeners.security import AUTHORITY, CLIENTS, TRUSTED

AUTHORITY_KEY = "ca.key"
_PASSWORD_BYTES = 24


@dataclass(frozen=True)
class Wanted:
    """What is to be there."""

    stack: str
    nodes: Mapping[str, tuple[str, ...]]
    """By the name of each key store (`node-1`), the hosts that its certificate is for."""
    node: Subject
    """Whom the certificates of all nodes name."""
    users: tuple[str, ...]
    days: int
    renew_days: int
    given: Mapping[str, str] = field(default_factory=dict, repr=False)
    """By the name of each key store of nodes, its text, where others have made it."""
    authority: str = ""
    """Of those others."""

    @property
    def hosts(self) -> dict[str, tuple[str, ...]]:
        """By the name of each key store, of nodes and users, its hosts; none for a user."""
        return {**self.nodes, **dict.fromkeys(self.users, ())}


@dataclass(frozen=True)
class Held:
    """What is there; nothing of it is a secret."""

    certificates: Mapping[str, Certificate]
    """By the name of each key store."""
    versions: Mapping[str, str]
    """By the same, what differs where a node has to read another chain or trusts others."""
    passwords: Mapping[str, str]
    """By user, which password it is: another one has another digest."""
    expires: datetime
    """When the first certificate ends, of those that are sent along with others, too."""


class Store:
    """One such folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def due(self, wanted: Wanted, now: datetime) -> list[str]:
        """The files that `fill` would make or remove, by their names."""
        authority = self._authority()
        stores = [f"{name}.pem" for name in wanted.hosts]
        stale = [
            name
            for name, hosts in zip(stores, wanted.hosts.values(), strict=True)
            if authority is None or self._is_due(name, hosts, authority, wanted, now)
        ]
        passwords = [f"{user}.password" for user in wanted.users]
        missing = [name for name in passwords if not self._is_filled(name)]
        trusted = [TRUSTED] if wanted.given else []
        untrue = [name for name in trusted if not self._trusts(wanted, authority)]
        kept = {AUTHORITY, *stores, *passwords, *trusted}
        held = [*self.folder.glob("[!.]*.pem"), *self.folder.glob("[!.]*.password")]
        surplus = [path.name for path in held if path.name not in kept]
        made = [] if authority else [AUTHORITY]
        return [*made, *untrue, *stale, *missing, *sorted(surplus)]

    def fill(self, wanted: Wanted, now: datetime) -> Held:
        """Makes what is missing, renews what is due, removes what nobody has any more.

        Raises EarshotError where the authority is lost and what it has issued is not, or a file is
        no certificate; OSError where the folder cannot be written.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        due = self.due(wanted, now)
        authority = self._authority() or self._new_authority(wanted, now)
        if TRUSTED in due and wanted.given:
            self._write(TRUSTED, wanted.authority + authority.certificate, 0o644)
        for name, hosts in wanted.hosts.items():
            if f"{name}.pem" in due and name in wanted.given:
                self._write(f"{name}.pem", wanted.given[name])
            elif f"{name}.pem" in due:
                subject = Subject(name, CLIENTS) if name in wanted.users else wanted.node
                made = issue(authority, subject, hosts, wanted.days, now)
                self._write(f"{name}.pem", made.key + made.certificate)
        for user in wanted.users:
            if f"{user}.password" in due:
                self._write(f"{user}.password", secrets.token_urlsafe(_PASSWORD_BYTES) + "\n")
        known = {f"{name}.pem" for name in wanted.hosts} | {f"{it}.password" for it in wanted.users}
        known |= {AUTHORITY, *([TRUSTED] if wanted.given else [])}
        for name in set(due) - known:
            (self.folder / name).unlink(missing_ok=True)
        return self.held(wanted)

    def kept(self, wanted: Wanted, now: datetime) -> dict[str, str]:
        """The versions of those key stores of nodes that `fill` would leave as they are."""
        due = {*self.due(wanted, now)}
        if due & {AUTHORITY, TRUSTED}:
            return {}
        return {
            name: self._version(wanted, name) for name in wanted.nodes if f"{name}.pem" not in due
        }

    def held(self, wanted: Wanted) -> Held:
        """What is there of ``wanted``. Raises EarshotError where something is missing."""
        certificates = {name: self._certificate(f"{name}.pem") for name in wanted.hosts}
        return Held(
            certificates,
            {name: self._version(wanted, name) for name in certificates},
            {user: self._digest(user) for user in wanted.users},
            min(ends(self._read(f"{name}.pem")) for name in wanted.hosts),
        )

    def authority(self) -> str:
        """The certificates of all authorities that are trusted, as PEM. Raises EarshotError."""
        return self._read(TRUSTED if (self.folder / TRUSTED).exists() else AUTHORITY)

    def password(self, user: str) -> str:
        """Raises EarshotError where there is none."""
        return self._read(f"{user}.password").strip()

    def key_store(self, user: str) -> Path:
        """The file with the user's key and certificate. Raises EarshotError where it is missing."""
        self._read(f"{user}.pem")
        return self.folder / f"{user}.pem"

    @property
    def _back_or_anew(self) -> str:
        return (
            "put both files back from a copy; or stop the cluster (`make down`), remove "
            f"{self.folder}, and all certificates and passwords are made anew"
        )

    def _authority(self) -> Issued | None:
        """None where one of its files is missing. Raises EarshotError where they are of no use."""
        if not all((self.folder / name).exists() for name in (AUTHORITY, AUTHORITY_KEY)):
            return None
        found = Issued(self._read(AUTHORITY), self._read(AUTHORITY_KEY))
        if not is_pair(found):
            raise EarshotError(
                f"the authority in {self.folder}",
                observed=f"{AUTHORITY} is no certificate for the key in {AUTHORITY_KEY}, or one of "
                "them is damaged",
                remedy=self._back_or_anew,
            )
        return found

    def _is_filled(self, name: str) -> bool:
        return (self.folder / name).exists() and self._read(name).strip() != ""

    def _trusts(self, wanted: Wanted, authority: Issued | None) -> bool:
        try:
            held = (self.folder / TRUSTED).read_text()
        except FileNotFoundError:
            return False
        return authority is not None and held == wanted.authority + authority.certificate

    def check(self, wanted: Wanted, issued: bool) -> None:
        """Raises EarshotError where the authority is lost, and nodes have certificates of it.

        ``issued`` says that they have; else what lies in the folder does.
        """
        if wanted.given or self._authority() is not None:
            return
        left = sorted(path.name for path in self.folder.glob("node-*.pem"))
        if not left and not issued:
            return
        held = f"{', '.join(left)} are there" if left else "nodes of this stack have certificates"
        raise EarshotError(
            f"the authority in {self.folder}",
            observed=f"{AUTHORITY} or {AUTHORITY_KEY} is missing, and {held}: nodes with "
            "certificates of a new one would not be trusted by the others",
            remedy=self._back_or_anew,
        )

    def _new_authority(self, wanted: Wanted, now: datetime) -> Issued:
        self.check(wanted, issued=False)
        made = new_authority(wanted.stack, now)
        self._write(AUTHORITY_KEY, made.key)
        self._write(AUTHORITY, made.certificate, 0o644)
        return made

    def _is_due(
        self, name: str, hosts: Iterable[str], authority: Issued, wanted: Wanted, now: datetime
    ) -> bool:
        given = wanted.given.get(name.removesuffix(".pem"))
        try:
            pem = (self.folder / name).read_text()
            if given is not None:
                return pem != given
            held = read_certificate(pem)
        except (FileNotFoundError, ValueError):
            return True
        return (
            held.names != SubjectNames.of_hosts(hosts)
            or held.not_after - now <= timedelta(days=wanted.renew_days)
            or not is_issued_by(pem, authority.certificate)
        )

    def _digest(self, user: str) -> str:
        # nobody without the authority's key can try passwords, which may be somebody's own
        key = self._read(AUTHORITY_KEY).encode()
        return hmac.new(key, self.password(user).encode(), "sha256").hexdigest()[:12]

    def _certificate(self, name: str) -> Certificate:
        return read_certificate(self._read(name))

    def _version(self, wanted: Wanted, name: str) -> str:
        given = wanted.given.get(name)
        if given is None:
            return self._certificate(f"{name}.pem").fingerprint
        chain = given[given.index("-----BEGIN CERTIFICATE") :]
        return hashlib.sha256((chain + self.authority()).encode()).hexdigest()

    def _read(self, name: str) -> str:
        try:
            return (self.folder / name).read_text()
        except OSError as reason:
            raise EarshotError(
                str(self.folder / name),
                observed=f"cannot be read ({reason.strerror})",
                remedy="deploy the stack again: what is missing is made anew",
            ) from None

    def _write(self, name: str, text: str, mode: int = 0o600) -> None:
        cache.write(self.folder / name, text, mode)
