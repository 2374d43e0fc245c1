"""Keys, logins and brokers' addresses that are missing, other images, Redpanda's flags, and where
a manifest's clients are sent."""

import pytest

from earshot.checks import kubernetes
from earshot.checks.lone_settings import mistakes_in_properties
from earshot.sources.kubernetes import read_manifest
from earshot.yaml_reading.document import read_yaml_documents
from tests.rules.deployment_examples import observations

PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:9093
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://:9092,OUTER://:9094,CONTROLLER://:9093
advertised.listeners=PLAINTEXT://kafka:9092,OUTER://kafka.example.com:9094
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,OUTER:{},CONTROLLER:PLAINTEXT
"""


def broker(protocol: str, more: str = "") -> str:
    variables = (
        f"      KAFKA_{key.upper().replace('.', '_')}: '{value}'"
        for key, value in (line.split("=", 1) for line in PROPERTIES.format(protocol).split())
    )
    head = "  kafka:\n    image: apache/kafka:4.1.1\n    ports: ['9094:9094']\n    environment:\n"
    return head + "\n".join(variables) + f"\n{more}"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", ""),  # another file, or the cluster itself, may have it
        ("ssl.keystore.location=/k.jks", ""),
        ("listener.name.outer.ssl.keystore.location=/k.jks", ""),
        ("listener.name.outer.ssl.keystore.key=x", ""),
        ("ssl.engine.factory.class=org.example.Engine", ""),
        ("listener.name.OUTER.ssl.keystore.location=/k.jks", "is of no listener"),
        ("listener.name.outside.ssl.keystore.location=/k.jks", "is of no listener"),
        ("listener.name.plaintext.ssl.keystore.location=/k.jks", ""),
        ("listener.name.controller.ssl.keystore.location=/k.jks", ""),
    ],
)
def test_a_tls_listener_needs_a_key(line: str, said: str) -> None:
    findings = mistakes_in_properties(f"{PROPERTIES.format('SSL')}{line}\n")
    assert [finding.rule for finding in findings] == (["KL002"] if said else [])
    assert all(said in finding.observed for finding in findings)
    assert mistakes_in_properties(f"{PROPERTIES.format('PLAINTEXT')}{line}\n") == ()


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        ("", ["KL002"]),
        ("      KAFKA_SSL_KEYSTORE_FILENAME: broker.jks", []),
        ("      KAFKA_LISTENER_NAME_OUTER_SSL_KEYSTORE_LOCATION: /k.jks", []),
        ("      KAFKA_LISTENER_NAME_PLAINTEXT_SSL_KEYSTORE_LOCATION: /k.jks", ["KL002"]),
    ],
)
def test_in_a_container_all_of_its_keys_are_known(line: str, rules: list[str]) -> None:
    assert [item[0] for item in observations(broker("SSL", line))] == rules


LINE = "KAFKA_LISTENER_NAME_OUTER_{}_SASL_JAAS_CONFIG: 'org.example.Module required;'"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "GSSAPI"),
        (["KAFKA_SASL_ENABLED_MECHANISMS: PLAIN"], "PLAIN"),
        (["KAFKA_SASL_ENABLED_MECHANISMS: PLAIN", LINE.format("PLAIN")], ""),
        (["KAFKA_SASL_ENABLED_MECHANISMS: PLAIN", LINE.format("SCRAM-SHA-512")], "PLAIN"),
        (["KAFKA_OPTS: '-Djava.security.auth.login.config=/jaas.conf'"], ""),
        (["KAFKA_OPTS: '${OPTS}'"], ""),
    ],
)
def test_a_sasl_listener_needs_a_login(lines: list[str], said: str) -> None:
    listed = observations(broker("SASL_PLAINTEXT", "\n".join(f"      {line}" for line in lines)))
    assert [item[:2] for item in listed] == ([("KL002", "kafka")] if said else [])
    assert all(f"SASL_PLAINTEXT with {said}, and no login" in item[2] for item in listed)


@pytest.mark.parametrize(("image", "variable", "rule"), [
    ("quay.io/debezium/connect:3.0", "GROUP_ID", "KL014"),
    ("quay.io/debezium/connect:3.0", "BOOTSTRAP_SERVERS", ""),
    ("confluentinc/cp-kafka-connect:7.9.0", "CONNECT_GROUP_ID", "KL014"),
    ("confluentinc/cp-kafka-connect:7.9.0", "CONNECT_BOOTSTRAP_SERVERS_FILE", ""),
    ("confluentinc/cp-schema-registry:8.0.0", "SCHEMA_REGISTRY_KAFKASTORE_CONNECTION_URL", "KL014"),
    ("confluentinc/cp-schema-registry", "SCHEMA_REGISTRY_KAFKASTORE_CONNECTION_URL", "KL014"),
    ("confluentinc/cp-schema-registry:7.9.0", "SCHEMA_REGISTRY_KAFKASTORE_CONNECTION_URL", ""),
    ("confluentinc/cp-schema-registry:7.9.0", "SCHEMA_REGISTRY_HOST_NAME", "KL014"),
    ("confluentinc/cp-schema-registry:${TAG}", "SCHEMA_REGISTRY_HOST_NAME", ""),
    ("example.com/connect:1", "GROUP_ID", ""),
])  # fmt: skip
def test_what_images_of_clients_demand(image: str, variable: str, rule: str) -> None:
    client = f"  app:\n    image: {image}\n    environment: {{{variable}: kafka:9092}}\n"
    listed = [item[:2] for item in observations(broker("PLAINTEXT") + "\n" + client)]
    assert listed == ([(rule, "app")] if rule else [])


@pytest.mark.parametrize(
    ("image", "variable"),
    [
        ("lensesio/fast-data-dev:3.9", "ADV_HOST"),
        ("landoop/kafka-lenses-dev:latest", "ADV_HOST"),
        ("quay.io/debezium/kafka:3.0", "ADVERTISED_HOST_NAME"),
        ("spotify/kafka", "ADVERTISED_HOST"),
    ],
)
@pytest.mark.parametrize(("host", "rules"), [("127.0.0.1", ["KL015"]), ("kafka", [])])
def test_images_with_variables_of_their_own(
    image: str, variable: str, host: str, rules: list[str]
) -> None:
    text = f"""
  kafka:
    image: {image}
    environment: {{{variable}: {host}}}
  app:
    image: registry.example.com/app:1
    environment: {{KAFKA_BROKERS: 'kafka:9092'}}
