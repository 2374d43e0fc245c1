"""`earshot gateway`: the configuration of a gateway in front of the brokers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from earshot.cli.output import emit
from earshot.cli.target import stack_contract, target
from earshot.errors import EarshotError
from earshot.files.stack_files import stack_name
from earshot.gateway.render import Software, render
from earshot.gateway.routes import DEFAULT_IDLE_SECONDS, BoundListener, routes
from earshot.listeners.address import MAX_PORT, PORT_ALLOWED
from earshot.placement import PlacementPlan, plan_stack
from earshot.project import Project
from earshot.validation.contract import Contract
from earshot.visible import one_line


def run(
    stack: str | None,
    contract: str | None,
    binds: Sequence[str],
    listeners: Sequence[str],
    software: str,
) -> int:
    """Prints the configuration; the exit code. Raises EarshotError."""
    if contract is None:
        if stack is None:
            raise EarshotError(
                "nothing to configure a gateway for",
                remedy="name a stack (--stack NAME), or a contract and the ports that brokers bind "
                "(--contract FILE --bind LISTENER=PORT)",
            )
        if binds:
            raise EarshotError("--bind", observed="found with --stack, which has the ports")
        deployed, bound = _of_stack(stack)
    else:
        contract_given = target(stack, contract, None).contract
        assert contract_given is not None  # a contract's file has one
        deployed, bound = contract_given, _bound(contract_given, binds)
    chosen = _chosen(deployed.cluster, bound, listeners)
    title = one_line(f"Kafka brokers of {deployed.cluster}")
    emit(render(routes(deployed, chosen), Software(software), title))
    return 0


def _of_stack(stack: str) -> tuple[Contract, dict[str, BoundListener]]:
    """The contract of ``stack``, and the listeners that need a gateway of the user."""
    project = Project.find()
    spec = project.read_cluster(stack)
    planned = plan_stack(spec, stack_name(stack), project.state_dir(stack))
    bound = _forwarded(planned)
    has_known_hosts = all(
        listener.known for node in planned.plan.brokers for listener in node.listeners
    )
    if not bound or has_known_hosts:  # else only the last update knows the names
        return Contract.of(planned.plan, stack_name(stack), spec.placement), bound
    return stack_contract(project, stack), bound


def _forwarded(planned: PlacementPlan) -> dict[str, BoundListener]:
    forwarded = {}
    for name in planned.plan.listener_names:
        by_broker = {node.id: node.listener(name) for node in planned.plan.brokers}
        listeners = {id: listener for id, listener in by_broker.items() if listener is not None}
        first_listener = next(iter(listeners.values()))
        if not first_listener.forwarded or (
            first_listener.front is not None and first_listener.front.group
        ):
            continue
        ports = {id: listener.bind_port for id, listener in listeners.items()}
        for id in ports:
            if planned.machine_of(id):  # containers on several hosts, which publish their ports
                ports[id] = planned.names[id].published.get(name, ports[id])
        forwarded[name] = BoundListener(
            ports, first_listener.path.idle_seconds or DEFAULT_IDLE_SECONDS
        )
    return forwarded


def _bound(contract: Contract, binds: Sequence[str]) -> dict[str, BoundListener]:
    if not binds:
        names = " or ".join(listener.name for listener in contract.listeners)
        raise EarshotError(
            "--bind",
            observed="is missing with --contract, which does not have the ports that brokers bind",
            allowed=f"LISTENER=PORT, where LISTENER is {names}",
        )
    bound = {}
    for text in binds:
        name, _, port = text.partition("=")
        number = int(port) if port.isascii() and port.isdigit() else 0
        if not name or not 1 <= number <= MAX_PORT:
            allowed = f"LISTENER=PORT, with {PORT_ALLOWED}"
            raise EarshotError("--bind", observed=f"found {text!r}", allowed=allowed)
        bound[name] = BoundListener({broker.id: number for broker in contract.brokers})
    return bound


def _chosen(
    cluster: str, bound: Mapping[str, BoundListener], listeners: Collection[str]
) -> dict[str, BoundListener]:
    if not bound:
        raise EarshotError(
            f"stack {cluster}",
            observed="has no listener for a gateway",
            allowed="a listener with address strategy sni, or port with a `host`",
            remedy="see docs/addresses.md",
        )
    for name in listeners:
        if name not in bound:
            allowed = ", ".join(bound)
            raise EarshotError("--listener", observed=f"found {name!r}", allowed=allowed)
    return {
        name: listener for name, listener in bound.items() if not listeners or name in listeners
    }
