"""The gate: a whole cluster's plan, evaluated before any of its brokers is touched."""

from typing import Any

from earshot_pulumi.gate import digest

from earshot.certificates.shown import ShownCertificate
from earshot.checks.plan import check_plan
from earshot.facts.cloud import Cloud
from earshot.facts.cluster import NotKnown
from earshot.listeners.model import ClusterPlan
from earshot.names.policy import ResolverPolicy
from earshot.sources.docker_container import read_container
from earshot_policies.evaluation import Evaluation, part, plain


def evaluate_gate(props: Any, policy: ResolverPolicy) -> Evaluation:
    """The gate with the inputs ``props``, read back into what the library's check takes."""
    document = plain(props)
    plan = ClusterPlan.model_validate(document["plan"])
    containers = part(props, "containers", None)
    known = {int(id): tuple(own) for id, own in document["addresses"].items()}
    found = check_plan(
        plan,
        str(document["placement"]),
        policy,
        addresses=dict.fromkeys((node.id for node in plan.nodes), ()) | known,
        containers=NotKnown.YET
        if containers is None
        else {int(id): read_container(item) for id, item in containers.items()},
        cloud=Cloud.read(document["cloud"]) if "cloud" in document else None,
        certificates={
            int(id): ShownCertificate.read(item)
            for id, item in document.get("certificates", {}).items()
        },
    )
    return Evaluation(found.findings, found.remarks, digest(document), plan)
