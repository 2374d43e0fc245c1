"""A stack of placement aws: the cluster, what it exports, and the proof of its listeners.

Outputs: `contract` is all that clients need to know; `bootstrap_LISTENER` the addresses to connect
to first; `names` what each node is called inside and beyond the VPC; `ids` the instance, volume,
interface and, where it has one, Elastic IP of each node; `incarnations` what changes when a node's
instance does; `vpc` the network's id.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pulumi

from components.aws.cluster import AwsCluster
from components.validation import Validation
from earshot.listeners.model import Protocol, Scope
from earshot.placement.aws import AwsPlan, plan_aws
from earshot.spec.aws import AwsSpec
from earshot.spec.listener import ListenerSpec
from earshot.validation.contract import Contract
from earshot.vantages.standpoint import Standpoint

HERE = Standpoint(name=Scope.EXTERNAL, scope=Scope.EXTERNAL)


def deploy(stack: str, spec: AwsSpec, state: Path) -> AwsCluster:
    """Registers the stack's resources and outputs; ``state`` is where reports are kept.

    Raises EarshotError.
    """
    for note in plan_aws(spec, stack).notes:
        pulumi.log.info(note)
    cluster = AwsCluster(stack, spec)
    contract = cluster.plan.apply(
        lambda made: Contract.of(made.plan, cluster=stack, placement=spec.placement)
    )
    for item in spec.listeners:
        pulumi.export(f"bootstrap_{item.name}", _bootstrap(contract, item.name))
    pulumi.export("contract", contract.apply(lambda known: known.model_dump(mode="json")))
    pulumi.export("names", cluster.plan.apply(_names))
    pulumi.export("ids", _ids(cluster))
    pulumi.export("vpc", cluster.vpc_id)
    pulumi.export("incarnations", cluster.incarnations)
    _prove(stack, spec, contract, cluster, state)
    return cluster


def _bootstrap(contract: pulumi.Output[Contract], name: str) -> pulumi.Output[str]:
    return contract.apply(lambda known: known.listener(name).bootstrap)


def _names(made: AwsPlan) -> dict[str, dict[str, str]]:
    client = (Scope.INTERNAL, Scope.EXTERNAL)
    return {
        str(id): {str(scope): str(own.hosts[scope]) for scope in client if scope in own.hosts}
        for id, own in made.names.items()
    }


def _ids(cluster: AwsCluster) -> dict[str, dict[str, pulumi.Input[str]]]:
    found: dict[str, dict[str, pulumi.Input[str]]] = {}
    for id, node in cluster.nodes.items():
        own: dict[str, pulumi.Input[str]] = {
            "instance": node.instance.id,
            "volume": node.volume_id,
            "interface": cluster.names.interfaces[id].id,
        }
        if id in cluster.names.addresses:
            own["address"] = cluster.names.addresses[id].id
        found[str(id)] = own
    return found


def provable(spec: AwsSpec) -> tuple[ListenerSpec, ...]:
    """The listeners that this machine can be a client of, as far as the spec says."""
    if spec.prove != "here":
        return ()
    return tuple(
        item
        for item in spec.listeners
        if Scope.EXTERNAL in item.scopes and item.protocol is Protocol.PLAINTEXT
    )


def _prove(
    stack: str,
    spec: AwsSpec,
    contract: pulumi.Output[Contract],
    cluster: AwsCluster,
    state: Path,
) -> None:
    """What has no vantage here is said to be unproved, never taken for proved."""
    here = {item.name for item in provable(spec)}
    unproved = [item.name for item in spec.listeners if item.name not in here]
    internal = [item.name for item in spec.listeners if Scope.INTERNAL in item.scopes]
    if internal:
        pulumi.log.warn(
            f"{', '.join(internal)}: not validated for scope internal, whose clients stand in the "
            "VPC; run `earshot validate --contract FILE --vantage vpc` there"
        )
    beyond = [name for name in unproved if name not in internal]
    if beyond:
        pulumi.log.warn(
            f"{', '.join(beyond)}: not validated from here; run `earshot validate --contract FILE` "
            "where clients are, with --client-config FILE for TLS or SASL"
        )
    if not here:
        return
    Validation(
        stack,
        contract.apply(lambda known: _only(known, here)),
        cluster.incarnations,
        spec.validation,
        state,
        pulumi.ResourceOptions(depends_on=[cluster.ready]),
        vantages=[HERE],
    )


def _only(contract: Contract, names: set[str]) -> Contract:
    """The same as clients beyond the VPC see it, with the listeners called ``names`` alone."""
    part = contract.for_scope(Scope.EXTERNAL)
    listeners: list[Any] = [
        item.model_copy(update={"scopes": (Scope.EXTERNAL,)})
        for item in part.listeners
        if item.name in names
    ]
    brokers = [
        broker.model_copy(
            update={"advertised": {k: v for k, v in broker.advertised.items() if k in names}}
        )
        for broker in part.brokers
    ]
    return part.model_copy(update={"listeners": tuple(listeners), "brokers": tuple(brokers)})
