"""Checks a gate's inputs: reads them back into facts, looks up names, and runs the rules.

The plugin calls `judge` when an instance of the provider is checked; the policy pack uses
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
from earshot.listeners.terms import Scope, UnknownHost
from earshot.names.evidence import Declaration, EvidenceKey
from earshot.names.policy import ResolverPolicy
from earshot.rules.evaluate import CheckResult
from earshot.rules.grouped import grouped
from earshot.rules.rule import Finding, FindingState
from earshot.sources.docker_container import read_container
from earshot.topology.container import Container
from earshot_pulumi.provider.kind import (
    UNKNOWN,
    Inputs,
    InvalidInputs,
    Properties,
    Show,
    Unknown,
    has_unknown,
)

PREVIEW_UNKNOWN = UnknownHost(what="a value of a resource that is still to be made").written
WHOLE = ("plan", "addresses", "cloud", "certificates", "policy")
"""Inputs without which no rule is checked. Parts of them may be unknown, except of `policy`."""
MAPS = (*(key for key in WHOLE if key != "cloud"), "containers", "declared")

_NOT_CHECKED = frozenset({"approved", "received", "version"})
"""Keys of a gate that are no inputs of the check."""


def judge(inputs: Properties, show: Show) -> Properties:
    """The inputs of a gate with `approved`, their digest, and `received`, their keys.

    ``show`` gets findings that do not stop an update. `approved` is unknown while a host, a part of
    the policy, a declaration or one of the cluster's inputs (`unknown`) is. Raises InvalidInputs
    with every finding that stops an update.
    """
    if wrong := dict(_wrong_types(inputs)):
        raise InvalidInputs(wrong)
    # the program's SDK shows an input that a transform removed as if the gate had got it
    outputs = {**inputs, "received": sorted(inputs.keys() - _NOT_CHECKED)}
    # if a level or a waiver is unknown, so is whether a finding stops an update
    unknown = [key for key in WHOLE if isinstance(inputs.get(key), Unknown)]
    if unknown or has_unknown(inputs.get("policy")):
        subject = ", ".join(inputs.get("unknown") or unknown or ["policy"])
        show(f"not checked: the advertised listeners: {subject}: not known yet", False)
        return {**outputs, "approved": UNKNOWN}
    try:
        plan, refused = _judged(inputs, show)
    except ValidationError as error:  # its text contains values, which may be secret
        keys = {".".join(map(str, problem["loc"])) for problem in error.errors()}
        raise InvalidInputs({"plan": f"plan: found other keys or values: {sorted(keys)}"}) from None
    except (EarshotError, ValueError) as error:
        raise InvalidInputs({"plan": str(error)}) from None
    if refused:
        raise InvalidInputs({"plan": "\n" + "\n".join(map(str, grouped(refused)))})
    is_known = all(listener.known for node in plan.nodes for listener in node.listeners)
    if not is_known or inputs.get("unknown") or has_unknown(inputs.get("declared")):
        return {**outputs, "approved": UNKNOWN}
    return {**outputs, "approved": _digest(inputs)}


@dataclass(frozen=True)
class GateInputs:
    """The inputs of a gate as facts."""

    plan: ClusterPlan
    placement: str
    addresses: Mapping[int, tuple[str, ...]]
    containers: Mapping[int, Container] | NotKnown
    cloud: Cloud | None
    declared: Mapping[EvidenceKey, Declaration]
    certificates: Mapping[int, ShownCertificate]

    @classmethod
    def read(cls, inputs: Inputs, containers: Any) -> GateInputs:
        """The facts in ``inputs``, whose unknown values are `PREVIEW_UNKNOWN`.

        ``containers`` has None for unknown values, and is None if all of them are unknown. Raises
        EarshotError or ValueError, also for keys or values of another release.
        """
        try:
            return cls._read(inputs, containers)
        except (AttributeError, LookupError, TypeError):
            text = "the gate's inputs: found other keys or values than this release reads"
            fix = "let program and plugin be of one release of earshot"
            raise ValueError(f"{text}\n  fix: {fix}") from None

    @classmethod
    def _read(cls, inputs: Inputs, containers: Any) -> GateInputs:
        plan = ClusterPlan.model_validate(inputs["plan"])
        addresses = {
            int(id): tuple(texts)
            for id, texts in inputs.get("addresses", {}).items()
            if isinstance(texts, list) and PREVIEW_UNKNOWN not in texts
        }
        return cls(
            plan,
            str(inputs["placement"]),
            dict.fromkeys((node.id for node in plan.nodes), ()) | addresses,
            NotKnown.YET
            if containers is None
            else {int(id): read_container(container) for id, container in containers.items()},
            Cloud.read(inputs["cloud"]) if "cloud" in inputs else None,
            _declared(plan, inputs.get("declared", {})),
            {
                int(id): ShownCertificate.read(certificate)
                for id, certificate in inputs.get("certificates", {}).items()
            },
        )

    def check(self, policy: ResolverPolicy) -> CheckResult:
        """The result of the rules, with names looked up by ``policy``."""
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
    """Inputs of the wrong type that Pulumi's types cannot reject, each with the reason."""
    if "plan" not in inputs:
        yield "plan", "plan: is missing\n  fix: let no transform remove an input of the gate"
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
        elif key == "declared" and (
            scopes := [
                scope for scope, text in value.items() if isinstance(text, str) and not text.strip()
            ]
        ):
            yield key, f"{key}: found a blank reason for {', '.join(scopes)}; allowed: the reason"


