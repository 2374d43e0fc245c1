"""`earshot plan`: prints the brokers and listeners that an update would deploy."""

import operator
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from earshot.checks.plan import check_planned
from earshot.checks.policy_config import PolicyConfig, stack_config
from earshot.checks.reach import Reach, reach
from earshot.cli.output import emit
from earshot.config.document import Spec
from earshot.errors import EarshotError
from earshot.files.stack_files import stack_name
from earshot.listeners.address import Address
from earshot.listeners.model import ClusterPlan, Listener, Node
from earshot.listeners.render import server_properties
from earshot.placement import PlacementPlan, plan_stack
from earshot.project import Project
from earshot.report.terminal import Terminal, columns
from earshot.rules.evaluate import CheckResult
from earshot.rules.grouped import grouped
from earshot.rules.rule import FindingState
from earshot.sources.files import text_of
from earshot.transition.change import Change
from earshot.transition.memory import recall
from earshot.transition.rehearsal import RehearsedStep, rehearsed_steps
from earshot.validation.contract import Contract, read_contract

HEAD = ("node", "listener", "scopes", "protocol", "binds", "advertises")
DOCKER_HEAD = (*HEAD[:1], "container", *HEAD[1:5], "published", HEAD[5])
_INDENT = "  "


def run(
    stack: str, *, json: bool, render: str | None, check: bool = False, against: str | None = None
) -> int:
    """Prints the plan of ``stack``, with ``check`` also the findings. Returns the exit code, which
    is 1 if a rule is broken.

    With ``against`` it prints the steps from that stack's brokers to this plan instead. Raises
    EarshotError.
    """
    prints_document = json or render is not None
    if against is not None:
        if prints_document or check:
            conflicting_options = (
                "--check, --format json or --render, which are about one plan alone"
            )
            raise _beside("--against", conflicting_options)
        return _steps(stack, against)
    if check and prints_document:
        raise _beside("--check", "--format json or --render, which print nothing but a document")
    if json and render is not None:
        raise _beside("--render", "--format json, which prints another document")
    project = Project.find()
    spec = project.read_cluster(stack)
    planned = plan_stack(spec, stack_name(stack), project.state_dir(stack))
    known_id = _cluster_id(project, stack, spec)
    if render is not None:
        id_text = known_id or "(made by the first update)"
        emit("\n".join(_rendered(planned, node, id_text) for node in _nodes(planned.plan, render)))
    elif json:
        contract = Contract.of(planned.plan, stack_name(stack), spec.placement, known_id)
        emit(contract.to_json() + "\n")
    else:
        terminal = Terminal.of(sys.stdout)
        emit(describe(stack_name(stack), spec, planned, terminal))
        if rows := reach(planned):
            emit("\n" + reach_text(rows, terminal))
        if check:
            config = stack_config(project, stack)
            result = check_planned(spec, planned, config.names)
            emit("\n" + findings_text(result, terminal, config))
            return 1 if config.refused(result) else 0
    return 0


def _beside(option: str, conflicting_options: str) -> EarshotError:
    observed, remedy = f"found with {conflicting_options}", "leave one of them out"
    return EarshotError(option, observed=observed, remedy=remedy)


def _steps(stack: str, against: str) -> int:
    project = Project.find()
    name, state = stack_name(against), project.state_dir(against)
    if not state.is_dir():
        project.read_cluster(against)  # raises for an unknown stack
    planned = plan_stack(project.read_cluster(stack), name, state)
    emit(steps_text(name, state, planned.plan, Terminal.of(sys.stdout)))
    return 0


