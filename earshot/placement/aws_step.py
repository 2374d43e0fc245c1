"""The spec of brokers on AWS while a change of their listeners stands at a step.

Names, groups, records and subnets all follow from the listeners of a spec, so that a step is a spec
of its own: with listeners of the wanted one and of the one before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from earshot.config.aws import AwsSpec
from earshot.config.listener import ListenerSpec
from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan
from earshot.listeners.terms import Protocol
from earshot.placement.aws import plan_aws


def written(spec: AwsSpec) -> dict[str, Any]:
    """What `spec_at` must know of ``spec`` later, as JSON has it."""
    return {
        "listeners": [item.model_dump(mode="json", exclude_none=True) for item in spec.listeners],
        "clear_text": dict(spec.clear_text),
    }


def spec_at(
    spec: AwsSpec, stack: str, step: ClusterPlan, before: Iterable[Mapping[str, Any]]
) -> AwsSpec:
    """``spec``, which is wanted of ``stack``, as it is at ``step``.

    ``before`` is what was `written` of specs that nodes may run. Raises EarshotError where no
    listeners of these make up the step, as where brokers come or go along with it.
    """
    if plan_aws(spec, stack).plan == step:
        return spec
    held = [
        *spec.listeners,
        *(ListenerSpec.model_validate(it) for known in before for it in known["listeners"]),
    ]
    reasons: dict[str, str] = {}
    for known in before:
        reasons |= known["clear_text"]
    found = spec.model_copy(
        update={
            "listeners": tuple(_listeners(step, held)),
            "inter_broker": step.inter_broker,
            "extra": dict(step.extra),
            "clear_text": {
                name: why
                for name, why in (reasons | spec.clear_text).items()
                if name in step.listener_names
            },
        }
    )
    if plan_aws(found, stack).plan != step:
        raise EarshotError(
            "nothing was touched, for this change cannot be made in one go",
            observed="it takes several steps, and more changes along with the listeners",
            remedy="change the listeners first, with all else as it is, and apply that",
        )
    return found


def _listeners(step: ClusterPlan, held: Iterable[ListenerSpec]) -> Iterator[ListenerSpec]:
    by_key: dict[tuple[str, Protocol, int], ListenerSpec] = {}
    for item in held:
        by_key.setdefault((item.name, item.protocol, item.port), item)
    for name in step.listener_names:
        planned = next(it for node in step.brokers if (it := node.listener(name)))
        found = by_key.get((name, planned.protocol, planned.bind_port))
        if found is not None:
            yield found
