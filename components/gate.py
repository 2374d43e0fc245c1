"""The gate: names -> gate -> brokers.

`AdvertisedListeners` carries the plan as structured inputs, so that the policy pack sees every
advertised address, and is the parent of the brokers, so that none is touched before it was judged.
`GateSeal` makes sure that a pack did judge: the pack writes its word into the seal's inputs, and
the seal refuses to exist without it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi.dynamic import (
    CheckFailure,
    CheckResult,
    CreateResult,
    DiffResult,
    ReadResult,
    Resource,
    ResourceProvider,
    UpdateResult,
)

from components import owner
from earshot.listeners.model import ClusterPlan

GATE_TYPE = "earshot:gate:AdvertisedListeners"
SEAL_TYPE = "pulumi-python:dynamic/earshot:GateSeal"

NOT_JUDGED = (
    "\nno policy pack has judged the advertised listeners in this run, and no broker is touched "
    "without it (gate: required).\n"
    '  to mend it: eval "$(make -s env)" and run the command again, or add '
    "--policy-pack policies; `gate: off` in the stack's earshot:cluster does without"
)


def digest(plan: ClusterPlan) -> str:
    """What identifies a judged plan: the same for the program and for the pack."""
    return hashlib.sha256(plan.model_dump_json().encode()).hexdigest()[:16]


class AdvertisedListeners(pulumi.ComponentResource):
    """Every advertised address of a cluster, for the pack to judge. Parent of the brokers."""

    def __init__(
        self,
        name: str,
        plan: ClusterPlan,
        placement: str,
        addresses: Mapping[int, tuple[str, ...]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """``addresses`` holds each node's own provisioned IP addresses, where they are known."""
        props: dict[str, Any] = {
            "placement": placement,
            "plan": plan.model_dump(mode="json"),
            "addresses": {str(id): list(own) for id, own in addresses.items()},
        }
        super().__init__(GATE_TYPE, name, props, opts)
        self.register_outputs({"placement": placement})


class _SealProvider(ResourceProvider):
    serialize_as_secret_always = False

    def configure(self, req: Any) -> None:
        owner.exit_with_parent()

    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        sealed = news.get("judged") == news["digest"]
        return CheckResult(news, [] if sealed else [CheckFailure("gate", NOT_JUDGED)])

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        return DiffResult(changes=olds.get("digest") != news.get("digest"))

    def create(self, props: dict[str, Any]) -> CreateResult:
        return CreateResult("sealed", props)

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        return UpdateResult(news)

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        return ReadResult(id_, props)


class GateSeal(Resource, module="earshot", name="GateSeal"):
    """Exists only where the pack has judged the plan of this digest, in this very run."""

    judged: pulumi.Output[str]

    def __init__(self, name: str, plan: ClusterPlan, gate: AdvertisedListeners) -> None:
        super().__init__(
            _SealProvider(),
            name,
            {"digest": digest(plan)},
            pulumi.ResourceOptions(parent=gate),
        )
