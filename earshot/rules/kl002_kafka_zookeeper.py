"""KL002: requirements of Kafka up to 3.9 for brokers with ZooKeeper (Z)."""

from collections.abc import Iterator

from earshot.facts.settings import KafkaSettings
from earshot.listeners.grammar import MAX_ID
from earshot.rules.objections import Objection

CONTROL_PLANE = "control.plane.listener.name"
NAMES = "controller.listener.names"
CONNECT = "zookeeper.connect"
MIGRATION = "zookeeper.metadata.migration.enable"
GENERATION = "broker.id.generation.enable"
RESERVED = "reserved.broker.max.id"


def ensemble(view: KafkaSettings) -> Iterator[Objection]:
    """Z1a."""
    if not view.has(CONNECT):
        expected = f"process.roles for KRaft, or {CONNECT}"
        yield Objection("Z1a", "process.roles", f"is not set, nor is {CONNECT}", expected)


def controller_names(view: KafkaSettings) -> Iterator[Objection]:
    """Z1: controller listeners need KRaft, or a migration to it."""
    migrates = view.text(MIGRATION, "false").lower() == "true"
    if view.version >= (3, 2) and view.text(NAMES).strip(",") and not migrates:
        observed = f"is {view.text(NAMES)} on a broker without process.roles"
        remedy = f"take {NAMES} away, or set process.roles"
        yield Objection("Z1", NAMES, observed, "no such setting with ZooKeeper", remedy)


def ids(view: KafkaSettings) -> Iterator[Objection]:
    """R2a, Z4: a configured id is below the ids that ZooKeeper generates."""
    generates = view.text(GENERATION, "true").lower() == "true"
    most = (view.number(RESERVED) if view.has(RESERVED) else 1000) if generates else MAX_ID
    given = [key for key in ("node.id", "broker.id") if view.has(key)]
    numbers = {key: view.number(key) for key in given}
    for key in given if generates else given or ["broker.id"]:
        number = numbers.get(key)
        if number is None or (most is not None and not (-1 if generates else 0) <= number <= most):
            observed = f"is not set, and {GENERATION} is false"
            observed = f"is {view.text(key)!r}" if view.has(key) else observed
            expected = f"a number up to {most}" + (f", or {GENERATION}=false" if generates else "")
            yield Objection("Z4", key, observed, expected)
    if len(set(numbers.values())) > 1 and view.version >= (3, 2):
        observed = f"is {view.text('broker.id')} while node.id is {view.text('node.id')}"
        yield Objection("R2a", "broker.id", observed, "the same number", "take node.id away")


def flags(view: KafkaSettings) -> Iterator[Objection]:
    """Z5: booleans are true or false."""
    for key, first in ((GENERATION, (0,)), (MIGRATION, (3, 4))):
        is_known = first <= view.version < (4, 0) and view.has(key)
        if is_known and view.text(key).strip().lower() not in ("true", "false"):
            yield Objection("Z5", key, f"is {view.text(key)!r}", "true or false")


def control_plane(view: KafkaSettings) -> Iterator[Objection]:
    """Z1c, Z1d: the control plane is an advertised listener, and not the inter-broker one."""
    if not view.has(CONTROL_PLANE):
        return
    name = view.text(CONTROL_PLANE).upper()
    if name not in view.advertised or name == view.inter_broker:
        client_listeners = [name for name in view.advertised if name != view.inter_broker]
        observed = f"is {name}"
        observed += ", as inter.broker.listener.name is" if name in view.advertised else ""
        expected = f"one of {', '.join(client_listeners) or 'the advertised listeners'}"
        yield Objection(
            "Z1c", CONTROL_PLANE, observed, expected, f"take {CONTROL_PLANE} away", name
        )


CHECKS = (ensemble, controller_names, ids, flags, control_plane)
