"""The rules' result for one resource, that of a gate, and a reader of the engine's inputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from earshot_pulumi.provider.judge import PREVIEW_UNKNOWN, GateInputs
from pulumi_policy import PolicyResource

from earshot.errors import EarshotError
from earshot.json_object import Document
from earshot.listeners.model import ClusterPlan
from earshot.names.policy import ResolverPolicy
from earshot.rules import kl002_kafka
from earshot.rules.rule import Finding, FindingState
from earshot.sources.stack_resources import RegisteredResource


@dataclass(frozen=True)
class Evaluation:
    """The rules' result for one gate, container or instance."""

    findings: tuple[Finding, ...] = ()
    remarks: tuple[str, ...] = ()
    plan: ClusterPlan | None = None
    """A gate's plan, to compare with the brokers behind the gate."""
    disagreements: tuple[str, ...] = ()
    """The differences between the listeners of a broker behind a gate and the gate's plan."""


def plain(value: Any, unknown: Any = PREVIEW_UNKNOWN) -> Any:
    """``value`` without the engine's proxies. A value that a preview does not know is ``unknown``.

    A key without a value is left out, so that None can mean an unknown value.
    """
    if isinstance(value, Mapping) or hasattr(value, "items"):
        values = {str(key): _value_at(value, key, unknown) for key in list(value)}
        return {key: value for key, value in values.items() if value is not _MISSING}
    if isinstance(value, Sequence) and not isinstance(value, str):
        elements = [_value_at(value, index, unknown) for index in range(len(value))]
        return [element for element in elements if element is not _MISSING]
    return value


def registered(resource: PolicyResource, inputs: Document | None) -> RegisteredResource:
    """A resource at the end of a run, with the inputs of its program."""
    return RegisteredResource(
        type=resource.resource_type,
        urn=resource.urn,
        props=plain(resource.props, None),
        inputs=inputs,
        depends={
            key: tuple(dependency.urn for dependency in dependencies)
            for key, dependencies in resource.property_dependencies.items()
        },
    )


def property_of(resource: Any, key: str, unknown: Any = PREVIEW_UNKNOWN) -> Any:
    """The value of ``resource`` at ``key``, as `plain` reads it; an empty map if it is missing."""
    value = _value_at(resource, key, unknown)
    return {} if value is _MISSING else value


def has(resource: Any, key: str) -> bool:
    """True if ``resource`` has ``key``, also with an unknown value, for which `in` would fail."""
    return key in list(resource)


_MISSING = object()


def _value_at(container: Any, key: Any, unknown: Any) -> Any:
    from pulumi_policy.proxy import UnknownValueError  # the proxy's own module

    try:
        value = container[key]
    except UnknownValueError:
        return unknown
    except KeyError:
        return _MISSING
    return _MISSING if value is None else plain(value, unknown)


_NOT_KNOWN = kl002_kafka.RULE.finding(
    "the plan: not known yet",
    "every advertised host, checked again with its value",
    state=FindingState.UNKNOWN,
    remedy="nothing yet: the update checks it",
)
_UNREADABLE = kl002_kafka.RULE.finding(
    "the gate's inputs: other keys or values than this release of the pack reads",
    "the inputs that earshot's components register",
    remedy="run the pack of the release that the program uses",
)


def evaluate_gate(props: Any, policy: ResolverPolicy) -> Evaluation:
    """The evaluation of the gate with the inputs ``props``."""
    if property_of(props, "plan", None) is None:
        return Evaluation((_NOT_KNOWN,))
    try:
        gate = GateInputs.read(plain(props), property_of(props, "containers", None))
    except (EarshotError, ValueError):
        return Evaluation((_UNREADABLE,))  # the reason contains the values, which may be secrets
    result = gate.check(policy)
    return Evaluation(result.findings, result.remarks, plan=gate.plan)
