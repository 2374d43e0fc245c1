"""KL016 of nodes that do not agree: voters, bootstrap servers, cluster ids and protocols.

Of each kind a file that is wrong at one node, and files that are right and look alike.
"""

from collections.abc import Mapping

import pytest

from tests.rules.deployment_examples import observations

ID = "MkU3OEVBNTcwNTJENDM2Qk"
ALL = "1@k1:9093,2@k2:9093,3@k3:9093"
MAP = "IN:PLAINTEXT,CONTROLLER:PLAINTEXT"
Variables = Mapping[str, str]


def node(name: str, id: int, voters: str, role: str = "broker,controller", **more: str) -> str:
    """One service; ``more`` are variables in place of the usual ones, an empty text for none."""
    listeners = {"broker": "IN://:9092", "controller": "CONTROLLER://:9093"}
    variables = {
        "CLUSTER_ID": ID,
        "KAFKA_NODE_ID": str(id),
        "KAFKA_PROCESS_ROLES": role,
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": voters,
        "KAFKA_LISTENERS": ",".join(listeners[item] for item in role.split(",")),
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": MAP,
    }
    if "broker" in role:
        variables["KAFKA_ADVERTISED_LISTENERS"] = f"IN://{name}:9092"
        variables["KAFKA_INTER_BROKER_LISTENER_NAME"] = "IN"
    image = more.pop("image", "apache/kafka:4.1.1")
    lines = [f"      {key}: {value}" for key, value in (variables | more).items() if value]
    return "\n".join([f"  {name}:", f"    image: {image}", "    environment:", *lines])


def three(**of_the_third: str) -> str:
    """Three nodes of one cluster, the third with other variables."""
    voters = of_the_third.pop("voters", ALL)
    nodes = [node("k1", 1, ALL), node("k2", 2, ALL), node("k3", 3, voters, **of_the_third)]
    return "\n".join(nodes)


def with_broker(voters: str, **more: str) -> str:
    """A controller c1, and a broker b1."""
    controller = node("c1", 1, "1@c1:9093", "controller")
    return f"{controller}\n{node('b1', 11, voters, 'broker', **more)}"


def dynamic(first: str, second: str, servers: str = "k1:9093,k2:9093") -> str:
    """Two nodes of an image that is not known, by what their controllers advertise."""
    nodes = [
        node(
            name,
            id,
            "",
            image="registry.example.com/kafka:4.1",
            KAFKA_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS=servers,
            KAFKA_ADVERTISED_LISTENERS=f"IN://{name}:9092,CONTROLLER://{at}",
        )
        for name, id, at in (("k1", 1, first), ("k2", 2, second))
    ]
    return "\n".join(nodes)


def bitnami(name: str, id: int, **more: str) -> str:
    variables = {
        "KAFKA_CFG_NODE_ID": str(id),
        "KAFKA_CFG_PROCESS_ROLES": "broker,controller",
        "KAFKA_CFG_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_CFG_CONTROLLER_QUORUM_VOTERS": "1@k1:9093,2@k2:9093",
        "KAFKA_CFG_LISTENERS": "PLAINTEXT://:9092,CONTROLLER://:9093",
        "KAFKA_CFG_ADVERTISED_LISTENERS": f"PLAINTEXT://{name}:9092",
        "KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        **more,
    }
    lines = [f"      {key}: {value}" for key, value in variables.items()]
    head = [f"  {name}:", "    image: bitnami/kafka:3.9", "    environment:"]
    return "\n".join([*head, *lines])


SERVERS = {"KAFKA_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS": "c1:9093"}
WRONG = {
    "a name that nothing has": (three(voters="1@k1:9093,2@kx:9093,3@k3:9093"), "k3", "kx"),
    "a port where nobody listens": (three(voters="1@k1:9094,2@k2:9093,3@k3:9093"), "k3", "9094"),
    "names exchanged": (three(voters="1@k2:9093,2@k1:9093,3@k3:9093"), "k3", "k2"),
    "a voter less": (three(voters="1@k1:9093,3@k3:9093"), "k3", "lists 1, 3"),
    "a voter more": (three(voters=f"{ALL},4@k3:9093"), "k3", "lists 1, 2, 3 and 1 more"),
    "a broker that asks nothing": (with_broker("1@cx:9093"), "b1", "cx"),
    "a broker that asks its own container": (with_broker("1@localhost:9093"), "b1", "localhost"),
    "a broker that asks a port of brokers": (with_broker("1@b1:9092"), "b1", "b1:9092"),
    "servers with a name of nothing":
    (with_broker("", KAFKA_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS="cx:9093"), "b1", "cx"),
    "servers at another port":
    (with_broker("", KAFKA_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS="c1:9094"), "b1", "c1:9094"),
    "a controller that calls itself localhost": (dynamic("localhost:9093", "k2:9093"), "k1",
                                                 "localhost"),
    "a controller by another's name": (dynamic("k1:9093", "k1:9093"), "k2", "k1:9093"),
    "another cluster id": (three(CLUSTER_ID="XkU3OEVBNTcwNTJENDM2Qk"), "k3", "XkU3"),
    "the id of the image, beside one that is set": (three(CLUSTER_ID=""), "k3", "5L6g3nShT"),
    "random ids": (f"{bitnami('k1', 1)}\n{bitnami('k2', 2)}", "k1", "random"),
    "another protocol of controllers":
    (three(KAFKA_LISTENER_SECURITY_PROTOCOL_MAP="IN:PLAINTEXT,CONTROLLER:SSL"), "k3",
     "SSL with controllers"),
    "another protocol between brokers":
    (three(KAFKA_LISTENER_SECURITY_PROTOCOL_MAP="IN:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
           KAFKA_OPTS="-Djava.security.auth.login.config=/etc/kafka/jaas.conf"), "k3",
     "SASL_PLAINTEXT with other brokers"),
}  # fmt: skip
RIGHT = {
    "three nodes": three(),
    "the same voters in another order": three(voters="3@k3:9093,1@k1:9093,2@k2:9093"),
    "a controller and a broker": with_broker("1@c1:9093"),
    "a broker by bootstrap servers": with_broker("", **SERVERS),
    "a dynamic quorum": dynamic("k1:9093", "k2:9093"),
    "random ids of two clusters": "\n".join(
        bitnami(f"k{id}", id, KAFKA_CFG_CONTROLLER_QUORUM_VOTERS=f"{id}@k{id}:9093")
        for id in (1, 2)
    ),
    "one id for two clusters": f"{node('k1', 1, '1@k1:9093')}\n{node('k2', 1, '1@k2:9093')}",
    "controllers that another file has": node("b1", 11, "1@c1:9093", "broker"),
    "a voter of a variable": three(voters="${VOTERS}"),
    "an id of a variable": three(CLUSTER_ID="${ID}"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_node_that_differs_is_named(kind: str) -> None:
    text, service, said = WRONG[kind]
    listed = [item for item in observations(text) if item[:2] == ("KL016", service)]
    assert any(said in observed for _, _, observed in listed), observations(text)


@pytest.mark.parametrize("kind", RIGHT)
def test_nodes_that_agree_are_well(kind: str) -> None:
    assert [item for item in observations(RIGHT[kind]) if item[0] == "KL016"] == []
