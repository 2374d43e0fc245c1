"""Examples on disk: a cluster, what resolvers say of its names, and what one rule finds."""

from dataclasses import replace
from datetime import UTC, datetime
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import yaml

from earshot.certificates.names import SubjectNames
from earshot.certificates.shown import Refusal, ShownCertificate
from earshot.checks.connected import with_lookups
from earshot.facts.cloud import Instance
from earshot.facts.cluster import ClusterFacts
from earshot.facts.connected import ConnectedVpc
from earshot.facts.security_groups import Clients, Ingress, IpRange, Members, UnknownSource
from earshot.listeners.address import parse_address
from earshot.listeners.model import ClusterPlan, Front, Listener, Node
from earshot.listeners.properties import NodeSettings
from earshot.listeners.terms import Protocol, Role, Scope, UnknownHost
from earshot.names.evidence import Declaration, EvidenceKey, gather
from earshot.names.lookup import Diagnosis
from earshot.names.policy import ResolverPolicy
from earshot.rules.rule import Finding, FindingState, Rule, Severity
from tests.doubles.resolvers import Table, TableAsked

HERE = Path(__file__).parent / "examples"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
"""When the certificates of examples are checked."""


def files(rule: str = "*", verdict: str = "*") -> list[Path]:
    """The examples of a rule, `pass` or `fail`."""
    return sorted(HERE.glob(f"{rule}/{verdict}/*.yaml"))


def load(path: Path) -> tuple[ClusterFacts, list[dict[str, str]]]:
    """The facts of an example, and the findings that its rule is expected to yield."""
    document = yaml.safe_load(path.read_text())
    plan = _with_fronts(_plan(document), document.get("fronts", {}))
    placement = document.get("placement", "aws")
    policy = ResolverPolicy.model_validate(
        {"resolvers": document.get("resolvers", {}), "waived": document.get("waived", {})}
    )
    answers = {label: _table(rows) for label, rows in document.get("answers", {}).items()}
    asked = TableAsked(
        answers, tuple(document.get("configured", ())), tuple(document.get("search", ()))
    )
    evidence = gather(plan, policy, placement, _declared(document), asked)
    for item in document.get("no_evidence", ()):
        evidence = {key: value for key, value in evidence.items() if key[2] != item}
    facts = replace(
        ClusterFacts.of(plan, placement),
        addresses={node["id"]: tuple(node.get("addresses", ())) for node in document["nodes"]},
        evidence=evidence,
        waivers=policy.waivers,
        instances={id: _instance(item) for id, item in document.get("instances", {}).items()},
        clients=_clients(document.get("clients")),
        connected=with_lookups(
            plan, tuple(map(ConnectedVpc.read, document.get("connected", ()))), policy, asked
        ),
        certificates={
            id: _certificate(id, item) for id, item in document.get("certificates", {}).items()
        },
        now=NOW,
    )
    settings = {
        id: NodeSettings(
            {k: v for k, v in {**facts.settings[id].values, **changed}.items() if v is not None},
            facts.settings[id].notes,
        )
        for id, changed in document.get("settings", {}).items()
    }
    return replace(facts, settings={**facts.settings, **settings}), document["findings"]


def described(finding: Finding, rule: Rule) -> dict[str, str]:
    """A finding as an example writes it: what is as always is left out."""
    reported = {
        "subject": finding.subject,
        "observed": finding.observed,
        "expected": finding.expected,
    }
    if finding.remedy != rule.remedy:
        reported["remedy"] = finding.remedy
    if finding.resolver is not None:
        reported["resolver"] = finding.resolver
    if finding.severity is not Severity.ERROR:
        reported["severity"] = str(finding.severity)
    if finding.state is not FindingState.VIOLATED:
        reported["state"] = str(finding.state)
    return reported


def _plan(document: dict[str, Any]) -> ClusterPlan:
    return ClusterPlan(
        kafka_version=document.get("kafka", "4.1.1"),
        inter_broker=document.get("inter_broker", "INTERNAL"),
        controller="CONTROLLER",
        replication_factor=1,
        min_insync_replicas=1,
        nodes=tuple(_node(item) for item in document["nodes"]),
    )


