"""From a registered gate to findings: read the plan back, look its names up, apply the rules.

One judgement per gate and run: every policy of the pack reports its share of the same one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pulumi_policy import ResourceValidationArgs
from pydantic import ValidationError

from components.gate import digest
from earshot.listeners.model import ClusterPlan, UnknownHost
from earshot.listeners.problems import describe
from earshot.names.evidence import gather
from earshot.names.machine import own_addresses
from earshot.names.policy import ResolverPolicy
from earshot.rules import Facts, Finding, judge
from earshot.rules.judge import remarks

PREVIEW_UNKNOWN = UnknownHost(what="a value of a resource that is still to be made")


@dataclass(frozen=True)
class Judgement:
    """What the rules say about one gate."""

    digest: str
    findings: tuple[Finding, ...]
    remarks: tuple[str, ...]


class Court:
    """The judgements of one run, by the gate's URN; a pack's process lives as long as its run."""

    def __init__(self) -> None:
        self._policies: dict[str, ResolverPolicy] = {}
        self._judgements: dict[str, Judgement] = {}

    def configure(self, urn: str, policy: ResolverPolicy) -> None:
        """Which resolvers to ask on behalf of the gate ``urn``; before its first judgement."""
        self._policies[urn] = policy

    def judgement(self, args: ResourceValidationArgs) -> Judgement:
        """The judgement of the gate that ``args`` register, made once."""
        found = self._judgements.get(args.urn)
        if found is None:
            found = self._judge(args.props, self._policies.get(args.urn, ResolverPolicy()))
            self._judgements[args.urn] = found
        return found

    def has_judged(self, digest: str) -> bool:
        return any(item.digest == digest for item in self._judgements.values())

    def _judge(self, props: Mapping[str, Any], policy: ResolverPolicy) -> Judgement:
        document = plain(props)
        plan = ClusterPlan.model_validate(document["plan"])
        placement = str(document["placement"])
        addresses = {int(id): tuple(own) for id, own in document["addresses"].items()}
        if placement == "local":
            addresses = dict.fromkeys((node.id for node in plan.nodes), own_addresses())
        facts = Facts.of(
            plan,
            placement,
            addresses=addresses,
            evidence=gather(plan, policy, placement, {}),
            waivers=policy.waived,
        )
        return Judgement(digest(plan), judge(facts), remarks(facts))


def plain(value: Any) -> Any:
    """``value`` out of the engine's proxies; what a preview cannot know becomes a typed marker."""
    from pulumi_policy.proxy import UnknownValueError  # the proxy's own module

    if isinstance(value, Mapping) or hasattr(value, "items"):
        found = {}
        for key in list(value):
            try:
                found[str(key)] = plain(value[key])
            except UnknownValueError:
                found[str(key)] = PREVIEW_UNKNOWN.model_dump()
        return found
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value


def read_policy(config: Mapping[str, Any]) -> ResolverPolicy:
    """The resolvers that a pack configuration names. Raises ValueError with every problem."""
    document = plain(config)
    try:
        return ResolverPolicy.model_validate(document)
    except ValidationError as error:
        raise ValueError("; ".join(describe(error, ResolverPolicy, document))) from None