def _are_texts(value: object) -> bool:
    return isinstance(value, Unknown) or (
        isinstance(value, list) and all(isinstance(text, str | Unknown) for text in value)
    )


def _judged(inputs: Properties, show: Show) -> tuple[ClusterPlan, Iterable[Finding]]:
    try:
        config = read_config(inputs.get("policy") or {})
    except ValueError as error:
        raise ValueError(f"policy: {error}") from None
    document = {key: _marked(value, PREVIEW_UNKNOWN) for key, value in inputs.items()}
    gate = GateInputs.read(document, _marked(inputs.get("containers", {}), None))
    result = gate.check(config.names)
    for group in grouped(config.shown(result)):
        if group.first.state is FindingState.VIOLATED:
            show(str(group), True)
        else:
            show(f"not checked: {group}", False)
    for text in config.remarks(result):
        show(text, False)
    return gate.plan, config.refused(result)


def _declared(
    plan: ClusterPlan, reasons: Mapping[str, str | Mapping[str, str]]
) -> dict[EvidenceKey, Declaration]:
    """The declarations of known hosts; with unknown ``reasons`` every scope may have one."""
    if reasons == PREVIEW_UNKNOWN:
        reasons = dict.fromkeys(Scope, PREVIEW_UNKNOWN)
    texts = {
        scope: reason if isinstance(reason, str) else UnknownHost.read(reason).what
        for scope, reason in reasons.items()
    }
    return {
        (listener.name, scope, str(host)): Declaration(texts[scope])
        for node in plan.nodes
        for listener in node.listeners
        for host in listener.hosts
        for scope in listener.scopes
        if texts.get(scope) and isinstance(host, str)
    }


def _marked(value: Any, unknown: Any) -> Any:
    """``value`` with each unknown part replaced with ``unknown``."""
    if isinstance(value, Unknown):
        return unknown
    if isinstance(value, Mapping):
        return {key: _marked(part, unknown) for key, part in value.items()}
    return [_marked(part, unknown) for part in value] if isinstance(value, list) else value


def _digest(inputs: Properties) -> str:
    checked_inputs = {key: value for key, value in inputs.items() if key not in _NOT_CHECKED}
    text = json.dumps(checked_inputs, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
