"""Published ports of bitnami's images before 2023, and ports that lead to no listener."""

import pytest

from tests.rules.deployment_examples import verdicts

PROTOCOLS = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,INNER:PLAINTEXT"


def old_bitnami(tag: str, listeners: str = "PLAINTEXT://:9092,CONTROLLER://:9093") -> str:
    return f"""
  kafka:
    image: bitnami/kafka:{tag}
    ports: ["9092:9092"]
    environment:
      KAFKA_ENABLE_KRAFT: "yes"
      KAFKA_CFG_NODE_ID: 1
      KAFKA_CFG_PROCESS_ROLES: broker,controller
      KAFKA_CFG_LISTENERS: {listeners}
      KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP: {PROTOCOLS}
      KAFKA_CFG_CONTROLLER_LISTENER_NAMES: CONTROLLER
      KAFKA_CFG_CONTROLLER_QUORUM_VOTERS: 1@kafka:9093
      KAFKA_KRAFT_CLUSTER_ID: q1Sh-9_ISia_zwGINzRvyQ
      ALLOW_PLAINTEXT_LISTENER: "yes"
"""


@pytest.mark.parametrize("tag", ["2.8.1", "3.1", "3.3.1-debian-11-r1", "3.4.0"])
def test_the_old_script_of_bitnami_advertises_the_id_of_the_container(tag: str) -> None:
    assert verdicts(old_bitnami(tag)) == [("KL017", "kafka", "error")]


def test_it_does_not_where_other_listeners_or_a_mounted_file_stand() -> None:
    assert verdicts(old_bitnami("3.3.1", "INNER://:9092,CONTROLLER://:9093")) == []
    mounted = "    volumes: ['./config:/bitnami/kafka/config']\n"
    assert verdicts(old_bitnami("3.3.1") + mounted) == []
    assert verdicts(old_bitnami("3.3.1") + "    env_file: other.env\n") == []


def fixed_address(host: str) -> str:
    return f"""
  zookeeper: {{image: "zookeeper:3.8", networks: [inner]}}
  kafka:
    image: wurstmeister/kafka:2.13-2.8.1
    ports: ["9201:9092"]
    networks: {{inner: {{ipv4_address: 172.30.0.5}}}}
    environment:
      KAFKA_BROKER_ID: 1
      KAFKA_ZOOKEEPER_CONNECT: zookeeper:2181
      KAFKA_LISTENERS: PLAINTEXT://:9201
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://{host}:9201
networks: {{inner: {{ipam: {{config: [{{subnet: 172.30.0.0/16}}]}}}}}}
"""


@pytest.mark.parametrize(("host", "severity"), [("172.30.0.5", "error"), ("192.0.2.7", "warning")])
def test_a_port_published_to_nothing_beside_the_address_of_the_container(
    host: str, severity: str
) -> None:
    assert verdicts(fixed_address(host)) == [("KL017", "kafka", severity)]


def test_it_does_so_where_no_listener_is_set_with_zookeeper() -> None:
    lines = old_bitnami("2.8.1").splitlines()
    kraft = old_bitnami("3.4.0").splitlines()
    unset = "\n".join(it for it in kraft if "_LISTENERS:" not in it)
    kept = [it for it in lines if not any(word in it for word in ("KRAFT", "CONTROLLER", "ROLES"))]
    zookeeper = "      KAFKA_CFG_ZOOKEEPER_CONNECT: zookeeper:2181\n  zookeeper: {image: zookeeper}"
    assert verdicts("\n".join([*kept, zookeeper])) == [("KL017", "kafka", "error")]
    assert verdicts(unset) == []
