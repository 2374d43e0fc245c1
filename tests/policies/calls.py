"""The pack's policies, called as the engine calls them."""

from collections.abc import Mapping
from typing import Any

from earshot_policies.pack import policies
from pulumi.runtime import proto
from pulumi_policy import (
    EnforcementLevel,
    Policy,
    PolicyProviderResource,
    PolicyResource,
    PolicyResourceOptions,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
    policy,
)
from pulumi_policy.proxy import unknown_checking_proxy

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""The engine's sentinel for a string that a preview does not know."""
UNKNOWN_LIST = "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2"


def headline(text: str) -> str:
    """What is reported of which object, with the rule; the rule's examples have the other lines."""
    return text.partition("\n")[0]


def floats(value: Any) -> Any:
    """Every number as the engine hands it over."""
    if isinstance(value, dict):
        return {key: floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [floats(item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def arguments(
    type: str,
    props: Mapping[str, Any],
    config: Mapping[str, Any] | None = None,
    *,
    name: str = "x",
    parents: str = "",
    provider: Mapping[str, Any] | None = None,
    parent: str = "",
) -> ResourceValidationArgs:
    """What the engine hands to a policy; ``provider`` are the properties of an explicit one."""
    options = PolicyResourceOptions(False, [], None, [], None, [], parent or None)  # type: ignore[arg-type]
    made = None
    if provider is not None:
        kind = "pulumi:providers:docker"
        urn = f"urn:pulumi:s::p::{kind}::{provider.get('host')}"
        made = PolicyProviderResource(kind, unknown_checking_proxy(dict(provider)), urn, "p")
    return ResourceValidationArgs(
        type,
        unknown_checking_proxy(floats(dict(props))),
        f"urn:pulumi:s::p::{parents}{type}::{name}",
        name,
        options,
        made,
        dict(config or {}),
        {},
    )


class Pack:
    """A pack of one run, with what it reported by policy.

    The lines that name a finding's place are kept apart, in ``places``, and so are the reports of
    the policy `no-gate`, in ``ungated``.
    """

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        self.config = {"names": dict(config or {})}
        self.policies: list[Policy] = policies()
        # the servicer that these policies report their configuration through
        self._servicer = policy._PolicyAnalyzerServicer
        self.ungated: list[tuple[str, str]] = []
        """What the policy `no-gate` reported, each with the URN: most programs here have none."""
        self.places: list[str] = []
        """Of all findings so far, without `at: `."""

    def configure(self, **levels: str) -> None:
        """Configures the pack as the engine does before all other calls."""
        made = self._servicer("earshot", "1", self.policies, EnforcementLevel.ADVISORY)
        request = proto.ConfigureAnalyzerRequest()
        for item in self.policies:
            assert item.enforcement_level is not None
            given = levels.get(item.name, str(item.enforcement_level.value))
            request.policyConfig[item.name].enforcementLevel = getattr(proto, given.upper())
        made.Configure(request, None)  # type: ignore[no-untyped-call]

    def analyze(self, type: str, props: Mapping[str, Any], **more: Any) -> dict[str, list[str]]:
        """By policy, what it says of the resource; ``more`` is for `arguments`."""
        found: dict[str, list[str]] = {}
        for item in self.policies:
            if isinstance(item, ResourceValidationPolicy) and item.has_validation():
                messages: list[str] = []
                args = arguments(type, props, self.config.get(item.name), **more)
                item.validate(args, self._collector(messages))
                if messages:
                    found[item.name] = messages
        return found

    def analyze_stack(self, resources: list[PolicyResource]) -> dict[str, list[tuple[str, str]]]:
        """By policy, what it says at the end, each with the URN that it says it of."""
        found: dict[str, list[tuple[str, str]]] = {}
        for item in self.policies:
            if isinstance(item, StackValidationPolicy):
                said: list[tuple[str, str]] = []

                def report(text: str, urn: str | None, said: Any = said) -> None:
                    said.append((urn or "", self._without_places(text)))

                item.validate(StackValidationArgs(resources), report)
                if item.name == "no-gate":
                    self.ungated += said
                elif said:
                    found[item.name] = said
        return found

    def _collector(self, messages: list[str]) -> ReportViolation:
        def report(text: str, _urn: str | None) -> None:
            messages.append(self._without_places(text))

        return report

    def _without_places(self, text: str) -> str:
        said, *places = text.split("\n  at: ")
        self.places += places
        return said