"""
    assert [item[0] for item in observations(text)] == rules


SET = " --set redpanda.{}kafka_api[{}].{}={}"


@pytest.mark.parametrize(
    ("more", "is_refused"),
    [
        ("network_mode: 'service:kafka', ports: ['8080:8080']", True),
        ("network_mode: 'container:vpn', ports: ['127.0.0.1:8080:8080']", True),
        ("network_mode: 'service:kafka', ports: ['8080']", True),
        ("network_mode: 'service:kafka'", False),
        ("network_mode: host, ports: ['8080:8080']", False),
        ("network_mode: none, ports: ['8080:8080']", False),
        ("ports: ['8080:8080']", False),
    ],
)
def test_no_container_publishes_ports_in_the_network_of_another(
    more: str, is_refused: bool
) -> None:
    client = "{image: example/ui, environment: {KAFKA_BROKERS: 'kafka:9092'}, "
    listed = observations(f"{broker('PLAINTEXT')}  ui: {client}{more}}}\n")
    assert [name for rule, name, _ in listed if rule == "KL014"] == ["ui"] * is_refused
    other = observations(f"{broker('PLAINTEXT')}  ui: {{image: nginx, {more}}}\n")
    assert [name for rule, name, _ in other if rule == "KL014"] == []
    of_broker = observations(
        broker("PLAINTEXT", f"    {more.replace(', ports', chr(10) + '    ports')}")
    )
    shares = "network_mode: 'container:vpn', ports" in more
    assert not shares or ("KL014", "kafka") in [item[:2] for item in of_broker]


def redpanda(*listeners: tuple[str, int, str, int]) -> str:
    """The command by name, bound port, advertised host and port."""
    command = "redpanda start"
    for i, (name, bound, host, port) in enumerate(listeners):
        for kind, at, number in (("", "0.0.0.0", bound), ("advertised_", host, port)):
            for key, value in (("name", name), ("address", at), ("port", number)):
                command += SET.format(kind, i, key, value)
    head = "  rp:\n    image: redpandadata/redpanda\n    ports: ['19092:19092']\n"
    return f"{head}    command: {command}"


def test_what_redpanda_is_set_to() -> None:
    inner, outer = ("in", 9092, "rp", 9092), ("out", 19092, "localhost", 19092)
    assert observations(redpanda(inner, outer)) == []
    assert [item[0] for item in observations(redpanda(("out", 19092, "rp", 19092)))] == ["KL017"]
    twice = observations(redpanda(inner, ("out", 9092, "localhost", 19092)))
    assert [item[0] for item in twice] == ["KL002"]
    assert "out listens on port 9092, as in does" in twice[0][2]


MANIFEST = """apiVersion: v1
kind: Service
metadata: {{name: events}}
spec: {service}
---
apiVersion: v1
kind: Pod
metadata: {{name: broker, labels: {{app: broker}}}}
spec:
  containers:
    - name: kafka
      image: apache/kafka:4.1.1
      env:
        - {{name: KAFKA_NODE_ID, value: "1"}}
        - {{name: KAFKA_PROCESS_ROLES, value: "broker,controller"}}
        - {{name: KAFKA_CONTROLLER_LISTENER_NAMES, value: CONTROLLER}}
        - {{name: KAFKA_CONTROLLER_QUORUM_VOTERS, value: "1@localhost:9093"}}
        - {{name: KAFKA_LISTENERS, value: "PLAINTEXT://:9092,CONTROLLER://:9093"}}
        - {{name: KAFKA_ADVERTISED_LISTENERS, value: "PLAINTEXT://{advertised}"}}
