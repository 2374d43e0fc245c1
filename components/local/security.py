"""Dynamic providers of a secured cluster: certificates before nodes start, users once they serve.

Keys and passwords stay in files; states hold only what may be seen.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from pulumi.dynamic import CreateResult, DiffResult, ReadResult, UpdateResult

from components.checked import Props, on_lines_of_its_own
from components.local.access import Access, await_logins, grants
from components.local.changes import started_with
from components.local.data_root import writing
from components.local.quorum import node_directory
from components.owner import OwnedProvider
from earshot import cache
from earshot.certificates.authority import Subject
from earshot.certificates.client import client_properties
from earshot.certificates.store import Store, Wanted
from earshot.listeners.properties import read_properties
from earshot.listeners.security import FOLDER, NODE, NODES, VALIDATOR, VALIDATOR_FILE, own_access
from earshot.listeners.terms import Mechanism, Protocol
from earshot.project import Project
from earshot.validation.client import translate


class CertificatesProvider(OwnedProvider):
    """A certificate per node and user, made before any node starts and renewed in time."""

    _DECIDES = ("root", "hosts", "users", "mechanism", "days", "renew_days")

    def diff(self, _id: str, olds: Props, news: Props) -> DiffResult:
        changed = any(olds.get(key) != news[key] for key in self._DECIDES)
        store = Store(_folder(news))
        due = bool(store.due(_wanted(news), _now()))
        lost = not (store.folder / VALIDATOR_FILE).exists()
        return DiffResult(changes=changed or due or lost)

    def create(self, props: Props) -> CreateResult:
        return CreateResult("certificates", self._filled(props))

    def update(self, _id: str, _olds: Props, news: Props) -> UpdateResult:
        return UpdateResult(self._filled(news))

    def read(self, id_: str, props: Props) -> ReadResult:
        return ReadResult(id_, props)

    def _filled(self, props: Props) -> Props:
        store = Store(_folder(props))
        with on_lines_of_its_own(), writing("certificates", store.folder):
            held = store.fill(_wanted(props), _now())
            text = client_properties(store, VALIDATOR, Mechanism(props["mechanism"]))
            cache.write(store.folder / VALIDATOR_FILE, text, 0o600)
        ends = min(item.not_after for item in held.certificates.values())
        return {
            **props,
            "certificates": {name: it.fingerprint for name, it in held.certificates.items()},
            "passwords": dict(held.passwords),
            "expires": ends.isoformat(timespec="seconds"),
        }


class UsersProvider(OwnedProvider):
    """Users and permissions, made as soon as the brokers serve and changed with the stack file."""

    _DECIDES = ("cluster_id", "users", "mechanism", "passwords", "logins")

    def diff(self, _id: str, olds: Props, news: Props) -> DiffResult:
        return DiffResult(changes=any(olds.get(key) != news.get(key) for key in self._DECIDES))

    def create(self, props: Props) -> CreateResult:
        _settle({}, props)
        return CreateResult("users", props)

    def update(self, _id: str, olds: Props, news: Props) -> UpdateResult:
        _settle(olds, news)
        return UpdateResult(news)

    def read(self, id_: str, props: Props) -> ReadResult:
        return ReadResult(id_, props)


def _settle(olds: Props, news: Props) -> None:
    root, mechanism = _root(news), news["mechanism"]
    store = Store(_folder(news))
    old, new = grants(olds.get("users", {})), grants(news["users"])
    first = next(iter(news["brokers"]))
    values = read_properties(started_with(node_directory(root, int(first)))).values
    with on_lines_of_its_own():
        access = Access(",".join(news["brokers"].values()), own_access(values))
        access.forbid(item for item in old if item not in new)
        access.allow(new)
        if not news["logins"]:
            return  # no listener asks for a password
        before = olds.get("passwords", {})
        earlier = str(olds.get("mechanism") or mechanism)
        kept = earlier == mechanism
        access.set_passwords(
            {
                user: store.password(user)
                for user, digest in news["passwords"].items()
                if not kept or before.get(user) != digest
            },
            mechanism,
        )
        gone = [user for user in before if not kept or user not in news["passwords"]]
        access.remove_users(gone, earlier)
        text = client_properties(store, VALIDATOR, Mechanism(mechanism), Protocol.SASL_SSL)
        client = translate(read_properties(text).values)
        await_logins({int(id): at for id, at in news["logins"].items()}, client)


def _wanted(props: Props) -> Wanted:
    return Wanted(
        stack=props["stack"],
        nodes={name: tuple(hosts) for name, hosts in props["hosts"].items()},
        node=Subject(NODE, NODES),
        users=tuple(props["users"]),
        days=int(props["days"]),
        renew_days=int(props["renew_days"]),
    )


def _folder(props: Props) -> Path:
    return _root(props) / FOLDER


def _root(props: Props) -> Path:
    return Project.find().here(Path(props["root"]))


def _now() -> datetime:
    return datetime.now(UTC)
