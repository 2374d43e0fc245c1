"""Computes the AWS spec for a step of a change of listeners.

Names, groups, records and subnets are derived from a spec's listeners. So each step is a spec with
listeners of the new and of former specs.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

from earshot.config.aws import AwsSpec
from earshot.config.aws_sections import ClientsSpec
from earshot.config.balancer import BalancerSpec
from earshot.config.listener import ListenerSpec
from earshot.errors import EarshotError
from earshot.json_object import Document, JsonObject
from earshot.listeners.model import ClusterPlan, Listener
from earshot.placement.aws import plan_aws


def written(spec: AwsSpec) -> JsonObject:
    """The parts of ``spec`` that `spec_at` needs later, as JSON."""
    return {
        "listeners": [
            listener.model_dump(mode="json", exclude_none=True) for listener in spec.listeners
        ],
        "clear_text": dict(spec.clear_text),
        "clients": spec.clients.model_dump(mode="json"),
        **({"expose": spec.expose.model_dump(mode="json")} if spec.expose else {}),
    }


def spec_at(
    spec: AwsSpec,
    step: ClusterPlan,
    former_documents: Collection[Document],
    root: Path = Path(),
) -> AwsSpec:
    """``spec`` with the listeners of ``step``.

    ``former_documents`` are `written` specs that nodes may run. ``root`` is the folder of the
    stack's cluster. Raises EarshotError if the listeners of these specs do not give the step,
    for example if brokers are added or removed with it.
    """
    if plan_aws(spec, root=root).plan == step:
        return spec
    specs, reasons, clients = [spec], dict[str, str](), spec.clients
    balancer = spec.expose
    for document in former_documents:
        listeners = tuple(
            ListenerSpec.model_validate(listener) for listener in document["listeners"]
        )
        expose = (
            BalancerSpec.model_validate(document["expose"]) if "expose" in document else spec.expose
        )
        former_spec = spec.model_copy(update={"listeners": listeners, "expose": expose})
        if former_spec.external and not spec.external:
            # a spec without external listeners has no clients for the remaining ones
            clients = ClientsSpec.model_validate(
                {**document["clients"], "groups": spec.clients.groups}
            )
            former_spec = former_spec.model_copy(update={"clients": clients})
        specs.append(former_spec)
        balancer = balancer or former_spec.expose
        reasons |= document["clear_text"]
    listeners_at_step = tuple(_listeners(step, specs))
    step_spec = spec.model_copy(
        update={
            "listeners": listeners_at_step,
            "inter_broker": step.inter_broker,
            "extra": dict(step.extra),
            "clients": clients,
            "expose": balancer,
            "clear_text": {
                name: reason
                for name, reason in (reasons | spec.clear_text).items()
                if name in step.listener_names
            },
        }
    )
    if (
        len(listeners_at_step) != len(step.listener_names)
        or plan_aws(step_spec, root=root).plan != step
    ):
        raise EarshotError(
            "nothing was changed: this change cannot be made in one update",
            observed="it needs several steps, and changes more than the listeners",
            remedy="change only the listeners first, and apply that",
        )
    return step_spec


def _listeners(step: ClusterPlan, specs: Collection[AwsSpec]) -> Iterator[ListenerSpec]:
    """The listeners of ``specs`` that are planned as in ``step``, in its order."""
    listeners_by_name: dict[str, list[tuple[ListenerSpec, list[Listener | None]]]] = {}
    for spec in specs:
        plan = plan_aws(spec).plan
        for listener in spec.listeners:
            listeners_by_name.setdefault(listener.name, []).append(
                (listener, _planned_listeners(plan, listener.name))
            )
    for name in step.listener_names:
        planned = _planned_listeners(step, name)
        yield from [
            listener
            for listener, former_listeners in listeners_by_name.get(name, ())
            if former_listeners == planned
        ][:1]


def _planned_listeners(plan: ClusterPlan, name: str) -> list[Listener | None]:
    return [node.listener(name) for node in plan.brokers]