def steps_text(stack: str, state: Path, target: ClusterPlan, terminal: Terminal) -> str:
    """The steps as text, with the cost of each, and the listeners of every broker after it.

    ``state`` is the folder of ``stack``. Raises EarshotError if no order of steps is safe.
    """
    running_plan = recall(state).complete
    if running_plan is None:
        return (
            f"stack {stack}: the listeners of its brokers are not stored, so no steps are planned\n"
        )
    change = Change.of(state, target)
    if not change.steps:
        return f"stack {stack}: its brokers run these listeners already\n"
    count = len(change.steps)
    head = "one step" if count == 1 else f"{count} steps, each by an update of its own"
    lines = [terminal.bold(f"stack {stack}: {head}")]
    titles = change.lines or (f"step 1 of 1: {change.steps[0].text}",)
    for title, step in zip(titles, rehearsed_steps(running_plan, change.steps), strict=True):
        lines += ["", terminal.bold(title)]
        fields = list(_step_fields(step))
        width = max(len(label) for label, _ in fields)
        lines += [terminal.field(label, text, width) for label, text in fields]
    return "\n".join(lines) + "\n"


def _step_fields(step: RehearsedStep) -> Iterator[tuple[str, str]]:
    yield "restarts", ", ".join(map(str, step.restarts)) or "none"
    yield "between brokers", step.through
    for scope, names in step.after.items():
        meanwhile = ", ".join(step.meanwhile.get(scope, ())) or "none reaches every broker"
        yield f"clients, {scope}", f"meanwhile {meanwhile}; after it {', '.join(names)}"
    for id, offers in step.offers.items():
        yield f"broker {id}", ", ".join(offers)


def reach_text(rows: Sequence[Reach], terminal: Terminal) -> str:
    """A table of the clients and the addresses that they use: a row per place and listener."""
    head = ("clients", "listener", "sent to", "arrive")
    cells = [(row.place, row.listener, _first_address(row.addresses), row.answer) for row in rows]
    first, *lines = columns([head, *cells])
    text_lines = [terminal.bold(first)]
    for row, line in zip(rows, lines, strict=True):
        text_lines.append(line)
        text_lines += textwrap.wrap(
            row.because, terminal.width, initial_indent=_INDENT * 2, subsequent_indent=_INDENT * 2
        )
    return "\n".join(text_lines) + "\n"


def _first_address(addresses: Sequence[Address]) -> str:
    """The first address, and the number of others."""
    count_text = f" and {len(addresses) - 1} more" if len(addresses) > 1 else ""
    return f"{addresses[0]}{count_text}" if addresses else "-"


def findings_text(result: CheckResult, terminal: Terminal, config: PolicyConfig) -> str:
    """The findings as text, a block per cause: errors, warnings, then those not checked."""
    errors, other_findings = config.refused(result), config.shown(result)
    unknown = [finding for finding in other_findings if finding.state is FindingState.UNKNOWN]
    warnings = [finding for finding in other_findings if finding not in unknown]
    blocks = []
    for title, items in (("error", errors), ("warning", warnings), ("not checked", unknown)):
        blocks += [f"{terminal.bold(title)}: {group}" for group in grouped(items)]
    remarks = config.remarks(result)
    blocks += [terminal.field("note", remark, len("note")) for remark in remarks]
    if not errors and not warnings:
        nothing_else = unknown or len(remarks) > len(result.remarks)
        blocks.append(f"rules: nothing {'else ' if nothing_else else ''}found")
    return "\n\n".join(blocks) + "\n"


def describe(stack: str, spec: Spec, planned: PlacementPlan, terminal: Terminal) -> str:
    """The plan as a table with a row per socket, and notes on its names."""
    plan = planned.plan
    head, *rows = _table(planned, terminal.width)
    brokers = len(plan.brokers)
    facts = (
        f"{brokers} broker{'' if brokers == 1 else 's'}, "
        f"voters {', '.join(str(node.id) for node in plan.controllers)}, "
        f"replicas {plan.replication_factor}, min ISR {plan.min_insync_replicas}, "
        f"between brokers {plan.inter_broker}, gate {spec.gate}"
    )
    lines = [
        terminal.bold(f"stack {stack}: placement {spec.placement}, Kafka {plan.kafka_version}"),
        *terminal.lines(facts),
        "",
        terminal.bold(head),
        *rows,
    ]
    if planned.notes:
        lines += ["", *(terminal.field("note", note, len("note")) for note in planned.notes)]
    return "\n".join(lines) + "\n"


