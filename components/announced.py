"""Exports and validation of a stack whose listeners are known before its brokers run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import pulumi

from components.change import CompleteChange
from components.validation import Validation
from earshot.config.document import Spec
from earshot.placement import DockerPlan, LocalPlan
from earshot.placement.standpoint import Standpoint
from earshot.transition.change import Change
from earshot.validation.contract import Contract


class Deployed(Protocol):
    """The outputs of a cluster that its validation needs."""

    @property
    def cluster_id(self) -> pulumi.Output[str]: ...
    @property
    def incarnations(self) -> Mapping[str, pulumi.Output[str]]: ...
    @property
    def ready(self) -> pulumi.Resource: ...


def announce(
    stack: str, spec: Spec, planned: LocalPlan | DockerPlan, change: Change | None = None
) -> Contract:
    """The contract, still without the cluster's id; exports each listener's bootstrap addresses.

    ``planned`` is of the next step of ``change``, where the placement makes changes in steps.
    """
    notes = (*planned.notes, change.note) if change and change.note else planned.notes
    for note in notes:
        pulumi.log.info(note)
    leaving = change.leaving if change else ()
    contract = Contract.of(planned.plan, cluster=stack, placement=spec.placement, leaving=leaving)
    for listener in contract.listeners:
        pulumi.export(f"bootstrap_{listener.name}", listener.bootstrap)
    return contract


def prove(
    stack: str,
    spec: Spec,
    announced: Contract,
    cluster: Deployed,
    state: Path,
    standpoints: Sequence[Standpoint] = (),
    client_config: Path | None = None,
    change: Change | None = None,
) -> None:
    """Exports the whole contract and validates it from ``standpoints``, or else from here.

    ``client_config`` is the file with the validator's credentials, where listeners ask for some.
    After the proof the step of ``change`` is complete.
    """
    # the placement finds or makes the cluster's id
    contract = cluster.cluster_id.apply(announced.identified)
    pulumi.export("contract", contract.apply(lambda known: known.model_dump(mode="json")))
    pulumi.export("incarnations", cluster.incarnations)
    proof = Validation(
        stack,
        contract,
        cluster.incarnations,
        spec.validation,
        state,
        pulumi.ResourceOptions(depends_on=[cluster.ready]),
        vantages=standpoints,
        client_config=client_config,
    )
    if change is not None:
        CompleteChange(stack, change, state, pulumi.ResourceOptions(depends_on=[proof]))