def _with_fronts(plan: ClusterPlan, fronts: dict[str, Any]) -> ClusterPlan:
    """``plan`` with what forwards to listeners, by their names: the fields of `Front`."""
    nodes = [
        node.model_copy(
            update={
                "listeners": tuple(
                    it.model_copy(update={"front": Front.model_validate(fronts[it.name])})
                    if it.name in fronts
                    else it
                    for it in node.listeners
                )
            }
        )
        for node in plan.nodes
    ]
    return plan.model_copy(update={"nodes": tuple(nodes)})


def _node(item: dict[str, Any]) -> Node:
    return Node(
        id=item["id"],
        roles=tuple(Role(role) for role in item.get("roles", "broker").split("+")),
        listeners=tuple(_listener(text) for text in item["listeners"]),
    )


def _listener(text: str) -> Listener:
    """`NAME://host:port scope[+scope] [PROTOCOL]`; a host `?` is not known yet."""
    entry, scopes, *protocol = text.split()
    name, _, rest = entry.partition("://")
    if rest.startswith("?:"):
        host: str | UnknownHost = UnknownHost(what="Elastic IP")
        port = int(rest.removeprefix("?:"))
    else:
        host, port = parse_address(rest)
    return Listener(
        name=name,
        protocol=Protocol(*protocol) if protocol else Protocol.PLAINTEXT,
        scopes=tuple(Scope(scope) for scope in scopes.split("+")),
        bind_port=port,
        host=host,
        port=port,
    )


def _instance(item: dict[str, list[str]]) -> Instance:
    """`ingress`: `PORT[-PORT] from SOURCE`; `elastic`: addresses, where `?` is not known yet."""
    ingress = [_ingress(text) for text in item["ingress"]] if "ingress" in item else None
    unknown = UnknownHost(what="Elastic IP")
    elastic = [unknown if text == "?" else text for text in item.get("elastic", ())]
    return Instance(
        ingress=None if ingress is None else tuple(ingress),
        elastic=tuple(elastic) if "elastic" in item else None,
    )


def _ingress(text: str) -> Ingress:
    ports, _, source = text.partition(" from ")
    first, _, last = ports.partition("-")
    return Ingress(int(first), int(last or first), _source(source))


def _source(text: str) -> IpRange | Members | UnknownSource:
    """`group NAME`, a range, or anything else for what cannot be read."""
    if text.startswith("group "):
        return Members(text.removeprefix("group "))
    return UnknownSource(text) if " " in text else ip_network(text)


def _clients(document: dict[str, list[str]] | None) -> Clients | None:
    if document is None:
        return None
    internal = [_source(text) for text in document.get("internal", ())]
    return Clients(
        internal=tuple(item for item in internal if not isinstance(item, UnknownSource)),
        external=tuple(ip_network(text) for text in document.get("external", ())),
    )


def _certificate(id: int, item: dict[str, Any]) -> ShownCertificate:
    """`names`, and of the rest what is not as it should be."""
    first, last = item.get("valid", "2025-12-01 2026-12-01").split()
    held = SubjectNames.of_hosts(item["names"])
    uses = item.get("uses", "servers clients").split()
    return ShownCertificate(
        held,
        datetime.fromisoformat(f"{first}T00:00+00:00"),
        datetime.fromisoformat(f"{last}T00:00+00:00"),
        item.get("key", str(id)),
        item.get("missing", ""),
        "servers" in uses,
        "clients" in uses,
        Refusal(**item["refusal"]) if "refusal" in item else None,
    )


def _table(rows: dict[str, str]) -> Table:
    return {
        name: Diagnosis(text) if text in list(Diagnosis) else tuple(text.split())
        for name, text in rows.items()
    }


def _declared(document: dict[str, Any]) -> dict[EvidenceKey, Declaration]:
    return {
        (item["listener"], Scope(item["scope"]), item["host"]): Declaration(
            item["why"], tuple(item.get("addresses", "").split())
        )
        for item in document.get("declared", ())
    }
