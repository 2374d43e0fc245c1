"""Plans brokers that are processes of this machine."""

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
    """The plan of a local spec, with the folder of its cluster."""

    root: Path


def plan_local(spec: LocalSpec, root: Path) -> LocalPlan:
    """The plan of ``spec`` on this machine, with data under ``root``. Raises EarshotError."""
    _check_root(root)
    names, notes = local_names(spec, this_machine(), root)
    spec_with_defaults = spec.model_copy(update={"extra": SMALL_BROKER | spec.extra})
    cluster_plan, folder = plan(spec_with_defaults, names), str(root / FOLDER)
    # the JVM uses only the first compiler tier (`earshot.jvm.archive`), so AES is slow
    secured_plan = secured(cluster_plan, spec.security, root, folder, slow_aes=True)
    return LocalPlan(
        plan=secured_plan.plan,
        names=names,
        notes=(*notes, *secured_plan.notes, *_port_notes(secured_plan.plan, outgoing_ports())),
        root=root,
        certificates=secured_plan.certificates,
    )


def _port_notes(cluster_plan: ClusterPlan, outgoing: OutgoingPorts | None) -> Iterator[str]:
    """A note about listeners' ports that an outgoing connection of this machine may use."""
    ports_at_risk = {
        listener.bind_port: listener.name
        for node in cluster_plan.nodes
        for listener in node.listeners
        if outgoing is not None and listener.bind_port in outgoing
    }
    if ports_at_risk:
        names, ports = dict.fromkeys(ports_at_risk.values()), sorted(ports_at_risk)
        yield (
            f"{', '.join(names)}: outgoing connections of this machine use ports {outgoing}, so "
            f"one of them may occupy {', '.join(map(str, ports))} when a node starts; choose ports "
            "outside that range, or reserve these (sysctl net.ipv4.ip_local_reserved_ports)"
        )


def planned(spec: LocalSpec, _stack: str, state: Path) -> LocalPlan:
    """The plan of ``spec`` for a stack with its data in ``state``. Raises EarshotError."""
    return plan_local(spec, state / "kafka")


def _check_root(root: Path) -> None:
    """Raises EarshotError for a path that Kafka cannot use. Other paths work if escaped."""
    observed = ""
    if "," in str(root):
        observed = "has a comma in its path, at which Kafka would split `log.dirs`"
    try:
        str(root).encode()
    except UnicodeEncodeError:
        observed = "has a path that is not UTF-8, which Java cannot open"
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
    """The names of every node of ``spec``, and notes for the user.

    Scopes internal and controller use `localhost`, bound to 127.0.0.1. Scope host uses the
    machine's own name, bound to the address that the name resolves to, or `localhost` if there is
    no such name. Scope external uses ``spec.external_host`` if set, bound to all interfaces. Nodes
    use consecutive ports in the order of ``spec.node_ids``. A node's data is in
    ``data_root``/node-<id>/log. Raises EarshotError for a `bind` that is not an address of this
    machine.
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
    """Raises EarshotError for a foreign `bind`: the broker would fail after the old one was
    stopped."""
    names = {LOCALHOST, machine.name}
    for listener in spec.listeners:
        if listener.bind is None or listener.bind in names:
            continue
        address = ip_of(listener.bind)
        is_local = address is not None and str(address) in machine.addresses
        if not is_local and kind_of(listener.bind) not in _ALWAYS_OWN:
            raise EarshotError(
                f"listeners.{listener.name}.bind",
                observed=f"{listener.bind} is not an address of this machine",
                allowed=", ".join(
                    text
                    for text in machine.addresses
                    if kind_of(text) is not NameKind.LINK_LOCAL_ADDRESS
                ),
                remedy="bind one of these, or omit the key",
            )


def _notes(spec: LocalSpec, machine: Machine) -> list[str]:
    # a listener advertises the name of its widest scope, which is the last
    listener_names = [
        listener.name
        for listener in spec.listeners
        if listener.scopes[-1] is Scope.HOST and listener.advertises_own_host(spec.ids)
    ]
    if not listener_names:
        return []
    listeners = ", ".join(listener_names)
    if machine.name is None:
        reason = f"{MACHINE} has no usable name: {machine.why_unnamed}"
        note = f"advertises {LOCALHOST}, because {reason}"
    elif kind_of(machine.name_address) is not NameKind.LOOPBACK_ADDRESS:
        note = (
            f"advertises {machine.name}, which resolves to {machine.name_address}: "
            "other machines of that network can reach it too"
        )
    else:
        return []
    return [f"{listeners}: {note}"]
