"""Plan and rules for many brokers, with names that are answered from memory."""

import gc
import time
from dataclasses import replace

from earshot.config.document import read_spec
from earshot.facts.cluster import ClusterFacts
from earshot.listeners.terms import Scope
from earshot.names.evidence import Evidence, EvidenceKey, EvidenceKind
from earshot.names.lookup import Diagnosis, Lookup
from earshot.placement.plan import NodeNames, plan
from earshot.rules.evaluate import evaluate

LISTENERS = (
    ("INTERNAL", 19092, "internal"),
    ("EXTERNAL", 9092, "external"),
    ("PARTNER", 9192, "external"),
)


def seconds_for(brokers: int) -> float:
    """CPU-bound seconds of plan and check for ``brokers`` with three listeners each."""
    listeners = [{"name": name, "port": port, "scopes": [scope]} for name, port, scope in LISTENERS]
    document = {"placement": "local", "brokers": brokers, "listeners": listeners}
    spec = read_spec(document | {"controllers": {"count": 3}}, "bench")
    names, evidence = _names_and_evidence(spec.node_ids)
    addresses = {id: node_names.addresses for id, node_names in names.items()}
    gc.collect()  # neither size pays for the other's garbage
    start_time = time.perf_counter()
    cluster_plan = plan(spec, names)
    facts = replace(ClusterFacts.of(cluster_plan, "aws"), addresses=addresses, evidence=evidence)
    findings = evaluate(facts)
    seconds = time.perf_counter() - start_time
    assert not [node_names for node_names in findings if node_names.severity == "error"], findings[
        0
    ]
    return seconds


def _names_and_evidence(
    ids: tuple[int, ...],
) -> tuple[dict[int, NodeNames], dict[EvidenceKey, Evidence]]:
    """Names of brokers, and the answers of the resolvers of their zones."""
    names: dict[int, NodeNames] = {}
    evidence: dict[EvidenceKey, Evidence] = {}
    for id in ids:
        inner, outer = f"10.0.{id // 250}.{id % 250 + 1}", f"8.8.{id // 250}.{id % 250 + 1}"
        private, public = f"b{id}.internal.example.com", f"b{id}.example.com"
        names[id] = NodeNames(
            hosts={Scope.INTERNAL: private, Scope.CONTROLLER: private, Scope.EXTERNAL: public},
            addresses=(inner, outer),
        )
        lookups = (
            ("INTERNAL", Scope.INTERNAL, private, inner),
            ("CONTROLLER", Scope.CONTROLLER, private, inner),
            ("EXTERNAL", Scope.EXTERNAL, public, outer),
            ("PARTNER", Scope.EXTERNAL, public, outer),
        )
        for listener, scope, host, address in lookups:
            lookup = Lookup(host, "memory", Diagnosis.OK, (address,), 0.0)
            evidence[listener, scope, host] = Evidence(EvidenceKind.LIVE, lookup, "from memory")
    return names, evidence
