"""The check of a gate's inputs: read back into facts, looked up, and judged by the rules.

The plugin calls `judge` whenever an instance of the provider is checked; the policy pack calls
`GateInputs`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from earshot.certificates.shown import ShownCertificate
from earshot.checks.plan import check_plan
from earshot.checks.policy_config import read_config
from earshot.errors import EarshotError
from earshot.facts.cloud import Cloud
from earshot.facts.cluster import NotKnown
from earshot.listeners.model import ClusterPlan
from earshot.listeners.problems import shown
from earshot.listeners.terms import UnknownHost
from earshot.names.evidence import Declaration, EvidenceKey
from earshot.names.policy import ResolverPolicy
from earshot.rules.evaluate import CheckResult
from earshot.rules.grouped import grouped
from earshot.rules.registry import Finding, FindingState
from earshot.sources.docker_container import read_container
from earshot.topology.container import Container
from earshot_pulumi.provider.kind import UNKNOWN, InvalidInputs, Properties, Show, Unknown

PREVIEW_UNKNOWN = UnknownHost(what="a value of a resource that is still to be made").written
WHOLE = ("plan", "addresses", "cloud", "certificates", "policy")
"""Inputs that are checked once they are known; parts of them may be unknown."""
MAPS = (*(key for key in WHOLE if key != "cloud"), "containers", "declared")


def judge(inputs: Properties, show: Show) -> Properties:
    """The inputs of a gate with `approved`.

    ``show`` gets what stops nothing. `unknown` are the inputs of a cluster that a preview does not
    know: nothing is approved without them. Raises InvalidInputs with every finding that stops an
    update.
    """
    if wrong := dict(_wrong_types(inputs)):
        raise InvalidInputs(wrong)
    if any(isinstance(inputs.get(key), Unknown) for key in WHOLE):
        return {**inputs, "approved": UNKNOWN}
    try:
        plan, refused = _judged(inputs, show)
    except ValidationError as error:  # its text has the values, secrets among them
        keys = {".".join(map(str, item["loc"])) for item in error.errors()}
        raise InvalidInputs({"plan": f"plan: found other keys or values: {sorted(keys)}"}) from None
    except (EarshotError, ValueError) as error:
        raise InvalidInputs({"plan": str(error)}) from None
    if refused:
        raise InvalidInputs({"plan": "\n" + "\n".join(map(str, grouped(refused)))})
    known = all(item.known for node in plan.nodes for item in node.listeners)
    if not known or inputs.get("unknown"):
        return {**inputs, "approved": UNKNOWN}
    return {**inputs, "approved": _digest(inputs)}


@dataclass(frozen=True)
class GateInputs:
    """The inputs of a gate, read back into facts."""

    plan: ClusterPlan
    placement: str
    addresses: Mapping[int, tuple[str, ...]]
    containers: Mapping[int, Container] | NotKnown
    cloud: Cloud | None
    declared: Mapping[EvidenceKey, Declaration]
    certificates: Mapping[int, ShownCertificate]

    @classmethod
    def read(cls, inputs: Mapping[str, Any], containers: Any) -> GateInputs:
        """The facts of ``inputs``, which have `PREVIEW_UNKNOWN` for unknown values.

        ``containers`` have None for unknown values, and are None if all of them are unknown.
        Raises EarshotError and ValueError, also for keys or values of another release.
        """
        try:
            return cls._read(inputs, containers)
        except (AttributeError, LookupError, TypeError):
            text = "the gate's inputs: found other keys or values than this release reads"
            fix = "let program and plugin be of one release of earshot"
            raise ValueError(f"{text}\n  fix: {fix}") from None

    @classmethod
    def _read(cls, inputs: Mapping[str, Any], containers: Any) -> GateInputs:
        plan = ClusterPlan.model_validate(inputs["plan"])
        addresses = {int(id): tuple(own) for id, own in inputs.get("addresses", {}).items()}
        return cls(
            plan,
            str(inputs["placement"]),
            dict.fromkeys((node.id for node in plan.nodes), ()) | addresses,
            NotKnown.YET
            if containers is None
            else {int(id): read_container(item) for id, item in containers.items()},
            Cloud.read(inputs["cloud"]) if "cloud" in inputs else None,
            _declared(plan, inputs.get("declared", {})),
            {
                int(id): ShownCertificate.read(item)
                for id, item in inputs.get("certificates", {}).items()
            },
        )

    def check(self, policy: ResolverPolicy) -> CheckResult:
        """The rules' result."""
        return check_plan(
            self.plan,
            self.placement,
            policy,
            addresses=self.addresses,
            containers=self.containers,
            cloud=self.cloud,
            declared=self.declared,
            certificates=self.certificates,
        )


def _wrong_types(inputs: Properties) -> Iterator[tuple[str, str]]:
    """The inputs that a program may pass as outputs and that have another type, with the reason."""
    for key in MAPS:
        value = inputs.get(key)
        if value is None or isinstance(value, Unknown):
            continue
        if not isinstance(value, Mapping):
            yield key, f"{key}: found {shown(value)}; allowed: a map"
        elif key == "addresses" and not all(map(_are_texts, value.values())):
            yield key, f"{key}: found {shown(value)}; allowed: lists of IP addresses by node id"
        elif key == "declared" and not _are_texts([*value.values()]):
            yield key, f"{key}: found {shown(value)}; allowed: reasons by scope, each a text"


def _are_texts(value: object) -> bool:
    return isinstance(value, Unknown) or (
        isinstance(value, list) and all(isinstance(item, str | Unknown) for item in value)
    )


def _judged(inputs: Properties, show: Show) -> tuple[ClusterPlan, Iterable[Finding]]:
    config = read_config(inputs.get("policy") or {})
    document = {key: _marked(item, PREVIEW_UNKNOWN) for key, item in inputs.items()}
    gate = GateInputs.read(document, _marked(inputs.get("containers", {}), None))
    checked = gate.check(config.names)
    for group in grouped(config.shown(checked)):
        show(str(group), group.first.state is FindingState.VIOLATED)
    for text in checked.remarks:
        show(text, False)
    return gate.plan, config.refused(checked)


def _declared(plan: ClusterPlan, reasons: Mapping[str, str]) -> dict[EvidenceKey, Declaration]:
    return {
        (item.name, scope, str(item.host)): Declaration(reasons[scope])
        for node in plan.nodes
        for item in node.listeners
        for scope in item.scopes
        if reasons.get(scope) and item.known
    }


def _marked(value: Any, unknown: Any) -> Any:
    """``value`` with ``unknown`` for each value that is not known."""
    if isinstance(value, Unknown):
        return unknown
    if isinstance(value, Mapping):
        return {key: _marked(item, unknown) for key, item in value.items()}
    return [_marked(item, unknown) for item in value] if isinstance(value, list) else value


def _digest(inputs: Properties) -> str:
    judged = {key: item for key, item in inputs.items() if key not in ("approved", "version")}
    text = json.dumps(judged, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
