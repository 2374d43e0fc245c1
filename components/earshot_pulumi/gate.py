"""The gate, which checks all names before a broker changes.

`Gate` is an instance of earshot's own provider, whose check applies the rules (`judge.py`).
Pulumi checks providers in every run, even with `--target`, before it changes any resource that
depends on them. The inputs of brokers depend on `approved`.

`AdvertisedListeners` is the gate's component and the parent of the brokers; the policy pack
evaluates its inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pulumi

from earshot import __version__
from earshot.listeners.model import ClusterPlan
from earshot_pulumi.outputs import applied, are_same, plan_input, without_dependencies
from earshot_pulumi.provider.kind import Inputs, Properties
from earshot_pulumi.provider.resource import PACKAGE

if TYPE_CHECKING:
    from earshot.certificates.shown import ShownCertificate
    from earshot.facts.cloud import Cloud

GATE_TYPE = "earshot:gate:AdvertisedListeners"
PROVIDER_TYPE = f"pulumi:providers:{PACKAGE}"

Addresses = Mapping[int, tuple[str, ...]]
Containers = Mapping[int, pulumi.Input[Inputs]]

OFF = "off"
"""`approved` of a cluster without a gate."""
UNGATED = "gate: off: the advertised listeners were not checked"
"""The warning for a stack that turns the gate off. The error of `_checked_digest` is similar."""


class Gate(pulumi.ProviderResource):
    """Approves a plan, or refuses it with the findings of the rules."""

    approved: pulumi.Output[str]
    """The digest of the approved inputs; unknown while a name is unknown."""
    received: pulumi.Output[list[str]]
    """The keys of the inputs that the gate got."""

    def __init__(
        self,
        name: str,
        inputs: Mapping[str, pulumi.Input[Any]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """``inputs``: `plan`, `placement`, and the optional inputs that `judge.py` names."""
        version = pulumi.ResourceOptions(version=__version__)
        super().__init__(
            PACKAGE,
            name,
            {**inputs, "approved": None, "received": None},
            pulumi.ResourceOptions.merge(version, opts),
        )
        # a transformation may have removed the attribute of an input
        checked_inputs = {key: getattr(self, key, None) for key in inputs}
        # inputs have secret parts, and a digest and names of inputs are no secrets
        others = pulumi.Output.unsecret(
            pulumi.Output.all(
                own=dict(inputs), checked=checked_inputs, received=self.received
            ).apply(lambda values: _different(**values), run_with_unknowns=True)
        )
        known = self.approved.apply(_check_known, run_with_unknowns=True)
        self.digest: pulumi.Output[str] = pulumi.Output.all(
            self.approved.apply(_checked_digest), others, known
        ).apply(lambda values: _of_own_inputs(*values[:2]))
        """`approved`. Raises pulumi.RunError for a plugin without a gate, if a transform or
        `ignore_changes` gave the gate other inputs, and in an update that has not approved."""


class AdvertisedListeners(pulumi.ComponentResource):
    """The advertised addresses of a cluster, and the parent of its brokers."""

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
        """``plan`` has markers for hosts of other resources that a preview does not know.

        ``addresses`` are the provisioned IP addresses by node id. The check reads this machine's
        own addresses itself, as they change. ``policy`` is the policy pack's configuration for the
        stack; None turns the gate off. ``containers`` are the inputs of each node's
        `docker.Container`, by node id; ``cloud`` is the network around the nodes' instances on AWS;
        ``certificates`` are those that the stack did not issue, by node id.
        """
        containers_by_id: Properties = {
            str(id): container for id, container in (containers or {}).items()
        }
        inputs: Properties = {
            "placement": placement,
            "plan": applied(plan, plan_input),
            "addresses": applied(
                addresses,
                lambda known_addresses: {
                    str(id): list(texts) for id, texts in known_addresses.items()
                },
            ),
            "containers": (
                pulumi.Output.all(**containers_by_id).apply(_with_secret_variables)
                if containers_by_id
                else {}
            ),
        }
        if cloud is not None:
            inputs["cloud"] = applied(cloud, lambda known_cloud: known_cloud.document())
        if certificates:
            inputs["certificates"] = {
                str(id): certificate.document() for id, certificate in certificates.items()
            }
        super().__init__(GATE_TYPE, name, inputs, opts)
        self.before: list[pulumi.Resource] = []
        """The gate, for resources that must wait for it; empty with `gate: off`."""
        self.approved = OFF
        if policy is None:
            pulumi.log.warn(UNGATED, self)
        else:
            gate_inputs = {  # the gate's parent has the dependencies
                key: without_dependencies(value) if isinstance(value, pulumi.Output) else value
                for key, value in inputs.items()
            }
            gate = Gate(
                name, {**gate_inputs, "policy": policy}, pulumi.ResourceOptions(parent=self)
            )
            self.before, self.approved = [gate], gate.digest
        self.register_outputs({"placement": placement})


def _checked_digest(approved: str | None) -> str:
    """``approved``. Raises pulumi.RunError if the plugin has not set it."""
    if not approved:  # another plugin of this name returns the inputs unchanged
        raise pulumi.RunError(
            "the advertised listeners were not checked: Pulumi found a plugin `earshot` without a "
            "gate\n  fix: name the folder of pulumi-resource-earshot in Pulumi.yaml, in `plugins`"
        )
    return approved


def _check_known(approved: object) -> None:
    """Raises pulumi.RunError in an update in which ``approved`` is unknown.

    Pulumi would go on, and remove the unknown inputs of the brokers.
    """
    if pulumi.contains_unknowns(approved) and not pulumi.runtime.is_dry_run():
        raise pulumi.RunError(
            "the advertised listeners were not approved: this update does not know all inputs of "
            "the gate\n  fix: let the update make the resources that they come from, which "
            "`--target` or `--exclude` leaves out"
        )


def _different(own: Inputs, checked: Inputs, received: Sequence[str] | None) -> list[str]:
    """The inputs that the gate got with another value. A preview cannot compare unknown ones."""
    if pulumi.contains_unknowns(received):
        received = None
    return [
        key
        for key, value in own.items()
        if not pulumi.contains_unknowns(value)
        and (
            (value is not None and received is not None and key not in received)
            or not (pulumi.contains_unknowns(checked[key]) or are_same(value, checked[key]))
        )
    ]


def _of_own_inputs(approved: str, others: Sequence[str]) -> str:
    if others:
        raise pulumi.RunError(
            f"the advertised listeners were not checked: the gate got other values of "
            f"{', '.join(others)} than the program's\n"
            f"  fix: leave resources of type {PROVIDER_TYPE} out of transforms and `ignore_changes`"
        )
    return approved


def _with_secret_variables(containers: Mapping[str, Inputs]) -> Properties:
    return {
        id: {**inputs, "envs": pulumi.Output.secret(inputs["envs"])}
        for id, inputs in containers.items()
    }
