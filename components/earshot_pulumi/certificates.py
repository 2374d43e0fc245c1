"""Certificates of a secured cluster as a resource: issued before nodes start, renewed in time.

Keys and passwords stay in files of this machine; the state has only fingerprints and versions.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pulumi
from pulumi.runtime import is_dry_run

from earshot.certificates.authority import Subject
from earshot.certificates.client import client_properties
from earshot.certificates.node_pem import Files, NodeCertificates, read_certificates
from earshot.certificates.private_ca import authority_of
from earshot.certificates.store import Store, StoredCertificates, UnchangedVersions
from earshot.certificates.target import TargetCertificates
from earshot.config.security import SecuritySpec
from earshot.files import cache
from earshot.listeners.model import ClusterPlan, Node
from earshot.listeners.security import FOLDER, NODE, VALIDATOR, VALIDATOR_FILE, node_id, node_name
from earshot.listeners.terms import Mechanism
from earshot.placement.secured import files_of, unit_of
from earshot_pulumi.file_access import writing
from earshot_pulumi.outputs import applied, known_or, with_run_errors
from earshot_pulumi.passwords import given_to
from earshot_pulumi.properties import here
from earshot_pulumi.provider.kind import UNKNOWN, Kind, Operation, Properties
from earshot_pulumi.provider.resource import InternalResource


class CertificatesKind(Kind):
    """Issues a certificate per node and user."""

    ID = "certificates"
    DECISIVE = ("root", "hosts", "users", "mechanism", "days", "renew_days", "files", "private_ca")
    """Inputs whose change issues certificates; the folder's files decide too."""
    interrupted = (
        "interrupted while certificates were issued: those in files are whole; the next "
        "`pulumi up` issues the rest"
    )

    def differs(self, operation: Operation, olds: Properties, news: Properties) -> bool:
        if news["hosts"] is UNKNOWN:  # a node's name is unknown
            return True
        store, target = store_of(news), _target(news, given_to(operation.config))
        store.check(target, issued=bool(olds.get("certificates")))
        is_due = super().differs(operation, olds, news) or bool(store.due(target, _now()))
        return is_due or not _is_in_state(store, target, olds)

    def apply(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        store = store_of(news)
        with writing("certificates", store.folder):
            issued = store.fill(_target(news, given_to(operation.config)), _now())
            text = _of_validator(store, news)
            cache.write(store.folder / VALIDATOR_FILE, text, 0o600)
        return {**news, **_outputs(issued)}


class Certificates(InternalResource):
    """The authority of the stack, and the certificates that it has issued."""

    certificates: pulumi.Output[Mapping[str, str]]
    """A fingerprint by name of the key store."""
    passwords: pulumi.Output[Mapping[str, str]]
    """The version of each user's password, by user; not the password."""
    expires: pulumi.Output[str]
    """The earliest expiry of a certificate, in ISO 8601."""

    def __init__(
        self,
        name: str,
        spec: SecuritySpec,
        plan: ClusterPlan | pulumi.Output[ClusterPlan],
        root: Path,
        opts: pulumi.ResourceOptions,
        **kind_inputs: Any,
    ) -> None:
        """``root`` is the folder of the stack's cluster on this machine; ``kind_inputs`` are
        further inputs of a placement's kind."""
        files = files_of(spec, root)
        props = {
            "stack": name,
            "root": str(root),
            "hosts": applied(
                plan,
                lambda known_plan: {node_name(node.id): hosts(node) for node in known_plan.nodes},
            ),
            "users": list(spec.user_names),
            "mechanism": str(spec.mechanism),
            "days": spec.tls.days,
            "renew_days": spec.tls.renew_days,
            "authorities": list(spec.tls.authorities),
            "numbers": dict(spec.password_numbers),
            "private_ca": spec.tls.private_ca or None,
            "files": None if files is None else asdict(files),
            **kind_inputs,
        }
        # a preview with any change knows no output, and would show a restart of all nodes
        read_unchanged = with_run_errors(
            lambda hosts: _unchanged_versions({**props, "hosts": hosts})
        )
        self._unchanged: Any = applied(props["hosts"], read_unchanged)
        super().__init__(name, props, opts)

    def of_node(self, id: int) -> pulumi.Output[str]:
        """The fingerprint of the node's certificate; a change restarts the node."""
        return self.of(node_name(id))

    def of(self, name: str) -> pulumi.Output[str]:
        """The fingerprint of the certificate in the key store ``name``."""
        return self._known(self.certificates, name, lambda versions: versions.versions)

    def password_of(self, user: str) -> pulumi.Output[str]:
        """The version of the password of ``user``, not the password."""
        return self._known(self.passwords, user, lambda versions: versions.passwords)

    def _known(
        self,
        output: pulumi.Output[Mapping[str, str]],
        name: str,
        select: Callable[[UnchangedVersions], Mapping[str, str]],
    ) -> pulumi.Output[str]:
        """The value of ``output`` at ``name``; if a preview does not know it, the unchanged one."""
        version = output.apply(lambda versions: versions[name])
        if isinstance(self._unchanged, pulumi.Output):
            return self._unchanged.apply(lambda unchanged: select(unchanged).get(name) or version)
        versions = select(self._unchanged)
        return known_or(version, versions[name]) if name in versions else version


def hosts(node: Node) -> list[str]:
    """The hosts that clients of ``node`` connect to on listeners with TLS, each once."""
    tls_listeners = (listener for listener in node.listeners if listener.protocol.tls)
    return list(
        dict.fromkeys(
            host for listener in tls_listeners for host in listener.hosts if isinstance(host, str)
        )
    )


def _unchanged_versions(props: Properties) -> UnchangedVersions:
    if not is_dry_run():
        return UnchangedVersions({}, {})
    return store_of(props).unchanged(_target(props, given_to()), _now())


def store_of(props: Properties) -> Store:
    """The keys and passwords of the cluster whose folder is ``props["root"]``."""
    return Store(here(props["root"]) / FOLDER)


def _target(props: Properties, passwords: Mapping[str, str]) -> TargetCertificates:
    ids = [node_id(name) for name in props["hosts"]]
    files = props.get("files")
    own_certificates = read_certificates(Files(**files), ids) if files else NodeCertificates({}, "")
    private_ca = props.get("private_ca") or ""
    return TargetCertificates(
        stack=props["stack"],
        nodes={name: tuple(hosts) for name, hosts in props["hosts"].items()},
        node=Subject(NODE, unit_of(private_ca, Path(props["root"]))),
        users=tuple(props["users"]),
        days=int(props["days"]),
        renew_days=int(props["renew_days"]),
        given={
            node_name(id): certificate.store for id, certificate in own_certificates.nodes.items()
        },
        authority=authority_of(private_ca) if private_ca else own_certificates.authority,
        private_ca=private_ca,
        authorities=tuple(map(int, props.get("authorities") or (1,))),
        numbers={user: int(number) for user, number in (props.get("numbers") or {}).items()},
        given_passwords=passwords,
    )


def _outputs(issued: StoredCertificates) -> Properties:
    """The outputs for ``issued``, none of them secret."""
    return {
        "certificates": dict(issued.versions),
        "passwords": dict(issued.passwords),
        "expires": issued.expires.isoformat(timespec="seconds"),
    }


def _is_in_state(store: Store, target: TargetCertificates, olds: Properties) -> bool:
    """True if ``olds`` match the files, which an interrupted run may have changed."""
    if any(olds.get(key) != value for key, value in _outputs(store.contents(target)).items()):
        return False
    try:
        return (store.folder / VALIDATOR_FILE).read_text() == _of_validator(store, olds)
    except (FileNotFoundError, ValueError):
        return False


def _of_validator(store: Store, props: Properties) -> str:
    return client_properties(store, VALIDATOR, Mechanism(props["mechanism"]))


def _now() -> datetime:
    return datetime.now(UTC)
