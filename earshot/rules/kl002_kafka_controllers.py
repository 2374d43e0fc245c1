"""KL002: the controllers' listeners (C) and those that open early (E)."""

from collections.abc import Iterator

from earshot.facts.settings import KafkaSettings
from earshot.listeners.terms import Protocol
from earshot.rules.objections import Objection

NAMES = "controller.listener.names"
AUTO_JOIN = "controller.quorum.auto.join.enable"
CONTROL_PLANE = "control.plane.listener.name"
COUNTED = "counts the names and the listeners, and finds as many"


def not_empty(view: KafkaSettings) -> Iterator[Objection]:
    """C1."""
    if view.is_kraft and not view.controllers:
        observed = "is empty" if view.has(NAMES) else "is not set"
        expected, remedy = "the controllers' listener, on every node", f"set {NAMES} to its name"
        yield Objection("C1", NAMES, observed, expected, remedy)


def repeated(view: KafkaSettings) -> Iterator[Objection]:
    """C5a: each name once; 3.9 to 4.1 compare the numbers of names and listeners."""
    mapped = view.version[:2] == (4, 1) and not view.has("listener.security.protocol.map")
    if len(_names(view)) > len(view.controllers) and (mapped or not view.is_broker):
        instead = "" if (3, 9) <= view.version < (4, 2) else "drops the second"
        if not mapped and _is_miscounted(view):
            instead = COUNTED
        observed = f"is {view.text(NAMES)}"
        yield Objection("C5a", NAMES, observed, "each name once", instead=instead)


def on_brokers(view: KafkaSettings) -> Iterator[Objection]:
    """C2, C3, C4: a broker names the controllers' listener and does not bind it."""
    if view.is_controller:
        return
    for name in view.controllers:
        if name in view.listeners:
            observed = f"{name} is in listeners of a node that is a broker only"
            expected = "a controller listener on controllers alone"
            yield Objection("C2", NAMES, observed, expected, f"take {name} out of listeners", name)
        used = {name.upper()}
        if name == view.controllers[0] and name.upper() not in Protocol.__members__:
            used.add(name)  # Kafka looks up the first as written, or as a protocol
        if not used <= set(view.protocols):
            observed = f"{name} has no entry in listener.security.protocol.map"
            expected = "an entry for every controller listener, on brokers too"
            remedy = f"add {name}:PROTOCOL to listener.security.protocol.map"
            yield Objection("C3", NAMES, observed, expected, remedy, name)
    if len(view.controllers) > 1:
        observed = f"has {', '.join(view.controllers)} on a node that is a broker only"
        instead = f"uses {view.controllers[0]} alone"
        yield Objection("C4", NAMES, observed, "one name", instead=instead, is_error=False)


def on_controllers(view: KafkaSettings) -> Iterator[Objection]:
    """C5, C6, C6a: a controller binds all controller listeners, and without the role broker only
    those."""
    if not view.is_controller:
        return
    for name in view.controllers:
        if name not in view.listeners:
            observed = f"{name} is not in listeners"
            expected = "every controller listener in listeners of a controller"
            yield Objection("C6", NAMES, observed, expected, f"add {name} to listeners", name)
    names = ", ".join(view.controllers)
    expected = f"some of {names}" if names else f"those of {NAMES}"
    for name in view.listeners if not view.is_broker else ():
        if name not in view.controllers:
            observed = f"has {name} on a node that is a controller only"
            remedy = f"take {name} out of listeners"
            instead = COUNTED if _is_miscounted(view) else ""
            yield Objection("C5", "listeners", observed, expected, remedy, name, instead=instead)


def _names(view: KafkaSettings) -> list[str]:
    """The names in `controller.listener.names`, with repetitions."""
    return [name.strip() for name in view.text(NAMES).split(",") if name.strip()]


def _is_miscounted(view: KafkaSettings) -> bool:
    """Whether a node with the single role controller has as many listeners as names, one of which
    is repeated.

    Kafka 3.9 to 4.1 compares only the numbers, so that another listener replaces the repeated name
    (`KafkaConfig.effectiveAdvertisedControllerListeners`).
    """
    names = [name for name in _names(view) if name in view.listeners]
    counts = (3, 9) <= view.version < (4, 2) and not view.is_broker
    return counts and len(names) == len(view.listeners) > len(set(names))


def auto_join(view: KafkaSettings) -> Iterator[Objection]:
    """C11: only a controller joins a quorum; the setting exists since 4.2."""
    text = view.text(AUTO_JOIN, "false").strip().lower()
    instead = "" if view.version >= (4, 2) else "does not know it"
    if text not in ("true", "false"):
        observed, expected = f"is {view.values[AUTO_JOIN]!r}", "true or false"
    elif text == "true" and not view.is_controller:
        observed = "is true on a node that is a broker only"
        expected = "false, or on controllers alone"
    else:
        return
    yield Objection("C11", AUTO_JOIN, observed, expected, instead=instead)


def control_plane(view: KafkaSettings) -> Iterator[Objection]:
    """C12: a setting for ZooKeeper."""
    if view.is_kraft and view.has(CONTROL_PLANE):
        instead = "" if view.version < (4, 0) else "does not know it"
        observed, expected = f"is {view.values[CONTROL_PLANE]!r}", f"not set: KRaft has {NAMES}"
        yield Objection("C12", CONTROL_PLANE, observed, expected, instead=instead)


def early(view: KafkaSettings) -> Iterator[Objection]:
    """E1: early listeners exist."""
    for name in view.early if view.version >= (3, 3) else ():
        if name not in view.listeners:
            observed = f"{name} is not among the listeners"
            expected = f"some of {', '.join(view.listeners)}"
            yield Objection("E1", "early.start.listeners", observed, expected, listener=name)


CHECKS = (not_empty, repeated, on_brokers, on_controllers, auto_join, control_plane, early)
