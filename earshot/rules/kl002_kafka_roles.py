"""KL002: roles, ids and the quorum (R)."""

from collections.abc import Iterator

from earshot.facts.settings import KafkaSettings
from earshot.listeners.grammar import MAX_ID
from earshot.listeners.terms import ANY_IPV4, Role
from earshot.rules.objections import Objection

ROLES = "process.roles"
VOTERS = "controller.quorum.voters"
SERVERS = "controller.quorum.bootstrap.servers"


def roles(view: KafkaSettings) -> Iterator[Objection]:
    """R1, R1a, R1b, R1c."""
    if not view.is_kraft:
        given = view.has(ROLES)
        zookeeper = view.version < (4, 0) and view.has("zookeeper.connect")
        lenient = given and (4, 0) <= view.version < (4, 2)
        instead = "checks nothing that depends on a role" if lenient else ""
        if zookeeper:
            instead = "runs with ZooKeeper, which earshot does not know"
        check, observed = ("R1c", "is empty") if given else ("R1b", "is not set")
        expected, remedy = "broker, controller, or both", f"set {ROLES}"
        yield Objection(check, ROLES, observed, expected, remedy, instead=instead)
        return
    for role in view.roles:
        if role not in list(Role):
            yield Objection("R1", ROLES, f"has {role!r}", "broker, controller, or both")
    if len(set(view.roles)) < len(view.roles):
        instead = "drops the second" if view.version >= (4, 2) else ""
        observed = f"is {','.join(view.roles)}"
        yield Objection("R1a", ROLES, observed, "each role once", instead=instead)


def ids(view: KafkaSettings) -> Iterator[Objection]:
    """R2, R2a."""
    given = [key for key in ("node.id", "broker.id") if view.has(key)]
    if not given:
        expected = f"a number from 0 to {MAX_ID}"
        yield Objection("R2", "node.id", "is not set", expected, "set node.id")
        return
    numbers = {key: view.number(key) for key in given}
    for key, number in numbers.items():
        if number is None or number < 0:
            yield Objection("R2", key, f"is {view.values[key]!r}", f"a number from 0 to {MAX_ID}")
    if len(set(numbers.values())) > 1:
        observed = f"is {view.values['broker.id']} while node.id is {view.values['node.id']}"
        yield Objection("R2a", "broker.id", observed, "the same number", "take broker.id away")


def quorum(view: KafkaSettings) -> Iterator[Objection]:
    """R3: a node with a role names a quorum."""
    servers = view.servers if view.version >= (3, 9) else ()
    if view.kinds and not view.voters and not servers:
        observed, remedy = f"is not set, nor is {SERVERS}", f"set {VOTERS}, the same on all nodes"
        yield Objection("R3", VOTERS, observed, "one of the two", remedy)


def membership(view: KafkaSettings) -> Iterator[Objection]:
    """R5, R6: exactly the controllers are voters."""
    if view.is_controller and view.voters and view.id not in view.voters:
        voters = ", ".join(map(str, view.voters))
        observed = f"has {voters} and not this controller, {view.id}"
        remedy = f"list {view.id} among the voters of every node, or give this node the id of the "
        remedy += "voter that it is"
        yield Objection("R6", VOTERS, observed, "every controller of a static quorum", remedy)
    if not view.is_controller and view.id in view.voters:
        observed = f"has this node, {view.id}, which is a broker only"
        remedy = f"give node {view.id} the role controller, or take it off the voters"
        yield Objection("R5", VOTERS, observed, "controllers alone", remedy)


def addresses(view: KafkaSettings) -> Iterator[Objection]:
    """R4a: a voter's address is not 0.0.0.0."""
    for id, address in view.voters.items():
        if address.host == ANY_IPV4:
            observed = f"places voter {id} at {address}"
            expected = "an address that the other nodes can connect to"
            instead = "checks it too late and stops while it starts"
            yield Objection("R4a", VOTERS, observed, expected, instead=instead)


CHECKS = (roles, ids, quorum, membership, addresses)
