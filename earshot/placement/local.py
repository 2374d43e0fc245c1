"""The plan of brokers that are processes of this machine."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from earshot.config.local import LocalSpec
from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan
from earshot.listeners.security import FOLDER
from earshot.listeners.terms import ANY_IPV4, Scope, UnknownHost
from earshot.names.kinds import NameKind, ip_of, kind_of
from earshot.names.machine import Machine, this_machine
from earshot.placement.plan import LOCALHOST, LOOPBACK, NodeNames, PlacementPlan, plan
from earshot.placement.secured import secured
from earshot.sockets import OutgoingPorts, outgoing_ports

SMALL_BROKER = {
    # the default of 128 MiB is allocated at start and does not fit a small heap
    "log.cleaner.dedupe.buffer.size": "2097152",
    # a group on a developer's machine need not wait for more consumers
    "group.initial.rebalance.delay.ms": "0",
}


@dataclass(frozen=True, kw_only=True)
class LocalPlan(PlacementPlan):
    """What `plan` made of a local spec, and the folder of its cluster."""

    root: Path


def plan_local(spec: LocalSpec, root: Path) -> LocalPlan:
    """The plan of ``spec`` on this machine, with data under ``root``. Raises EarshotError."""
    _check_root(root)
    names, notes = local_names(spec, this_machine(), root)
    settled = spec.model_copy(update={"extra": SMALL_BROKER | spec.extra})
    made, folder = plan(settled, names), str(root / FOLDER)
    # the first tier of compilation alone: see `earshot.jvm.archive`
    found = secured(made, spec.security, root, folder, slow_aes=True)
    return LocalPlan(
        plan=found.plan,
        names=names,
        notes=(*notes, *found.notes, *_port_notes(found.plan, outgoing_ports())),
        root=root,
        certificates=found.certificates,
    )


def _port_notes(made: ClusterPlan, outgoing: OutgoingPorts | None) -> Iterator[str]:
    """Ports of listeners that a connection from this machine may hold when a node starts."""
    wanted = {
        item.bind_port: item.name
        for node in made.nodes
        for item in node.listeners
        if outgoing is not None and item.bind_port in outgoing
    }
    if wanted:
        names, ports = dict.fromkeys(wanted.values()), sorted(wanted)
        yield (
            f"{', '.join(names)}: this machine's own connections get ports of {outgoing}, so that "
            f"one of them may hold {', '.join(map(str, ports))} when a node starts; choose ports "
            "outside that range, or reserve these (sysctl net.ipv4.ip_local_reserved_ports)"
        )


def planned(spec: LocalSpec, _stack: str, state: Path) -> LocalPlan:
    """The same for a stack whose data lies under ``state``."""
    return plan_local(spec, state / "kafka")


def _check_root(root: Path) -> None:
    """Every other path Kafka takes, once its properties are escaped."""
    observed = ""
    if "," in str(root):
        observed = "has a comma in its path, at which Kafka would take `log.dirs` apart"
    try:
        str(root).encode()
    except UnicodeEncodeError:
        observed = "has a path that is no UTF-8 text, which Java cannot open"
    if observed:
        raise EarshotError(
            f"data folder {str(root).encode(errors='backslashreplace').decode()}",
            observed=observed,
            remedy="move the project to another path",
        )


MACHINE = "this machine"
_ALWAYS_OWN = (NameKind.LOOPBACK_ADDRESS, NameKind.ANY_ADDRESS)


def local_names(
    spec: LocalSpec, machine: Machine, data_root: Path
) -> tuple[dict[int, NodeNames], list[str]]:
    """The names of every node of ``spec``, and what a user should know about their choice; pure.

    Scopes internal and controller get `localhost`, bound to 127.0.0.1. Scope host gets the
    machine's own name, bound to the very address that it leads to, or `localhost` where there is
    no such name. Scope external gets ``spec.external_host`` where it is set, bound to all
    interfaces. Nodes take consecutive ports in the order of ``spec.node_ids``; a node's data
    lies in ``data_root``/node-<id>/log. Raises EarshotError for a `bind` that is no address of
    this machine.
    """
    _check_binds(spec, machine)
    hosts: dict[Scope, str | UnknownHost] = {
        Scope.CONTROLLER: LOCALHOST,
        Scope.INTERNAL: LOCALHOST,
        Scope.HOST: machine.name or LOCALHOST,
    }
    binds = {
        Scope.CONTROLLER: LOOPBACK,
        Scope.INTERNAL: LOOPBACK,
        Scope.HOST: machine.name_address if machine.name else LOOPBACK,
    }
    if spec.external_host is not None:
        hosts[Scope.EXTERNAL] = spec.external_host
        binds[Scope.EXTERNAL] = ANY_IPV4
    names = {
        id: NodeNames(
            hosts=hosts,
            binds=binds,
            machine=MACHINE,
            port_offset=index,
            log_dir=str(data_root / f"node-{id}" / "log"),
            addresses=machine.addresses,
        )
        for index, id in enumerate(spec.node_ids)
    }
    return names, _notes(spec, machine)


def _check_binds(spec: LocalSpec, machine: Machine) -> None:
    """A broker that cannot bind ends at its start, when the one before it was stopped already."""
    names = {LOCALHOST, machine.name}
    for listener in spec.listeners:
        if listener.bind is None or listener.bind in names:
            continue
        address = ip_of(listener.bind)
        is_local = address is not None and str(address) in machine.addresses
        if not is_local and kind_of(listener.bind) not in _ALWAYS_OWN:
            raise EarshotError(
                f"listeners.{listener.name}.bind",
                observed=f"{listener.bind} is no address of this machine",
                allowed=", ".join(
                    text
                    for text in machine.addresses
                    if kind_of(text) is not NameKind.LINK_LOCAL_ADDRESS
                ),
                remedy="bind one of these, or leave the key out",
            )


def _notes(spec: LocalSpec, machine: Machine) -> list[str]:
    # a listener advertises the name of its widest scope, which is the last
    held = [
        item.name
        for item in spec.listeners
        if item.scopes[-1] is Scope.HOST and item.advertises_own_host(spec.ids)
    ]
    if not held:
        return []
    listeners = ", ".join(held)
    if machine.name is None:
        note = f"advertises {LOCALHOST}, for {MACHINE} has no usable name: {machine.why_unnamed}"
    elif kind_of(machine.name_address) is not NameKind.LOOPBACK_ADDRESS:
        note = (
            f"advertises {machine.name}, which leads to {machine.name_address}: "
            "other machines of that network can reach it too"
        )
    else:
        return []
    return [f"{listeners}: {note}"]
