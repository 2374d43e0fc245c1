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
    CreateResult,
    DiffResult,
    ReadResult,
    Resource,
    ResourceProvider,
    UpdateResult,
)

from components import owner
from components.outputs import applied
from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan
from earshot.rules.cloud import Cloud

GATE_TYPE = "earshot:gate:AdvertisedListeners"
SEAL_TYPE = "pulumi-python:dynamic/earshot:GateSeal"

Addresses = Mapping[int, tuple[str, ...]]

NOBODY = "nobody"
"""Stands in the seal's inputs until the pack has written its word over it."""

NOT_JUDGED = (
    "no policy pack has judged the advertised listeners in this run, and no broker is touched "
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
        plan: ClusterPlan | pulumi.Output[ClusterPlan],
        placement: str,
        addresses: Addresses | pulumi.Output[Addresses],
        opts: pulumi.ResourceOptions | None = None,
        *,
        containers: Mapping[int, Mapping[str, Any]] | None = None,
        cloud: Cloud | pulumi.Output[Cloud] | None = None,
    ) -> None:
        """A ``plan`` that comes out of other resources holds markers for what a preview cannot
        know. ``addresses`` holds each node's own provisioned IP addresses, where they are known.

        Those of this machine are not among them: they come and go (a container engine's bridges,
        a lease), and the pack asks for them when it judges. ``containers`` holds, by node id, the
        inputs of the `docker.Container` that each node will run in, by the provider's own names;
        ``cloud`` what surrounds the nodes' instances on AWS.
        """
        props: dict[str, Any] = {
            "placement": placement,
            "plan": applied(plan, lambda own: own.model_dump(mode="json")),
            "addresses": applied(addresses, _by_id),
            "containers": {str(id): dict(inputs) for id, inputs in (containers or {}).items()},
        }
        if cloud is not None:
            props["cloud"] = applied(cloud, lambda own: own.document())
        super().__init__(GATE_TYPE, name, props, opts)
        self.register_outputs({"placement": placement})


def _by_id(addresses: Addresses) -> dict[str, list[str]]:
    return {str(id): list(own) for id, own in addresses.items()}


class _SealProvider(ResourceProvider):
    serialize_as_secret_always = False

    def configure(self, req: Any) -> None:
        owner.exit_with_parent()

    # not in `check`: the engine calls it before the pack has had its say

    def diff(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> DiffResult:
        _refuse_unjudged(news)
        return DiffResult(changes=olds.get("digest") != news.get("digest"))

    def create(self, props: dict[str, Any]) -> CreateResult:
        _refuse_unjudged(props)
        return CreateResult("sealed", props)

    def update(self, _id: str, _olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        _refuse_unjudged(news)
        return UpdateResult(news)

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        return ReadResult(id_, props)


def _refuse_unjudged(props: dict[str, Any]) -> None:
    if props.get("judged") != props["digest"]:
        raise EarshotError(NOT_JUDGED)


class GateSeal(Resource, module="earshot", name="GateSeal"):
    """Exists only where the pack has judged the plan of this digest, in this very run."""

    judged: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        plan: ClusterPlan | pulumi.Output[ClusterPlan],
        gate: AdvertisedListeners,
    ) -> None:
        wanted = applied(plan, digest)
        super().__init__(
            _SealProvider(),
            name,
            {"digest": wanted, "judged": NOBODY},
            pulumi.ResourceOptions(parent=gate),
        )
        self.digest = pulumi.Output.all(self.judged, wanted).apply(lambda both: _sealed(*both))
        """The plan's digest; whoever takes this as an input is not registered without a judgement,
        in a preview either."""


def _sealed(judged: str, wanted: str) -> str:
    if judged != wanted:
        raise pulumi.RunError(NOT_JUDGED)
    return judged
