"""The walk of one client, hop by hop."""

from pathlib import Path

import pytest

from earshot.cli.lint_options import main
from earshot.errors import EarshotError
from tests.goldens import is_golden
from tests.raised import raised

WALKS = Path(__file__).parent / "walks"
TEXT = """\
services:
  kafka:
    image: confluentinc/cp-kafka:7.6.0
    ports: ["9094:9094", "127.0.0.1:9095:9095"]
    environment:
      KAFKA_ZOOKEEPER_CONNECT: zookeeper:2181
      KAFKA_LISTENERS: INNER://:19092,OUTER://:9094,LOST://:9095
      KAFKA_ADVERTISED_LISTENERS:
        INNER://kafka:19092,OUTER://localhost:9094,LOST://192.168.7.10:9095
      KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: INNER:PLAINTEXT,OUTER:PLAINTEXT,LOST:PLAINTEXT
      KAFKA_INTER_BROKER_LISTENER_NAME: INNER
  right:
    image: provectuslabs/kafka-ui:v0.7.2
    environment: {KAFKA_CLUSTERS_0_BOOTSTRAPSERVERS: "kafka:19092"}
  unsaid: {image: app, environment: {KAFKA_BOOTSTRAP_SERVERS: "kafka:19092"}}
  secret:
    image: provectuslabs/kafka-ui:v0.7.2
    environment:
      KAFKA_CLUSTERS_0_BOOTSTRAPSERVERS: kafka:19092
      KAFKA_CLUSTERS_0_PROPERTIES_SECURITY_PROTOCOL: SSL
  misled: {image: app, environment: {KAFKA_BOOTSTRAP_SERVERS: "kafka:9094"}}
  afar: {image: app, environment: {KAFKA_BOOTSTRAP_SERVERS: "kafka.example.com:9094"}}
  idle: {image: app}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "compose.yaml"
    path.write_text(TEXT)
    return path


@pytest.mark.parametrize(
    ("client", "code"),
    [("right", 0), ("unsaid", 3), ("secret", 1), ("misled", 1), ("afar", 3), ("host", 1)],
)
def test_a_walk(client: str, code: int, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(file), "--explain", client]) == code
    is_golden(capsys.readouterr().out, WALKS / f"{client}.txt")


MANIFEST = """\
apiVersion: v1
kind: Service
metadata: {name: kafka-inner}
spec: {clusterIP: None, selector: {app: kafka}, ports: [{port: 9092}]}
---
apiVersion: v1
kind: Service
metadata: {name: kafka-outer}
spec: {type: NodePort, selector: {app: kafka}, ports: [{port: 9094, nodePort: 30094}]}
---
apiVersion: v1
kind: Pod
metadata: {name: kafka, labels: {app: kafka}}
spec:
  containers:
    - name: broker
      image: confluentinc/cp-kafka:7.6.0
      env:
        - {name: KAFKA_ZOOKEEPER_CONNECT, value: "zookeeper:2181"}
        - {name: KAFKA_LISTENERS, value: "INNER://:9092,OUTER://:9094"}
        - {name: KAFKA_ADVERTISED_LISTENERS, value: "INNER://kafka-inner:9092,OUTER://192.0.2.7:9094"}
        - {name: KAFKA_LISTENER_SECURITY_PROTOCOL_MAP, value: "INNER:PLAINTEXT,OUTER:PLAINTEXT"}
        - {name: KAFKA_INTER_BROKER_LISTENER_NAME, value: INNER}
---
apiVersion: v1
kind: Pod
metadata: {name: app}
spec:
  containers:
    - name: ui
      image: provectuslabs/kafka-ui:v0.7.2
      env: [{name: KAFKA_CLUSTERS_0_BOOTSTRAPSERVERS, value: "kafka-inner:9092"}]
"""


@pytest.mark.parametrize(("client", "code"), [("app/ui", 0), ("host", 1)])
def test_a_walk_in_a_manifest(
    client: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pods.yaml"
    path.write_text(MANIFEST)
    assert main([str(path), "--explain", client]) == code
    is_golden(capsys.readouterr().out, WALKS / f"pods-{client.partition('/')[0]}.txt")


def test_one_that_is_no_client(file: Path) -> None:
    with pytest.raises(EarshotError, match="right, unsaid, secret, misled, afar, host"):
        main([str(file), "--explain", "idle"])


def test_a_container_that_advertises_its_address(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "compose.yaml"
    path.write_text('services: {k: {image: "debezium/kafka:1.9", ports: ["9092:9092"]}}')
    assert main([str(path), "--explain", "host"]) == 3
    written = capsys.readouterr().out
    assert "advertises k at its container's address, port 9092: unknown" in written
    assert "way      unknown whether the machine has a route to its containers" in written


UNPUBLISHED = "services:\n  kafka: {image: apache/kafka}\n"
UNREAD = """\
services:
  kafka: {image: apache/kafka, command: kafka-server-start.sh a, ports: ["9092:9092"]}
  app: {image: app, environment: {KAFKA_BOOTSTRAP_SERVERS: "kafka:9092"}}
"""


@pytest.mark.parametrize(
    ("text", "observed", "allowed"),
    [
        (UNPUBLISHED, "leads to a listener", "a file with clients, or with a published port"),
        (UNREAD, "the listeners of kafka are unknown", "app"),
    ],
)
def test_a_file_without_a_client_on_the_machine(
    text: str, observed: str, allowed: str, tmp_path: Path
) -> None:
    path = tmp_path / "compose.yaml"
    path.write_text(text)
    error = raised(EarshotError, main, [str(path), "--explain", "host"])
    assert error.observed.endswith(observed)
    assert error.allowed.startswith(allowed)
    assert "host" not in error.allowed


@pytest.mark.parametrize("paths", [[], ["."], ["compose.yaml", "compose.yaml"]])
def test_it_takes_one_file(paths: list[str]) -> None:
    with pytest.raises(EarshotError, match="one Compose file"):
        main([*paths, "--explain", "app"])


def test_what_is_no_compose_file(tmp_path: Path) -> None:
    path = tmp_path / "other.yaml"
    path.write_text("a: 1")
    with pytest.raises(EarshotError, match="not a Compose file"):
        main([str(path), "--explain", "app"])
