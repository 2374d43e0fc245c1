"""KL002: the controllers' listeners (C) and those that open early (E)."""

from __future__ import annotations

from collections.abc import Iterator

from earshot.facts.settings import StrictSettings
from earshot.listeners.terms import Protocol
from earshot.rules.kl002_kafka_objection import Objection

NAMES = "controller.listener.names"
AUTO_JOIN = "controller.quorum.auto.join.enable"
CONTROL_PLANE = "control.plane.listener.name"


def named(view: StrictSettings) -> Iterator[Objection]:
    """C1."""
    if view.is_kraft and not view.controllers:
        observed = "is empty" if view.has(NAMES) else "is not set"
        yield Objection("C1", NAMES, observed, "the controllers' listener, on every node")


def repeated(view: StrictSettings) -> Iterator[Objection]:
    """C5a: from 3.9 to 4.1 a controller counts its names, and its listeners; 4.1 maps each."""
    names = [name.strip() for name in view.text(NAMES).split(",") if name.strip()]
    mapped = view.version[:2] == (4, 1) and not view.has("listener.security.protocol.map")
    if len(names) > len(view.controllers) and (mapped or not view.is_broker):
        yield Objection(
            "C5a",
            NAMES,
            f"is {view.text(NAMES)}",
            "each name once",
            instead="" if (3, 9) <= view.version < (4, 2) else "drops the second",
        )


def on_brokers(view: StrictSettings) -> Iterator[Objection]:
    """C2, C3, C4: a broker knows the controllers' listener and does not open it."""
    if view.is_controller:
        return
    for name in view.controllers:
        if name in view.listeners:
            yield Objection(
                "C2",
                NAMES,
                f"{name} is in listeners of a node that is a broker only",
                "a controller listener on controllers alone",
                remedy=f"take {name} out of listeners",
                listener=name,
            )
        used = {name.upper()}
        if name == view.controllers[0] and name.upper() not in Protocol.__members__:
            used.add(name)  # Kafka looks the first up as written, or takes it for a protocol
        if not used <= set(view.protocols):
            yield Objection(
                "C3",
                NAMES,
                f"{name} has no entry in listener.security.protocol.map",
                "an entry for every controller listener, on brokers too",
                remedy=f"add {name}:PROTOCOL to listener.security.protocol.map",
                listener=name,
            )
    if len(view.controllers) > 1:
        yield Objection(
            "C4",
            NAMES,
            f"has {', '.join(view.controllers)} on a node that is a broker only",
            "one name",
            instead=f"uses {view.controllers[0]} alone",
            grave=False,
        )


def on_controllers(view: StrictSettings) -> Iterator[Objection]:
    """C5, C6, C6a: a controller opens all of its listeners, and alone it opens no other."""
    if not view.is_controller:
        return
    for name in view.controllers:
        if name not in view.listeners:
            yield Objection(
                "C6",
                NAMES,
                f"{name} is not in listeners",
                "every controller listener in listeners of a controller",
                remedy=f"add {name} to listeners",
                listener=name,
            )
    for name in view.listeners if not view.is_broker else ():
        if name not in view.controllers:
            yield Objection(
                "C5",
                "listeners",
                f"has {name} on a node that is a controller only",
                f"some of {', '.join(view.controllers)}"
                if view.controllers
                else f"those of {NAMES}",
                remedy=f"take {name} out of listeners",
                listener=name,
            )


def auto_join(view: StrictSettings) -> Iterator[Objection]:
    """C11: only a controller joins a quorum; Kafka knows the setting since 4.2."""
    text = view.text(AUTO_JOIN, "false").strip().lower()
    instead = "" if view.version >= (4, 2) else "does not know it"
    if text not in ("true", "false"):
        yield Objection(
            "C11", AUTO_JOIN, f"is {view.values[AUTO_JOIN]!r}", "true or false", instead=instead
        )
    elif text == "true" and not view.is_controller:
        yield Objection(
            "C11",
            AUTO_JOIN,
            "is true on a node that is a broker only",
            "false, or on controllers alone",
            instead=instead,
        )


def control_plane(view: StrictSettings) -> Iterator[Objection]:
    """C12: of ZooKeeper's times."""
    if view.is_kraft and view.has(CONTROL_PLANE):
        yield Objection(
            "C12",
            CONTROL_PLANE,
            f"is {view.values[CONTROL_PLANE]!r}",
            f"not set: KRaft has {NAMES}",
            instead="" if view.version < (4, 0) else "does not know it",
        )


def early(view: StrictSettings) -> Iterator[Objection]:
    """E1: what opens early must exist."""
    for name in view.early if view.version >= (3, 3) else ():
        if name not in view.listeners:
            yield Objection(
                "E1",
                "early.start.listeners",
                f"{name} is not among the listeners",
                f"some of {', '.join(view.listeners)}",
                listener=name,
            )


CHECKS = (named, repeated, on_brokers, on_controllers, auto_join, control_plane, early)
