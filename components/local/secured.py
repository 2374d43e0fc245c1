"""What a secured cluster has beside its nodes: certificates before them, users after them."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
from pulumi.dynamic import Resource

from components.local.security import CertificatesProvider, UsersProvider
from earshot.config.security import SecuritySpec
from earshot.listeners.model import ClusterPlan, Node
from earshot.listeners.security import node_name
from earshot.placement import LocalPlan


class LocalCertificates(Resource, module="earshot", name="LocalCertificates"):
    """The authority of the stack, and what it has issued."""

    certificates: pulumi.Output[Mapping[str, str]]
    """Fingerprints, by the name of each key store."""
    passwords: pulumi.Output[Mapping[str, str]]
    """Which password each user has, not the password."""
    expires: pulumi.Output[str]
    """When the first certificate ends, in ISO 8601."""

    def __init__(
        self, name: str, spec: SecuritySpec, local: LocalPlan, opts: pulumi.ResourceOptions
    ) -> None:
        props = {
            "stack": name,
            "root": str(local.root),
            "hosts": {node_name(it.id): hosts(it) for it in local.plan.nodes},
            "users": list(spec.user_names),
            "mechanism": str(spec.mechanism),
            "days": spec.tls.days,
            "renew_days": spec.tls.renew_days,
            "certificates": None,
            "passwords": None,
            "expires": None,
        }
        super().__init__(CertificatesProvider(), name, props, opts)


class LocalUsers(Resource, module="earshot", name="LocalUsers"):
    """The users of a cluster that serves, and what they may do."""

    def __init__(
        self,
        name: str,
        spec: SecuritySpec,
        local: LocalPlan,
        cluster_id: pulumi.Output[str],
        passwords: pulumi.Output[Mapping[str, str]],
        opts: pulumi.ResourceOptions,
    ) -> None:
        plan = local.plan
        props = {
            "root": str(local.root),
            "cluster_id": cluster_id,
            "users": {item.name: list(item.prefixes) for item in spec.users},
            "mechanism": str(spec.mechanism),
            "passwords": passwords,
            "brokers": _addresses(plan, plan.inter_broker),
            "logins": _addresses(plan, _login_listener(plan)),
        }
        super().__init__(UsersProvider(), name, props, opts)


def hosts(node: Node) -> list[str]:
    """What ``node`` advertises on its listeners with TLS, each host once."""
    return list(dict.fromkeys(it.advertised.host for it in node.listeners if it.protocol.tls))


def _login_listener(plan: ClusterPlan) -> str:
    """A listener that asks for a password; empty where none does."""
    names = (it.name for node in plan.brokers for it in node.listeners if it.protocol.sasl)
    return next(names, "")


def _addresses(plan: ClusterPlan, name: str) -> dict[str, str]:
    found = ((str(node.id), node.listener(name)) for node in plan.brokers)
    return {id: str(item.advertised) for id, item in found if item is not None}
