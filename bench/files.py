"""Compose files for `earshot lint`: three brokers and two clients each, all well."""

from pathlib import Path

_BROKER = """\
  kafka{id}:
    image: apache/kafka:4.1.1
    ports: ["{port}:9092"]
    environment:
      KAFKA_NODE_ID: {id}
      KAFKA_PROCESS_ROLES: broker,controller
      KAFKA_LISTENERS: INTERNAL://:19092,HOST://:9092,CONTROLLER://:9093
      KAFKA_ADVERTISED_LISTENERS: INTERNAL://kafka{id}:19092,HOST://localhost:{port}
      KAFKA_INTER_BROKER_LISTENER_NAME: INTERNAL
      KAFKA_CONTROLLER_LISTENER_NAMES: CONTROLLER
      KAFKA_CONTROLLER_QUORUM_VOTERS: 1@kafka1:9093,2@kafka2:9093,3@kafka3:9093
      KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: >-
        INTERNAL:PLAINTEXT,HOST:PLAINTEXT,CONTROLLER:PLAINTEXT
"""
_CLIENT = """\
  client{id}:
    image: example/client
    environment:
      KAFKA_BOOTSTRAP_SERVERS: kafka1:19092,kafka2:19092
"""


def write_files(folder: Path, count: int) -> list[str]:
    """``count`` files in ``folder``; their paths."""
    brokers = "".join(_BROKER.format(id=id, port=9091 + id) for id in (1, 2, 3))
    text = f"services:\n{brokers}{''.join(_CLIENT.format(id=id) for id in (1, 2))}"
    paths = []
    for number in range(count):
        file = folder / f"compose-{number}.yml"
        # no file's lists equal another's, so that none is answered from a cache
        file.write_text(
            text.replace("kafka1", f"kafka{number}-1").replace("INTERNAL", f"I{number}")
        )
        paths.append(str(file))
    return paths


def write_large_file(folder: Path, services: int, networks: int) -> str:
    """One file of three brokers on all ``networks`` and clients on one each; its path."""
    names = [f"net{number}" for number in range(networks)]
    joined = f"    networks: [{', '.join(names)}]\n"
    brokers = "".join(_BROKER.format(id=id, port=9091 + id) + joined for id in (1, 2, 3))
    clients = "".join(
        _CLIENT.format(id=id) + f"    networks: [{names[id % networks]}]\n"
        for id in range(services - 3)
    )
    file = folder / "large.yml"
    file.write_text(f"services:\n{brokers}{clients}networks: {{{': {}, '.join(names)}: {{}}}}\n")
    return str(file)
