"""The spec of brokers on AWS at a step of a change of their listeners.

Names, groups, records and subnets all follow from the listeners of a spec, so that a step is a spec
of its own: with listeners of the wanted one and of the one before.
"""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from earshot.config.aws import AwsSpec
from earshot.config.aws_parts import ClientsSpec
from earshot.config.balancer import BalancerSpec
from earshot.config.listener import ListenerSpec
from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan, Listener
from earshot.placement.aws import plan_aws


def written(spec: AwsSpec) -> dict[str, Any]:
    """What `spec_at` must know of ``spec`` later, as JSON has it."""
    return {
        "listeners": [item.model_dump(mode="json", exclude_none=True) for item in spec.listeners],
        "clear_text": dict(spec.clear_text),
        "clients": spec.clients.model_dump(mode="json"),
        **({"expose": spec.expose.model_dump(mode="json")} if spec.expose else {}),
    }


def spec_at(
    spec: AwsSpec,
    stack: str,
    step: ClusterPlan,
    before: Collection[Mapping[str, Any]],
    root: Path = Path(),
) -> AwsSpec:
    """``spec`` of ``stack``, with the listeners of ``step``.

    ``before`` is what was `written` of specs that nodes may run; ``root`` is the folder of the
    stack's cluster. Raises EarshotError where no listeners of these make up the step, as where
    brokers come or go along with it.
    """
    if plan_aws(spec, stack, root=root).plan == step:
        return spec
    specs, reasons, clients = [spec], dict[str, str](), spec.clients
    exposed = spec.expose
    for known in before:
        listeners = tuple(ListenerSpec.model_validate(it) for it in known["listeners"])
        expose = BalancerSpec.model_validate(known["expose"]) if "expose" in known else spec.expose
        older = spec.model_copy(update={"listeners": listeners, "expose": expose})
        if older.external and not spec.external:
            # a file without external listeners cannot say who comes in on those that are left
            clients = ClientsSpec.model_validate(
                {**known["clients"], "groups": spec.clients.groups}
            )
            older = older.model_copy(update={"clients": clients})
        specs.append(older)
        exposed = exposed or older.expose
        reasons |= known["clear_text"]
    wanted = tuple(_listeners(stack, step, specs))
    found = spec.model_copy(
        update={
            "listeners": wanted,
            "inter_broker": step.inter_broker,
            "extra": dict(step.extra),
            "clients": clients,
            "expose": exposed,
            "clear_text": {
                name: why
                for name, why in (reasons | spec.clear_text).items()
                if name in step.listener_names
            },
        }
    )
    if len(wanted) != len(step.listener_names) or plan_aws(found, stack, root=root).plan != step:
        raise EarshotError(
            "nothing was touched, for this change cannot be made in one go",
            observed="it takes several steps, and more changes along with the listeners",
            remedy="change the listeners first, with all else as it is, and apply that",
        )
    return found


def _listeners(stack: str, step: ClusterPlan, specs: Collection[AwsSpec]) -> Iterator[ListenerSpec]:
    """Those of ``specs`` from which the listeners of ``step`` follow, in its order."""
    found: dict[str, list[tuple[ListenerSpec, list[Listener | None]]]] = {}
    for spec in specs:
        made = plan_aws(spec, stack).plan
        for listener in spec.listeners:
            found.setdefault(listener.name, []).append((listener, _of_brokers(made, listener.name)))
    for name in step.listener_names:
        planned = _of_brokers(step, name)
        yield from [item for item, listed in found.get(name, ()) if listed == planned][:1]


def _of_brokers(plan: ClusterPlan, name: str) -> list[Listener | None]:
    return [node.listener(name) for node in plan.brokers]
