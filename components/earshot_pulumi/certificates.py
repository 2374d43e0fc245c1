"""Certificates of a secured cluster as a resource: made before nodes start, and renewed in time.

Keys and passwords stay in files of this machine; states hold only what may be seen.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pulumi
from pulumi.runtime import is_dry_run

from earshot import cache
from earshot.certificates.authority import Subject
from earshot.certificates.client import client_properties
from earshot.certificates.given import Files, GivenCertificates, read_given
from earshot.certificates.private_ca import authority_of
from earshot.certificates.store import HeldCertificates, KeptVersions, Store, WantedCertificates
from earshot.config.security import SecuritySpec
from earshot.listeners.model import ClusterPlan, Node
from earshot.listeners.security import FOLDER, NODE, VALIDATOR, VALIDATOR_FILE, node_name
from earshot.listeners.terms import Mechanism
from earshot.placement.secured import files_of, unit_of
from earshot_pulumi.outputs import applied, known_or, with_run_errors
from earshot_pulumi.passwords import given_to
from earshot_pulumi.properties import here
from earshot_pulumi.provider.internal import InternalKind, InternalResource
from earshot_pulumi.provider.kind import UNKNOWN, Operation, Properties
from earshot_pulumi.writing import writing


class CertificatesKind(InternalKind):
    """A certificate per node and user."""

    ID = "certificates"
    DECISIVE = ("root", "hosts", "users", "mechanism", "days", "renew_days", "files", "private_ca")
    """What decides beside them is seen in the folder."""
    interrupted = (
        "interrupted while certificates were issued: those in files are whole; the next "
        "`pulumi up` issues the rest"
    )

    def differs(self, operation: Operation, olds: Properties, news: Properties) -> bool:
        if news["hosts"] is UNKNOWN:  # while a node's name is
            return True
        store, wanted = store_of(news), _wanted(news, given_to(operation.config))
        store.check(wanted, issued=bool(olds.get("certificates")))
        due = super().differs(operation, olds, news) or bool(store.due(wanted, _now()))
        return due or not _is_in_state(store, wanted, olds)

    def made(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        store = store_of(news)
        with writing("certificates", store.folder):
            held = store.fill(_wanted(news, given_to(operation.config)), _now())
            text = _of_validator(store, news)
            cache.write(store.folder / VALIDATOR_FILE, text, 0o600)
        return {**news, **_outputs(held)}


class Certificates(InternalResource):
    """The authority of the stack, and what it has issued."""

    certificates: pulumi.Output[Mapping[str, str]]
    """By the name of each key store, what differs where it does: a fingerprint."""
    passwords: pulumi.Output[Mapping[str, str]]
    """Which password each user has, not the password."""
    expires: pulumi.Output[str]
    """When the first certificate ends, in ISO 8601."""

    def __init__(
        self,
        name: str,
        spec: SecuritySpec,
        plan: ClusterPlan | pulumi.Output[ClusterPlan],
        root: Path,
        opts: pulumi.ResourceOptions,
        **more: Any,
    ) -> None:
        """``root`` is the folder of the stack's cluster on this machine; ``more`` are inputs of a
        placement's own kind."""
        files = files_of(spec, root)
        props = {
            "stack": name,
            "root": str(root),
            "hosts": applied(plan, lambda it: {node_name(n.id): hosts(n) for n in it.nodes}),
            "users": list(spec.user_names),
            "mechanism": str(spec.mechanism),
            "days": spec.tls.days,
            "renew_days": spec.tls.renew_days,
            "authorities": list(spec.tls.authorities),
            "numbers": dict(spec.password_numbers),
            "private_ca": spec.tls.private_ca or None,
            "files": None if files is None else asdict(files),
            "certificates": None,
            "passwords": None,
            "expires": None,
            **more,
        }
        # a preview in which anything changes knows no output, and would restart all nodes
        kept = with_run_errors(lambda hosts: _kept({**props, "hosts": hosts}))
        self._kept: Any = applied(props["hosts"], kept)
        super().__init__(name, props, opts)

    def of_node(self, id: int) -> pulumi.Output[str]:
        """The fingerprint of the node's certificate: with another one it is to be restarted."""
        return self.of(node_name(id))

    def of(self, name: str) -> pulumi.Output[str]:
        """The fingerprint of the certificate in the key store of that ``name``."""
        return self._known(self.certificates, name, lambda kept: kept.versions)

    def password_of(self, user: str) -> pulumi.Output[str]:
        """Which password ``user`` has, not the password."""
        return self._known(self.passwords, user, lambda kept: kept.passwords)

    def _known(
        self,
        output: pulumi.Output[Mapping[str, str]],
        name: str,
        part: Callable[[KeptVersions], Mapping[str, str]],
    ) -> pulumi.Output[str]:
        made = output.apply(lambda them: them[name])
        if isinstance(self._kept, pulumi.Output):
            return self._kept.apply(lambda kept: part(kept).get(name) or made)
        kept = part(self._kept)
        return known_or(made, kept[name]) if name in kept else made


def hosts(node: Node) -> list[str]:
    """The hosts that clients of ``node`` connect to on listeners with TLS, each once."""
    secured = (it for it in node.listeners if it.protocol.tls)
    return list(dict.fromkeys(host for it in secured for host in it.hosts if isinstance(host, str)))


def _kept(props: Properties) -> KeptVersions:
    if not is_dry_run():
        return KeptVersions({}, {})
    return store_of(props).kept(_wanted(props, given_to()), _now())


def store_of(props: Properties) -> Store:
    """The keys and passwords of the cluster whose folder is ``props["root"]``."""
    return Store(here(props["root"]) / FOLDER)


def _wanted(props: Properties, passwords: Mapping[str, str]) -> WantedCertificates:
    ids = [int(name.rpartition("-")[2]) for name in props["hosts"]]
    files = props.get("files")
    given = read_given(Files(**files), ids) if files else GivenCertificates({}, "")
    private_ca = props.get("private_ca") or ""
    return WantedCertificates(
        stack=props["stack"],
        nodes={name: tuple(hosts) for name, hosts in props["hosts"].items()},
        node=Subject(NODE, unit_of(private_ca, Path(props["root"]))),
        users=tuple(props["users"]),
        days=int(props["days"]),
        renew_days=int(props["renew_days"]),
        given={node_name(id): item.store for id, item in given.nodes.items()},
        authority=authority_of(private_ca) if private_ca else given.authority,
        private_ca=private_ca,
        authorities=tuple(map(int, props.get("authorities") or (1,))),
        numbers={user: int(it) for user, it in (props.get("numbers") or {}).items()},
        given_passwords=passwords,
    )


def _outputs(held: HeldCertificates) -> Properties:
    """The outputs that describe ``held``: none of them is a secret."""
    return {
        "certificates": dict(held.versions),
        "passwords": dict(held.passwords),
        "expires": held.expires.isoformat(timespec="seconds"),
    }


def _is_in_state(store: Store, wanted: WantedCertificates, olds: Properties) -> bool:
    """Whether the state has all that is there: a run may have ended after it was written."""
    if any(olds.get(key) != value for key, value in _outputs(store.held(wanted)).items()):
        return False
    try:
        return (store.folder / VALIDATOR_FILE).read_text() == _of_validator(store, olds)
    except (FileNotFoundError, ValueError):
        return False


def _of_validator(store: Store, props: Properties) -> str:
    return client_properties(store, VALIDATOR, Mechanism(props["mechanism"]))


def _now() -> datetime:
    return datetime.now(UTC)
