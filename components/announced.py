"""Exports and validation of a stack whose listeners are known before its brokers run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import pulumi

from components.validation import Validation
from earshot.config.document import Spec
from earshot.placement import Planned
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


def announce(stack: str, spec: Spec, planned: Planned, change: Change) -> Contract:
    """The contract, still without the cluster's id; exports each listener's bootstrap addresses.

    ``planned`` is of the next step of ``change``.
    """
    for note in (*planned.notes, change.note) if change.note else planned.notes:
        pulumi.log.info(note)
    contract = Contract.of(
        planned.plan, cluster=stack, placement=spec.placement, leaving=change.leaving
    )
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
) -> Validation:
    """The validation of the whole contract, which it exports, from ``standpoints`` or else here.

    ``client_config`` is the file with the validator's credentials, where listeners ask for some.
    """
    # the placement finds or makes the cluster's id
    contract = cluster.cluster_id.apply(announced.identified)
    pulumi.export("contract", contract.apply(lambda known: known.model_dump(mode="json")))
    pulumi.export("incarnations", cluster.incarnations)
    return Validation(
        stack,
        contract,
        cluster.incarnations,
        spec.validation,
        state,
        pulumi.ResourceOptions(depends_on=[cluster.ready]),
        vantages=standpoints,
        client_config=client_config,
    )
