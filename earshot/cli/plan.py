"""`earshot plan`: brokers and listeners as they will be deployed."""

from __future__ import annotations

import sys

from earshot.cli.output import emit
from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan, Node
from earshot.listeners.render import server_properties
from earshot.listeners.spec import LocalSpec
from earshot.placement import LocalPlan, plan_local
from earshot.project import Project, stack_name
from earshot.report.terminal import Terminal, columns
from earshot.validation.contract import Contract

HEAD = ("node", "listener", "scopes", "protocol", "binds", "advertises")


def run(stack: str, *, json: bool, render: str | None) -> None:
    """Prints the plan of ``stack``. Raises EarshotError."""
    project = Project.find()
    spec = project.read_cluster(stack)
    local = plan_local(spec, project.state_dir(stack) / "kafka")
    if render is not None:
        emit("\n".join(server_properties(local.plan, node) for node in _nodes(local.plan, render)))
    elif json:
        contract = Contract.of(local.plan, stack_name(stack), spec.placement)
        emit(contract.to_json() + "\n")
    else:
        emit(describe(stack_name(stack), spec, local, Terminal.of(sys.stdout)))


def describe(stack: str, spec: LocalSpec, local: LocalPlan, terminal: Terminal) -> str:
    """The plan as a table, a row per socket, and what a user should know about its names."""
    plan = local.plan
    head, *rows = columns([HEAD, *_rows(plan)])
    voters = ", ".join(str(node.id) for node in plan.controllers)
    facts = (
        _counted(plan.brokers),
        f"voters {voters}",
        f"replicas {plan.replication_factor}",
        f"min ISR {plan.min_insync_replicas}",
        f"between brokers {plan.inter_broker}",
        f"gate {spec.gate}",
    )
    lines = [
        terminal.bold(f"stack {stack}: placement {spec.placement}, Kafka {plan.kafka_version}"),
        ", ".join(facts),
        "",
        terminal.bold(head),
        *rows,
    ]
    if local.notes:
        lines += ["", *(terminal.field("note", note, len("note")) for note in local.notes)]
    return "\n".join(lines) + "\n"


def _rows(plan: ClusterPlan) -> list[tuple[str, ...]]:
    return [
        (
            f"{'+'.join(node.roles)} {node.id}" if i == 0 else "",
            item.name,
            "+".join(item.scopes),
            item.protocol,
            str(item.bind),
            str(item).removeprefix(f"{item.name}://"),
        )
        for node in plan.nodes
        for i, item in enumerate(node.listeners)
    ]


def _counted(brokers: tuple[Node, ...]) -> str:
    return "1 broker" if len(brokers) == 1 else f"{len(brokers)} brokers"


def _nodes(plan: ClusterPlan, wanted: str) -> tuple[Node, ...]:
    if wanted == "all":
        return plan.nodes
    found = tuple(node for node in plan.nodes if str(node.id) == wanted)
    if not found:
        raise EarshotError(
            f"--render {wanted}",
            observed="the plan has no such node",
            allowed=", ".join(["all", *(str(node.id) for node in plan.nodes)]),
        )
    return found
