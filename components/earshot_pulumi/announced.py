"""Exports and validation of a stack whose listeners are known before its brokers run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pulumi

from earshot.checks.policy_config import stack_config
from earshot.config.document import Spec
from earshot.placement import Planned
from earshot.placement.standpoint import Standpoint
from earshot.project import Project
from earshot.transition.change import Change
from earshot.validation.contract import Contract
from earshot_pulumi.aws_settings import StackSettings
from earshot_pulumi.outputs import applied
from earshot_pulumi.validation import Validation


def gate_policy(spec: Spec, stack: str) -> Mapping[str, Any] | None:
    """The configuration of the gate for ``stack``; None with `gate: off`.

    Raises EarshotError for a file that is not such a configuration.
    """
    if spec.gate == "off":
        return None
    project = Project.find()
    stack_config(project, stack)
    return project.policy_document(stack)[0]


def log_notes(planned: Planned, change: Change) -> None:
    """Shows what is to be known of ``planned``, which is of the next step of ``change``."""
    for note in filter(None, (*planned.notes, change.note)):
        pulumi.log.info(note)


def announce(stack: str, spec: Spec, planned: Planned, change: Change) -> Contract:
    """The contract, still without the cluster's id; exports each listener's bootstrap addresses.

    ``planned`` is of the next step of ``change``.
    """
    log_notes(planned, change)
    contract = Contract.of(
        planned.plan, cluster=stack, placement=spec.placement, leaving=change.leaving
    )
    for listener in contract.listeners:
        pulumi.export(f"bootstrap_{listener.name}", listener.bootstrap)
    return contract


def prove(
    stack: str,
    spec: Spec,
    contract: pulumi.Output[Contract],
    incarnations: Mapping[str, pulumi.Output[str]],
    after: Sequence[pulumi.Resource],
    state: Path,
    standpoints: Sequence[Standpoint] | pulumi.Output[Sequence[Standpoint]] = (),
    client_config: Path | None = None,
) -> Validation:
    """The validation of the whole contract, which it exports, from ``standpoints`` or else here.

    It waits for ``after``, and is repeated where one of ``incarnations`` changes.
    ``client_config`` is the file with the validator's credentials, where listeners ask for some.
    """
    document = contract.apply(lambda known: known.model_dump(mode="json"))
    pulumi.export("contract", document)
    pulumi.export("incarnations", incarnations)
    props = {
        "contract": document,
        "incarnations": dict(incarnations),
        "records": spec.validation.records,
        "deadline": spec.validation.deadline,
        "state_dir": str(state),
        "vantages": applied(
            standpoints, lambda known: [item.model_dump(mode="json") for item in known]
        ),
        "verdict": None,
        **StackSettings().to_props(),
    }
    if client_config is not None:
        props["client_config"] = str(client_config)
    opts = pulumi.ResourceOptions(depends_on=list(after))
    return Validation(stack, props, opts)