---
apiVersion: v1
kind: Pod
metadata: {{name: app}}
spec:
  containers:
    - {{name: app, image: app, env: [{{name: KAFKA_BROKERS, value: "events:{port}"}}]}}
"""
INSIDE = "{selector: {app: broker}, ports: [{port: 9092}]}"
NODES = "{type: NodePort, selector: {app: broker}, ports: [{port: 9092, nodePort: 30092}]}"


@pytest.mark.parametrize(
    ("service", "advertised", "port", "level"),
    [
        (INSIDE, "events:9092", 9092, ""),
        (INSIDE, "localhost:9092", 9092, "error"),
        (INSIDE, "broker:9092", 9092, "error"),
        (INSIDE, "broker.other.example.com:9092", 9092, ""),
        (INSIDE, "unseen:9092", 9092, "warning"),
        (INSIDE, "unseen:30092", 9092, ""),  # it may be a node
        (INSIDE.replace("app: broker", "app: other"), "localhost:9092", 9092, ""),
        (INSIDE.replace("port: 9092", "port: 80, targetPort: 9092"), "localhost:9092", 80, "error"),
        (INSIDE.replace("port: 9092", "port: 80, targetPort: kafka"), "localhost:9092", 80, ""),
        (NODES, "192.0.2.7:30093", 9092, "warning"),
        (NODES, "192.0.2.7:30092", 9092, ""),
        (NODES.replace("NodePort", "LoadBalancer"), "192.0.2.7:9092", 9092, ""),
    ],
)
def test_where_clients_of_a_manifest_are_sent(
    service: str, advertised: str, port: int, level: str
) -> None:
    text = MANIFEST.format(service=service, advertised=advertised, port=port)
    findings = kubernetes.mistakes(read_manifest(read_yaml_documents(text, "x", unique=False)))
    assert [(finding.rule, str(finding.severity)) for finding in findings] == (
        [("KL015", level)] if level else []
    )


OUTSIDE = MANIFEST.rpartition("---")[0]


@pytest.mark.parametrize(
    ("advertised", "level"),
    [
        # kind maps a port of the machine, `kubectl port-forward` the Service's port
        ("localhost:9092", ""),
        ("localhost:30092", ""),
        ("localhost:9999", "error"),
        ("events:9092", "warning"),
    ],
)
def test_localhost_of_a_client_beyond_the_cluster_may_lead_to_it(
    advertised: str, level: str
) -> None:
    text = OUTSIDE.format(service=NODES, advertised=advertised, port=9092)
    findings = kubernetes.mistakes(read_manifest(read_yaml_documents(text, "x", unique=False)))
    assert [str(finding.severity) for finding in findings] == ([level] if level else [])
