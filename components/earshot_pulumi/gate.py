"""The gate: names -> gate -> brokers.

`Gate` is an instance of earshot's own provider, whose check applies the rules (`judge.py`).
Providers take part in every run, also in one with `--target`, and are checked before anything that
depends on them is touched. What a broker is made from depends on `approved`.

`AdvertisedListeners` is the component around it and the parent of the brokers; its inputs are what
the policy pack evaluates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pulumi

from earshot import __version__
from earshot.listeners.model import ClusterPlan
from earshot_pulumi.outputs import applied, kept, without_dependencies
from earshot_pulumi.provider.resource import PACKAGE

if TYPE_CHECKING:
    from earshot.certificates.shown import ShownCertificate
    from earshot.facts.cloud import Cloud

GATE_TYPE = "earshot:gate:AdvertisedListeners"
PROVIDER_TYPE = f"pulumi:providers:{PACKAGE}"

Addresses = Mapping[int, tuple[str, ...]]
Containers = Mapping[int, pulumi.Input[Mapping[str, Any]]]

OFF = "off"
"""`approved` of a cluster without a gate."""
UNGATED = "gate: off: the advertised listeners were not checked"


class Gate(pulumi.ProviderResource):
    """Approves a plan, or refuses it with the findings of the rules."""

    approved: pulumi.Output[str]
    """The digest of the approved inputs; unknown as long as a name is."""

    def __init__(
        self,
        name: str,
        inputs: Mapping[str, pulumi.Input[Any]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """``inputs``: `plan`, `placement`, and the optional inputs that `judge.py` names."""
        own = pulumi.ResourceOptions(version=__version__)
        super().__init__(
            PACKAGE, name, {**inputs, "approved": None}, pulumi.ResourceOptions.merge(own, opts)
        )
        self.digest: pulumi.Output[str] = self.approved.apply(_given)
        """`approved`; a plugin that gives none is refused."""


class AdvertisedListeners(pulumi.ComponentResource):
    """Every advertised address of a cluster, behind which the brokers are."""

    approved: pulumi.Input[str]
    """The digest of the approved inputs. A resource with this input is not registered before the
    gate has approved the plan: not in a preview, and whatever `--target` names."""

    def __init__(
        self,
        name: str,
        plan: ClusterPlan | pulumi.Output[ClusterPlan],
        placement: str,
        addresses: Addresses | pulumi.Output[Addresses],
        opts: pulumi.ResourceOptions | None = None,
        *,
        policy: Mapping[str, pulumi.Input[Any]] | None,
        containers: Containers | None = None,
        cloud: Cloud | pulumi.Output[Cloud] | None = None,
        certificates: Mapping[int, ShownCertificate] | None = None,
    ) -> None:
        """``plan`` has markers for what a preview cannot know, if other resources decide it.

        ``addresses`` holds the IP addresses provisioned for each node, where they are known. This
        machine's addresses are not among them: they change (a container engine's bridges, a
        lease), so the check reads them itself. ``policy`` is the policy pack's configuration for
        the stack; None turns the gate off. ``containers`` holds, by node id, the inputs of the
        node's `docker.Container`, by the provider's names; ``cloud`` what surrounds the nodes'
        instances on AWS; ``certificates`` what nodes show, where others have made it.
        """
        by_id: dict[str, Any] = {str(id): item for id, item in (containers or {}).items()}
        inputs: dict[str, Any] = {
            "placement": placement,
            "plan": applied(plan, kept),
            "addresses": applied(
                addresses, lambda known: {str(id): list(own) for id, own in known.items()}
            ),
            "containers": pulumi.Output.all(**by_id).apply(_kept) if by_id else {},
        }
        if cloud is not None:
            inputs["cloud"] = applied(cloud, lambda known: known.document())
        if certificates:
            inputs["certificates"] = {str(id): it.document() for id, it in certificates.items()}
        super().__init__(GATE_TYPE, name, inputs, opts)
        self.before: list[pulumi.Resource] = []
        """The gate, for resources that must wait for it; empty with `gate: off`."""
        self.approved = OFF
        if policy is None:
            pulumi.log.warn(UNGATED, self)
        else:
            own = {  # without dependencies: the gate's parent has them
                key: without_dependencies(item) if isinstance(item, pulumi.Output) else item
                for key, item in inputs.items()
            }
            gate = Gate(name, {**own, "policy": policy}, pulumi.ResourceOptions(parent=self))
            self.before, self.approved = [gate], gate.digest
        self.register_outputs({"placement": placement})


def _given(approved: str | None) -> str:
    if not approved:  # another plugin of this name returns the inputs as they are
        raise pulumi.RunError(
            "the advertised listeners were not checked: Pulumi found a plugin `earshot` without a "
            "gate\n  fix: name the folder of pulumi-resource-earshot in Pulumi.yaml, in `plugins`"
        )
    return approved


def _kept(containers: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {
        id: {**inputs, "envs": pulumi.Output.secret(inputs["envs"])}
        for id, inputs in containers.items()
    }
