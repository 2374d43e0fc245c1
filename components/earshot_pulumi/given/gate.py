"""The gate: an instance of earshot's own provider, whose check applies the rules.

Providers take part in every run, also in one with `--target`, and are checked before anything that
depends on them is touched. What a broker is made from depends on `approved`.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import pulumi

from earshot import __version__
from earshot.checks.plan import check_plan
from earshot.errors import EarshotError
from earshot.facts.cloud import Cloud
from earshot.facts.security_groups import Clients
from earshot.listeners.model import ClusterPlan
from earshot.names.evidence import Declaration, EvidenceKey
from earshot.names.policy import read_policy
from earshot_pulumi.provider.kind import UNKNOWN, InvalidInputs, Properties, Unknown
from earshot_pulumi.provider.resource import PACKAGE

VANTAGES = {"machine": "local", "network": "docker", "vpc": "aws", "elsewhere": "given"}
"""Where clients of scope internal run, and the placement whose predictions hold for them."""


class Gate(pulumi.ProviderResource):
    """Approves a plan, or refuses it with the rules' findings."""

    approved: pulumi.Output[str]
    """The digest of the approved inputs; not known before all names are."""

    def __init__(
        self,
        name: str,
        inputs: Mapping[str, pulumi.Input[Any]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """``inputs``: `plan`, `vantage`, `names` (a resolver policy) and `declared` (by scope)."""
        own = pulumi.ResourceOptions(version=__version__)
        super().__init__(
            PACKAGE, name, {**inputs, "approved": None}, pulumi.ResourceOptions.merge(own, opts)
        )


def judge(inputs: Properties) -> Properties:
    """The inputs of a provider instance; for a gate, with `approved`.

    Raises InvalidInputs with every finding of error grade that is certain.
    """
    document = inputs.get("plan")
    if document is None:
        return inputs  # a provider instance that is not a gate
    if isinstance(document, Unknown):
        return {**inputs, "approved": UNKNOWN}
    try:
        errors, known = _findings(inputs)
    except EarshotError as error:
        raise InvalidInputs({"plan": str(error)}) from None
    if errors:
        raise InvalidInputs({"plan": "\n" + "\n".join(errors)})
    return {**inputs, "approved": _digest(inputs) if known else UNKNOWN}


def _findings(inputs: Properties) -> tuple[list[str], bool]:
    """The certain errors of a gate's plan, and whether all of its hosts are known."""
    plan = ClusterPlan.model_validate(inputs["plan"])
    declared = _declared(plan, inputs.get("declared") or {})
    addresses = {int(id): tuple(own) for id, own in (inputs.get("addresses") or {}).items()}
    checked = check_plan(
        plan,
        VANTAGES[inputs.get("vantage") or "elsewhere"],
        read_policy(inputs.get("names") or {}),
        addresses=addresses,
        containers={},
        cloud=Cloud(instances={}, clients=Clients(), declared=declared),
    )
    errors = [finding.line for finding in checked.findings if finding.is_certain_error]
    return errors, all(item.known for node in plan.nodes for item in node.listeners)


def _declared(plan: ClusterPlan, reasons: Mapping[str, str]) -> dict[EvidenceKey, Declaration]:
    return {
        (item.name, scope, str(item.host)): Declaration(reasons[scope])
        for node in plan.nodes
        for item in node.listeners
        for scope in item.scopes
        if reasons.get(scope) and item.known
    }


def _digest(inputs: Properties) -> str:
    judged = {key: item for key, item in inputs.items() if key not in ("approved", "version")}
    text = json.dumps(judged, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
