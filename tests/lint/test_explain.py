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


class Explain:
    """Explains the walk of a client in a file."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capsys = capsys

    def __call__(self, client: str, text: str = TEXT) -> tuple[int, str]:
        """The exit code and the output."""
        file = self._folder / "compose.yaml"
        file.write_text(text)
        code = main([str(file), "--explain", client])
        return code, self._capsys.readouterr().out


@pytest.fixture
def explain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Explain:
    return Explain(tmp_path, capsys)


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


@pytest.mark.parametrize(("client", "text", "code", "golden"), [
    *((client, TEXT, code, f"{client}.txt")
      for client, code in (*(("right", 0), ("unsaid", 3), ("secret", 1)),
                           *(("misled", 1), ("afar", 3), ("host", 1)))),
    ("app/ui", MANIFEST, 0, "pods-app.txt"),
    ("host", MANIFEST, 1, "pods-host.txt"),
])  # fmt: skip
def test_a_walk(client: str, text: str, code: int, golden: str, explain: Explain) -> None:
    exit_code, output = explain(client, text)
    assert exit_code == code
    is_golden(output, WALKS / golden)


def test_a_container_that_advertises_its_address(explain: Explain) -> None:
    text = 'services: {k: {image: "debezium/kafka:1.9", ports: ["9092:9092"]}}'
    code, output = explain("host", text)
    assert code == 3
    assert "advertises k at its container's address, port 9092: unknown" in output
    assert "way      unknown whether the machine has a route to its containers" in output


UNPUBLISHED = "services:\n  kafka: {image: apache/kafka}\n"
UNREAD = """\
services:
  kafka: {image: apache/kafka, command: kafka-server-start.sh a, ports: ["9092:9092"]}
  app: {image: app, environment: {KAFKA_BOOTSTRAP_SERVERS: "kafka:9092"}}
"""


@pytest.mark.parametrize(
    ("client", "text", "observed", "allowed"),
    [
        (
            "host", UNPUBLISHED, "leads to a listener",
            "a file with clients, or with a published port",
        ),
        ("host", UNREAD, "the listeners of kafka are unknown", "app"),
        (
            "idle", TEXT, "has this name, or its addresses are unknown",
            "right, unsaid, secret, misled, afar, host",
        ),
    ],
)  # fmt: skip
def test_a_file_without_the_client(
    client: str, text: str, observed: str, allowed: str, explain: Explain
) -> None:
    error = raised(EarshotError, explain, client, text)
    assert error.observed.endswith(observed)
    assert error.allowed.startswith(allowed)
    assert "host" not in error.allowed.removeprefix(allowed)


@pytest.mark.parametrize("paths", [[], ["."], ["compose.yaml", "compose.yaml"]])
def test_it_takes_one_compose_file(paths: list[str], explain: Explain) -> None:
    with pytest.raises(EarshotError, match="one Compose file"):
        main([*paths, "--explain", "app"])
    with pytest.raises(EarshotError, match="not a Compose file"):
        explain("app", "a: 1")
