"""The gate: names -> gate -> brokers.

`AdvertisedListeners` has all that the policy pack evaluates as structured inputs. It is the parent
of the brokers, so that the pack evaluates it before any broker is touched. The pack answers by
changing an input of `ApprovalProvider` in every run. Without that answer `GateApproval` is not
registered, and without `GateApproval` no broker is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pulumi
from pulumi.dynamic import Resource

from earshot.listeners.model import ClusterPlan
from earshot_pulumi.dynamic import Provider, formerly
from earshot_pulumi.outputs import applied, kept, without_dependencies

if TYPE_CHECKING:
    from earshot.certificates.shown import ShownCertificate
    from earshot.facts.cloud import Cloud

GATE_TYPE = "earshot:gate:AdvertisedListeners"
APPROVAL_TYPE = "pulumi:providers:pulumi-python"
GATE_APPROVAL_TYPE = "pulumi-python:dynamic/earshot:GateApproval"

Addresses = Mapping[int, tuple[str, ...]]
Containers = Mapping[int, pulumi.Input[Mapping[str, Any]]]

NOBODY = "nobody"
"""The approval's input until the pack replaces it by the digest of what it evaluated."""

NOT_CHECKED = (
    "no policy pack has checked the advertised listeners in this run, and no broker is touched "
    "without it (gate: required).\n"
    '  fix: eval "$(make -s env)" and run the command again, or add '
    "--policy-pack policies; `gate: off` in the stack's earshot:cluster does without"
)

UNGATED = "gate: off - nobody has checked the advertised listeners"


def digest(inputs: Mapping[str, Any]) -> str:
    """A hash of all inputs of a gate, the same in the program and in the pack.

    The engine passes numbers as floats, and leaves out what has no value.
    """
    text = json.dumps(_normalized(inputs), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _normalized(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _normalized(item) for k, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [_normalized(item) for item in value if item is not None]
    return int(value) if isinstance(value, float) and value.is_integer() else value


class AdvertisedListeners(pulumi.ComponentResource):
    """Every advertised address of a cluster, for the pack to evaluate. Parent of the brokers."""

    def __init__(
        self,
        name: str,
        plan: ClusterPlan | pulumi.Output[ClusterPlan],
        placement: str,
        addresses: Addresses | pulumi.Output[Addresses],
        opts: pulumi.ResourceOptions | None = None,
        *,
        containers: Containers | None = None,
        cloud: Cloud | pulumi.Output[Cloud] | None = None,
        certificates: Mapping[int, ShownCertificate] | None = None,
    ) -> None:
        """``plan`` has markers for what a preview cannot know, if other resources decide it.

        ``addresses`` holds the IP addresses provisioned for each node, where they are known. This
        machine's addresses are not among them: they change (a container engine's bridges, a
        lease), so the pack reads them itself. ``containers`` holds, by node id, the inputs of the
        node's `docker.Container`, by the provider's names; ``cloud`` what surrounds the nodes'
        instances on AWS; ``certificates`` what nodes show, where others have made it.
        """
        by_id: dict[str, Any] = {str(id): item for id, item in (containers or {}).items()}
        inputs: dict[str, Any] = {
            "placement": placement,
            "plan": applied(plan, lambda known: known.model_dump(mode="json")),
            "addresses": applied(
                addresses, lambda known: {str(id): list(own) for id, own in known.items()}
            ),
            "containers": pulumi.Output.all(**by_id) if by_id else {},
        }
        if cloud is not None:
            inputs["cloud"] = applied(cloud, lambda known: known.document())
        if certificates:
            inputs["certificates"] = {str(id): it.document() for id, it in certificates.items()}
        self.digest = applied(_whole(inputs), digest)
        """Of all inputs that the pack is to evaluate."""
        settings = {"plan": applied(plan, kept), "containers": applied(inputs["containers"], _kept)}
        super().__init__(GATE_TYPE, name, {**inputs, **settings}, opts)
        self.register_outputs({"placement": placement})


def _kept(containers: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {
        id: {**inputs, "envs": pulumi.Output.secret(inputs["envs"])}
        for id, inputs in containers.items()
    }


def _whole(props: Mapping[str, Any]) -> Any:
    """``props`` once all of them are known, without dependencies: the gate has them anyway."""
    pending = {key: item for key, item in props.items() if isinstance(item, pulumi.Output)}
    if not pending:
        return props
    return without_dependencies(
        pulumi.Output.all(**pending).apply(lambda known: {**props, **known})
    )


class ApprovalProvider(pulumi.ProviderResource):
    """The pack's answer in this run; an earlier run's answer in the state never counts.

    It is a provider, used for the approval alone, because Pulumi registers providers in every run.
    Of other resources it takes the old outputs where `--target` or `--exclude` leaves them out.
    """

    approved_digest: pulumi.Output[str]

    def __init__(self, name: str, gate: AdvertisedListeners) -> None:
        super().__init__(
            "pulumi-python",
            name,
            {"digest": gate.digest, "approved_digest": NOBODY},
            pulumi.ResourceOptions(parent=gate),
        )


class _GateApprovalProvider(Provider):
    ID = "approved"
    DECISIVE = ("digest",)


class GateApproval(Resource, module="earshot", name="GateApproval"):
    """Registered only where the pack has evaluated the gate in this run."""

    def __init__(self, name: str, gate: AdvertisedListeners) -> None:
        approval = ApprovalProvider(name, gate)
        self.approved = pulumi.Output.all(approval.approved_digest, gate.digest).apply(
            lambda both: approved(*both)
        )
        """The gate's digest. A resource with this input is not registered before the pack has
        evaluated the gate: not in a preview, and whatever `--target` names."""
        super().__init__(
            _GateApprovalProvider(),
            name,
            {"digest": self.approved},
            formerly("GateSeal", pulumi.ResourceOptions(parent=gate, provider=approval)),
        )


def approval_of(
    name: str, gate: AdvertisedListeners, wanted: str, cluster: pulumi.Resource, note: str = UNGATED
) -> GateApproval | None:
    """What the brokers of ``cluster`` wait for; None with `gate: off`, of which ``note`` warns.

    ``wanted`` is `gate` of the spec.
    """
    if wanted == "required":
        return GateApproval(name, gate)
    pulumi.log.warn(note, cluster)
    return None


def approved(answer: str, wanted: str) -> str:
    """``wanted``, where the pack's ``answer`` is the same. Raises RunError."""
    if answer != wanted:
        raise pulumi.RunError(NOT_CHECKED)
    return answer