def _table(planned: PlacementPlan, width: int) -> list[str]:
    """A head and a row per socket. If ``width`` is too small, nodes are on separate lines, and if
    it is still too small, advertised addresses, too."""
    nodes = planned.plan.nodes
    owners = [
        _owner(planned, node, first=not turn)
        for node in nodes
        for turn, _ in enumerate(node.listeners)
    ]
    sockets = [_socket(planned, node, listener) for node in nodes for listener in node.listeners]
    owner_head, head = (
        (DOCKER_HEAD[:2], DOCKER_HEAD[2:]) if planned.containers else (HEAD[:1], HEAD[1:])
    )
    lines = columns([(*owner_head, *head), *map(operator.add, owners, sockets)])
    if max(map(len, lines)) <= width:
        return lines
    lines = columns([head, *sockets])
    if max(map(len, lines)) + len(_INDENT) > width:
        lines = columns([head[:-1], *(row[:-1] for row in sockets)])
        last_column = [head[-1], *(row[-1] for row in sockets)]
        lines = [
            f"{line}\n{_INDENT * 2}{cell}" for line, cell in zip(lines, last_column, strict=True)
        ]
    rows = [textwrap.indent(line, _INDENT) for line in lines]
    titles = [", ".join(filter(None, owner)) for owner in owners]
    return rows[:1] + [
        f"{title}\n{line}" if title else line for title, line in zip(titles, rows[1:], strict=True)
    ]


def _owner(planned: PlacementPlan, node: Node, *, first: bool) -> tuple[str, ...]:
    """The columns of a node, empty except in the row of its first socket."""
    node_text = f"{'+'.join(node.roles)} {node.id}" if first else ""
    if not planned.containers:
        return (node_text,)
    return (node_text, planned.container_of(node.id) if first else "")


def _socket(planned: PlacementPlan, node: Node, listener: Listener) -> tuple[str, ...]:
    """The columns of one socket."""
    fields = (listener.name, "+".join(listener.scopes), listener.protocol, str(listener.bind))
    address = str(listener).removeprefix(f"{listener.name}://")
    if not planned.containers:
        return (*fields, address)
    published = planned.containers[node.id].ports
    ports = [str(port) for port in published if port.container_port == listener.bind_port]
    return (*fields, ", ".join(ports) or "-", address)


def _cluster_id(project: Project, stack: str, spec: Spec) -> str | None:
    """The cluster's id from the stack's file or its last update."""
    if configured_id := getattr(spec, "cluster_id", None):
        return str(configured_id)
    file = project.contract_file(stack)
    return read_contract(text_of(file), str(file)).cluster_id if file.exists() else None


def _rendered(planned: PlacementPlan, node: Node, cluster_id: str) -> str:
    """`server.properties`, or a container's variables for `docker run --env-file`."""
    if container := planned.containers.get(node.id):
        variables = container.variables(cluster_id)
        return "".join(f"{name}={value}\n" for name, value in variables.items())
    if not all(listener.known for listener in node.listeners):
        raise EarshotError(
            f"--render {node.id}",
            observed="its names are not known before AWS has given them",
            remedy="after the update, look at the instance's user data",
        )
    return server_properties(planned.plan, node)


def _nodes(plan: ClusterPlan, node_id: str) -> tuple[Node, ...]:
    if node_id == "all":
        return plan.nodes
    nodes = tuple(node for node in plan.nodes if str(node.id) == node_id)
    if not nodes:
        raise EarshotError(
            f"--render {node_id}",
            observed="the plan has no such node",
            allowed=", ".join(["all", *(str(node.id) for node in plan.nodes)]),
        )
    return nodes
