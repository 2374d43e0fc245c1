"""Random pairs of plans: the running one, and the wanted one."""

import random
from typing import Any

from earshot.listeners.model import ClusterPlan
from earshot.listeners.terms import Scope
from earshot.placement.plan import NodeNames, plan
from tests.config.read import read_local

NAMES = ("INTERNAL", "REPL", "EXTERNAL", "PUBLIC", "ALPHA", "BETA")
PORTS = (9092, 9192, 9292, 9392, 9492, 9592, 9692, 9792)
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
SCOPES = (["internal"], ["host"], ["internal", "host"])
MAX_BROKERS = 7

Document = dict[str, Any]


def changes(chance: random.Random) -> tuple[ClusterPlan, ClusterPlan, ClusterPlan]:
    """The running plan, the wanted one, and another that is wanted when half of that is done.

    The latter two are mostly a few changes of the running one, sometimes another cluster.
    """
    old = cluster(chance)
    wanted, instead = (
        cluster(chance) if chance.random() < 0.1 else changed(old, chance) for _ in range(2)
    )
    return planned(old), planned(wanted), planned(instead)


def cluster(chance: random.Random) -> Document:
    names = chance.sample(NAMES, chance.randint(1, 4))
    ports = chance.sample(PORTS, len(names))
    listeners = [
        {"name": name, "port": port, "scopes": chance.choice(SCOPES), "protocol": "PLAINTEXT"}
        for name, port in zip(names, ports, strict=True)
    ]
    listeners[0]["scopes"] = ["internal"]
    if chance.random() < 0.3:
        chance.choice(listeners)["protocol"] = chance.choice(PROTOCOLS)
    return {"brokers": chance.randint(1, MAX_BROKERS), "listeners": listeners}


def changed(old: Document, chance: random.Random) -> Document:
    """``old`` after one to four changes that an operator may want, sensible or not."""
    new = {**old, "listeners": [dict(listener) for listener in old["listeners"]]}
    for _ in range(chance.randint(1, 4)):
        chance.choice(
            (_renamed, _renamed, _moved, _secured, _added, _removed, _used, _grown, _rescoped)
        )(new, chance)
    return new


def planned(document: Document) -> ClusterPlan:
    """Brokers with a machine each; one of them, and so the quorum, stays as brokers come and go."""
    spec = read_local({"placement": "local", "controllers": {"count": 1}, **document}, "a pair")
    names = {
        id: NodeNames(hosts={scope: f"b{id}.{scope}.example" for scope in Scope})
        for id in spec.node_ids
    }
    return plan(spec, names)


def _renamed(new: Document, chance: random.Random) -> None:
    free = [name for name in NAMES if name not in _taken(new, "name")]
    if free:
        listener = chance.choice(new["listeners"])
        if new.get("inter_broker") == listener["name"]:
            del new["inter_broker"]
        listener["name"] = chance.choice(free)
        if chance.random() < 0.7:
            _move(new, listener, chance)


def _moved(new: Document, chance: random.Random) -> None:
    _move(new, chance.choice(new["listeners"]), chance)


def _move(new: Document, listener: Document, chance: random.Random) -> None:
    listener["port"] = chance.choice([port for port in PORTS if port not in _taken(new, "port")])


def _secured(new: Document, chance: random.Random) -> None:
    chance.choice(new["listeners"])["protocol"] = chance.choice(PROTOCOLS)


def _added(new: Document, chance: random.Random) -> None:
    free = [name for name in NAMES if name not in _taken(new, "name")]
    if free:
        listener: Document = {"name": chance.choice(free), "scopes": chance.choice(SCOPES)}
        listener |= {"port": 0, "protocol": chance.choice(PROTOCOLS)}
        new["listeners"].insert(chance.randint(0, len(new["listeners"])), listener)
        _move(new, listener, chance)


def _removed(new: Document, chance: random.Random) -> None:
    removed = chance.choice(new["listeners"])
    rest = [listener for listener in new["listeners"] if listener is not removed]
    if any("internal" in listener["scopes"] for listener in rest):
        new["listeners"] = rest
        if new.get("inter_broker") == removed["name"]:
            del new["inter_broker"]


def _used(new: Document, chance: random.Random) -> None:
    internal = [
        listener["name"] for listener in new["listeners"] if "internal" in listener["scopes"]
    ]
    new["inter_broker"] = chance.choice(internal)


def _rescoped(new: Document, chance: random.Random) -> None:
    listener = chance.choice(new["listeners"])
    listener["scopes"] = chance.choice(SCOPES)
    if "internal" not in listener["scopes"] and new.get("inter_broker") == listener["name"]:
        del new["inter_broker"]
    if not any("internal" in listener["scopes"] for listener in new["listeners"]):
        listener["scopes"] = ["internal"]


def _grown(new: Document, chance: random.Random) -> None:
    new["brokers"] = chance.randint(1, MAX_BROKERS)


def _taken(document: Document, key: str) -> set[Any]:
    return {listener[key] for listener in document["listeners"]}
