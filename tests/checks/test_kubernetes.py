import textwrap

import pytest

from earshot.checks.kubernetes import mistakes, uses_own_service
from earshot.sources.kubernetes import Manifest, read_manifest
from earshot.yaml_reading.document import read_yaml_documents

BROKER = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: broker}}
spec:
  template:
    spec:
      {spec}
      containers:
        - name: kafka
          image: {image}
{more}
          env:
            - {{name: KAFKA_ZOOKEEPER_CONNECT, value: "zookeeper:2181"}}
            - {{name: KAFKA_ADVERTISED_LISTENERS, value: "PLAINTEXT://$(POD).brokers:9092"}}
{env}
"""
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: kafka}
spec: {ports: [{port: 9092}]}
"""
CLIENT = """
apiVersion: v1
kind: Pod
metadata: {{name: app}}
spec:
  {spec}
  containers:
    - name: main
      image: registry.example.org/app:1
      env: [{{name: KAFKA_BOOTSTRAP_SERVERS, value: "{servers}"}}]
"""


def read(*documents: str) -> Manifest:
    return read_manifest(read_yaml_documents("---\n".join(documents), "m.yaml"))


def found(*documents: str) -> list[str]:
    return [item.line for item in mistakes(read(*documents))]


def broker(
    image: str = "confluentinc/cp-kafka:7.5.0", *, more: str = "", env: str = "", spec: str = ""
) -> str:
    return BROKER.format(
        image=image,
        more=textwrap.indent(more, " " * 10),
        env=textwrap.indent(env, " " * 12),
        spec=spec,
    )


def client(servers: str, spec: str = "") -> str:
    return CLIENT.format(servers=servers, spec=spec)


LINKED = (
    "container broker/kafka: the Service kafka gives it KAFKA_PORT=tcp://ADDRESS:9092, and "
    "{image} refuses to start - expected no KAFKA_PORT: `enableServiceLinks: false`, or a Service "
    "that is not called kafka - set enableServiceLinks to false in the pod's spec [KL014] "
    "https://hub.docker.com/r/apache/kafka"
)


OWN_SCRIPT = "command: [sh, -c, 'export A=b && exec /etc/confluent/docker/run']"


@pytest.mark.parametrize(
    ("image", "more"),
    [
        ("confluentinc/cp-kafka:7.5.0", ""),
        ("confluentinc/cp-kafka:7.5.0", OWN_SCRIPT),
        ("confluentinc/cp-enterprise-kafka:5.5.0", ""),
        ("mirror.example.org/confluentinc/cp-server:7.5.0", ""),
        ("confluentinc/cp-kafka:${TAG}", ""),
    ],
)
def test_a_service_called_kafka_comes_in_as_a_variable(image: str, more: str) -> None:
    assert found(broker(image, more=more), SERVICE) == [LINKED.format(image=image)]


@pytest.mark.parametrize(
    ("changed", "service"),
    [
        ({"spec": "enableServiceLinks: false"}, SERVICE),
        ({"image": "apache/kafka:3.9.1"}, SERVICE),
        ({"image": "confluentinc/confluent-local:7.5.0"}, SERVICE),
        ({"env": "- {name: KAFKA_PORT, value: ''}"}, SERVICE),
        ({"more": "envFrom: [{secretRef: {name: s}}]"}, SERVICE),
        ({"more": "command: [sh, -c, 'unset KAFKA_PORT; /etc/confluent/docker/run']"}, SERVICE),
        ({"more": "command: [kafka-server-start, /etc/kafka/server.properties]"}, SERVICE),
        ({}, SERVICE.replace("ports:", "clusterIP: None, ports:")),
        ({}, SERVICE.replace("ports:", "type: ExternalName, ports:")),
        ({}, SERVICE.replace("name: kafka", "name: kafka-headless")),
        ({}, SERVICE.replace("name: kafka", "name: kafka, namespace: other")),
        ({}, SERVICE.replace("port: 9092", 'port: "${PORT}"')),
    ],
)
def test_no_variable_that_the_image_refuses(changed: dict[str, str], service: str) -> None:
    assert found(broker(**changed), service) == []


@pytest.mark.parametrize(
    ("image", "name", "env", "variable"),
    [
        ("confluentinc/cp-schema-registry:7.5.0", "schema-registry", "", "SCHEMA_REGISTRY_PORT"),
        ("confluentinc/cp-kafka-rest:7.5.0", "kafka-rest", "", "KAFKA_REST_PORT"),
        ("confluentinc/cp-kafka-rest:7.5.0", "kafka-rest", "KAFKA_REST_LISTENERS", ""),
        ("confluentinc/cp-schema-registry:7.5.0", "registry", "", ""),
        ("example/registry:1", "schema-registry", "", ""),
    ],
)
def test_images_of_clients_take_variables_of_services_too(
    image: str, name: str, env: str, variable: str
) -> None:
    text = client("elsewhere:9092").replace("registry.example.org/app:1", image)
    text = text.replace("env: [", f"env: [{{name: {env}, value: 'http://:80'}}, ") if env else text
    lines = found(text, SERVICE.replace("name: kafka", f"name: {name}"))
    assert [f"gives it {variable}=tcp:" in line for line in lines] == ([True] if variable else [])


def test_wurstmeisters_script_makes_a_port_of_it() -> None:
    """Kafka 2.8.2 ends: `port` is no number."""
    env = "- {name: KAFKA_LISTENERS, value: 'PLAINTEXT://:9092'}"
    image = "wurstmeister/kafka:2.13-2.8.1"
    (line,) = found(broker(image, env=env), SERVICE)
    assert "gives it KAFKA_PORT=tcp:" in line
    assert found(broker(image, env=f"{env}\n- {{name: KAFKA_PORT, value: '9092'}}"), SERVICE) == []


def test_what_the_image_refuses() -> None:
    env = "- {name: KAFKA_PORT, value: '9092'}"
    assert found(broker(env=env)) == [
        (
            "container broker/kafka: sets KAFKA_PORT, and confluentinc/cp-kafka:7.5.0 refuses to "
            "start - expected KAFKA_LISTENERS and KAFKA_ADVERTISED_LISTENERS, which replace it - "
            "take KAFKA_PORT away [KL014] https://github.com/confluentinc/kafka-images/blob/master/"
            "kafka/include/etc/confluent/docker/configure"
        )
    ]


def test_what_kafka_refuses() -> None:
    env = "- {name: KAFKA_LISTENERS, value: 'PLAINTEXT://:9092,OTHER://:9092'}"
    (line,) = found(broker("confluentinc/cp-kafka:7.5.0", env=env))
    assert line.startswith("container broker/kafka, listener ")
    assert line.endswith("[KL002] https://kafka.apache.org/documentation/#brokerconfigs")


@pytest.mark.parametrize(
    "more",
    [
        "envFrom: [{secretRef: {name: s}}]",
        "command: [sh, -c, 'KAFKA_LISTENERS=$(cat l) /etc/confluent/docker/run']",
        "volumeMounts: [{name: v, mountPath: /etc/confluent/docker}]",
    ],
)
def test_what_is_set_elsewhere_may_be_right(more: str) -> None:
    """KAFKA_ADVERTISED_LISTENERS alone would lack the controller's listener."""
    env = (
        "- {name: KAFKA_PROCESS_ROLES, value: 'broker,controller'}\n"
        "- {name: KAFKA_NODE_ID, value: '1'}\n"
        "- {name: KAFKA_CONTROLLER_LISTENER_NAMES, value: CONTROLLER}\n"
        "- {name: KAFKA_CONTROLLER_QUORUM_VOTERS, value: '1@localhost:9093'}\n"
        "- {name: CLUSTER_ID, value: '5L6g3nShT-eMCtK--X86sw'}"
    )
    spec = "volumes: [{name: v, configMap: {name: scripts}}]"
    assert found(broker("confluentinc/cp-kafka:8.0.0", env=env, more=more, spec=spec)) == []


def hostname(env: str = "", **more: str) -> list[tuple[str, tuple[str, ...]]]:
    text = broker(env=env, **more).replace("$(POD)", "$(HOSTNAME)")
    return [(finding.rule, finding.inputs) for finding in mistakes(read(text))]


def test_kubernetes_replaces_no_hostname_that_env_does_not_have() -> None:
    """Kafka 3.9.2 and 4.1.1 end: the list of listeners cannot be parsed."""
    assert hostname() == [("KL002", ("advertised.listeners",))]
    declared = broker().replace("env:", "env:\n            - {name: HOSTNAME, value: kafka-0}")
    assert mistakes(read(declared.replace("$(POD)", "$(HOSTNAME)"))) == ()
    assert hostname(more="envFrom: [{secretRef: {name: s}}]") == []
    assert hostname(more="command: [sh, -c, 'eval run']") == []
    assert hostname(image="example/kafka:1") == []


POD = "- {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}"


def test_kubernetes_replaces_no_variable_that_env_sets_later() -> None:
    """Kubernetes' reference of EnvVar: an unresolved reference stays unchanged."""
    (finding,) = mistakes(read(broker(env=POD)))
    assert (finding.rule, finding.inputs) == ("KL002", ("advertised.listeners",))
    assert finding.remedy == "move POD before KAFKA_ADVERTISED_LISTENERS in env"
    (of_id,) = mistakes(
        read(broker(env="- {name: KAFKA_BROKER_ID, value: $(ID)}\n- {name: ID, value: '1'}"))
    )
    assert of_id.inputs == ("broker.id",)


LATER = "- {name: KAFKA_LOG_DIRS, value: /data/$(LATER)}\n- {name: LATER, value: a}"


@pytest.mark.parametrize("text", [
    broker(),
    broker().replace("env:", f"env:\n            {POD}"),
    broker(env=POD, more="envFrom: [{secretRef: {name: s}}]"),
    broker(env=POD, more="command: [sh, -c, 'eval run']"),
    broker(env=POD).replace("POD", "BROKERS_SERVICE_HOST"),
    broker(env=LATER).replace("$(POD)", "broker-0"),
])  # fmt: skip
def test_a_reference_that_kubernetes_may_replace_or_kafka_accepts(text: str) -> None:
    assert mistakes(read(text)) == ()


def test_of_an_image_that_does_not_tell_its_kafka_only_what_every_kafka_refuses() -> None:
    doubled = "- {name: KAFKA_LISTENERS, value: 'PLAINTEXT://:9092,,'}"
    assert found(broker("registry.example.org/kafka", env=doubled)) == []


def test_a_secret_is_not_absent() -> None:
    text = broker().replace(
        'value: "PLAINTEXT://$(POD).brokers:9092"', "valueFrom: {secretKeyRef: {name: s, key: k}}"
    )
    assert found(text) == []


@pytest.mark.parametrize(
    "servers", ["kafka:9093", "kafka:9093,kafka:29092", "PLAINTEXT://kafka:9093"]
)
def test_a_client_that_asks_for_a_port_that_its_service_does_not_have(servers: str) -> None:
    reported = "; ".join(
        f"{item.rpartition('/')[2]}: the Service kafka has no port but 9092"
        for item in servers.split(",")
    )
    assert found(client(servers), SERVICE) == [
        (
            f"container app/main: KAFKA_BOOTSTRAP_SERVERS leads to no broker ({reported}) - "
            "expected one of kafka:9092 - bootstrap to a listener whose advertised address works "
            "in this container [KL015] "
            "https://kafka.apache.org/documentation/#brokerconfigs_advertised.listeners"
        )
    ]


def test_a_client_is_offered_all_ports() -> None:
    service = SERVICE.replace("{port: 9092}", "{port: 9092}, {port: 9094}")
    (line,) = found(client("kafka:9093"), service)
    assert "has no port but 9092, 9094) - expected one of kafka:9092, kafka:9094 - " in line


def test_a_job_asks_by_its_command() -> None:
    job = """
apiVersion: batch/v1
kind: Job
metadata: {name: topics}
spec:
  template:
    spec:
      containers:
        - name: main
          image: apache/kafka:4.1.1
          args: [kafka-topics.sh, --list, --bootstrap-server, "kafka:9093"]
"""
    (line,) = found(job, SERVICE)
    assert line.startswith("container topics/main: command leads to no broker (kafka:9093: ")


@pytest.mark.parametrize(
    ("servers", "spec", "service"),
    [
        ("kafka:9092", "", SERVICE),
        ("kafka:9093,kafka:9092", "", SERVICE),
        ("kafka:9093,elsewhere:9093", "", SERVICE),
        ("kafka-0.kafka:9093", "", SERVICE),
        ("kafka.example.org:9093", "", SERVICE),
        ("kafka:$(PORT)", "", SERVICE),
        ("kafka:9093", "hostAliases: [{ip: 10.0.0.1, hostnames: [kafka]}]", SERVICE),
        ("kafka:9093", "hostNetwork: true", SERVICE),
        ("kafka:9093", "", SERVICE.replace("ports:", "clusterIP: None, ports:")),
        ("kafka:9093", "", SERVICE.replace("name: kafka", "name: kafka, namespace: other")),
        ("kafka:9093", "", SERVICE.replace("port: 9092", 'port: "${PORT}"')),
        ("kafka:9093", "", f"{SERVICE}---\n{SERVICE.replace('9092', '9093')}"),
    ],
)
def test_a_client_that_may_be_right(servers: str, spec: str, service: str) -> None:
    assert found(client(servers, spec), service) == []


def test_whether_a_client_asks_for_a_service_of_the_file() -> None:
    assert uses_own_service(read(client("kafka:9092"), SERVICE))
    assert not uses_own_service(read(client("elsewhere:9092"), SERVICE))
    assert not uses_own_service(read(client("kafka:9092")))


OWN_POD = """
apiVersion: v1
kind: Pod
metadata: {name: kafka, labels: {app: kafka}}
spec:
  containers:
    - name: kafka
      image: apache/kafka:4.1.1
      ports: [{name: outer, containerPort: 9092}]
      env:
        - {name: KAFKA_NODE_ID, value: "1"}
        - {name: KAFKA_PROCESS_ROLES, value: "broker,controller"}
        - {name: KAFKA_LISTENERS, value: "CONTROLLER://localhost:9093,MAIN://127.0.0.1:9092"}
        - {name: KAFKA_ADVERTISED_LISTENERS, value: "MAIN://kafka:9092"}
        - {name: KAFKA_INTER_BROKER_LISTENER_NAME, value: MAIN}
        - {name: KAFKA_CONTROLLER_LISTENER_NAMES, value: CONTROLLER}
        - {name: KAFKA_LISTENER_SECURITY_PROTOCOL_MAP, value: "CONTROLLER:PLAINTEXT,MAIN:PLAINTEXT"}
        - {name: KAFKA_CONTROLLER_QUORUM_VOTERS, value: "1@localhost:9093"}
        - {name: KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR, value: "1"}
"""
SELECTING = SERVICE.replace("{ports:", "{selector: {app: kafka}, ports:")
ON_ALL = "write MAIN://0.0.0.0:9092 into listeners, and keep what it advertises [KL015] "


@pytest.mark.parametrize(
    "ports",
    ["{port: 9092}", "{port: 9092, targetPort: outer}", "{port: 80, targetPort: 9092}"],
)
@pytest.mark.parametrize("headless", [False, True])
def test_a_service_does_not_lead_to_a_listener_on_loopback(ports: str, headless: bool) -> None:
    service = SELECTING.replace("{port: 9092}", ports)
    if headless:
        service = service.replace("spec: {", "spec: {clusterIP: None, ")
    (line,) = found(OWN_POD, service)
    number = 80 if "80" in ports else 9092
    assert line.startswith(
        f"container kafka/kafka, listener MAIN: port {number} of the Service kafka leads to "
        "MAIN, which listens on 127.0.0.1:9092 alone: no client connects - expected a listener on "
        f"all interfaces of the pod - {ON_ALL}"
    )


@pytest.mark.parametrize(("broker_pod", "service"), [
    (OWN_POD.replace("127.0.0.1:9092", ":9092"), SELECTING),
    (OWN_POD, SELECTING.replace("9092", "9093")),  # a port of the controller
    (OWN_POD, SELECTING.replace("9092", "9404")),  # what an agent may serve
    (OWN_POD, SERVICE),
    # a proxy may listen on the pod's address, and pass on to loopback
    (OWN_POD.replace("    - name: kafka", "    - {name: proxy, image: p}\n    - name: kafka"),
     SELECTING),
])  # fmt: skip
def test_a_service_may_lead_to_a_broker(broker_pod: str, service: str) -> None:
    assert found(broker_pod, service) == []


@pytest.mark.parametrize(
    ("ports", "address"),
    [
        ("{port: 9092}", "kafka:9092"),
        ("{port: 9092, targetPort: outer}", "kafka:9092"),
        ("{port: 80, targetPort: 9092}", "kafka:80"),
    ],
)
def test_a_client_of_a_listener_on_loopback_is_its_one_finding(ports: str, address: str) -> None:
    (line,) = found(OWN_POD, SELECTING.replace("{port: 9092}", ports), client(address))
    assert line.startswith("container app/main: KAFKA_BOOTSTRAP_SERVERS leads to no broker")
    assert ON_ALL in line


def test_the_pods_of_a_headless_service_are_asked_at_their_own_port() -> None:
    headless = SELECTING.replace("spec: {", "spec: {clusterIP: None, ")
    headless = headless.replace("{port: 9092}", "{port: 80, targetPort: 9092}")
    (line,) = [line for line in found(OWN_POD, headless, client("kafka:9092")) if "app/" in line]
    assert ON_ALL in line


def test_the_remedy_for_a_client_changes_no_listener_of_another_broker() -> None:
    other = OWN_POD.replace("kafka", "other").replace("image: apache/other", "image: apache/kafka")
    listening = OWN_POD.replace("127.0.0.1:9092", ":9095").replace("kafka:9092", "kafka:9095")
    lines = found(listening, SELECTING, other, client("kafka:9092"))
    (line,) = [line for line in lines if line.startswith("container app/main")]
    assert "KAFKA_BOOTSTRAP_SERVERS leads to no broker" in line
    assert "0.0.0.0" not in line


STRIMZI = """
apiVersion: kafka.strimzi.io/v1
kind: Kafka
metadata: {name: c, namespace: n}
spec:
  kafka:
    listeners:
      - {name: plain, port: 9092, type: internal, tls: false}
      - {name: tls, port: 9093, type: internal, tls: true}
      - {name: ext, port: 9094, type: cluster-ip, tls: false}
"""


@pytest.mark.parametrize(
    ("servers", "problem"),
    [
        ("c-kafka-bootstrap:9092", ""),
        ("c-kafka-bootstrap.n.svc.cluster.local:9093", ""),
        ("c-kafka-ext-bootstrap:9094", ""),
        ("c-kafka-brokers:9092", ""),  # names of pods depend on node pools
        ("c-pool-0.c-kafka-brokers.n.svc:9092", ""),
        ("c-kafka-bootstrap:9094", "the Service c-kafka-bootstrap has no port but 9091, 9092, 909"),
        ("c-kafka-ext-bootstrap:9092", "the Service c-kafka-ext-bootstrap has no port but 9094"),
    ],
)
def test_clients_of_a_cluster_that_strimzi_makes(servers: str, problem: str) -> None:
    pod = client(servers).replace("metadata: {name: app}", "metadata: {name: app, namespace: n}")
    lines = found(STRIMZI, pod)
    assert [problem in line for line in lines] == ([True] if problem else [])


def test_clusters_of_one_name_in_two_namespaces() -> None:
    def in_namespace(name: str, port: str) -> list[str]:
        pod = client(f"c-kafka-bootstrap:{port}").replace(
            "name: app", f"name: app, namespace: {name}"
        )
        cluster = STRIMZI.replace("namespace: n", f"namespace: {name}")
        return [cluster.replace("port: 9092", f"port: {port}"), pod]

    assert found(*in_namespace("dev", "9092"), *in_namespace("prod", "9095")) == []


def test_a_client_is_offered_no_port_of_brokers_alone() -> None:
    (line,) = found(STRIMZI.replace(", namespace: n", ""), client("c-kafka-bootstrap:9095"))
    assert "expected one of c-kafka-bootstrap:9092, c-kafka-bootstrap:9093 - " in line


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("{bootstrapServers: 'c-kafka-bootstrap:9092'}", ""),
        ("{bootstrapServers: 'c-kafka-bootstrap:9093', tls: {}}", ""),
        (
            "{bootstrapServers: 'c-kafka-bootstrap:9093'}",
            "speaks PLAINTEXT to tls of Kafka c, which is SSL (spec.tls) - expected the protocol",
        ),
        ("{bootstrapServers: 'c-kafka-bootstrap:9095'}", "leads to no broker (c-kafka-bootstrap"),
    ],
)
def test_clients_that_strimzi_makes(spec: str, problem: str) -> None:
    head = "apiVersion: kafka.strimzi.io/v1\nkind: KafkaConnect\nmetadata: {name: it, namespace: n}"
    lines = found(STRIMZI, f"{head}\nspec: {spec}")
    assert [line.startswith("KafkaConnect it") and problem in line for line in lines] == (
        [True] if problem else []
    )


NAMED_PODS = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: stream}
spec:
  template:
    metadata: {labels: {app: stream}}
    spec:
      hostname: stream-host
      containers:
        - name: kafka
          image: confluentinc/cp-kafka:7.5.0
          env:
            - {name: KAFKA_ZOOKEEPER_CONNECT, value: "zookeeper:2181"}
            - {name: KAFKA_ADVERTISED_LISTENERS, value: "PLAINTEXT://NAME:9092"}
---
apiVersion: v1
kind: Service
metadata: {name: stream-svc}
spec: {selector: {app: stream}, ports: [{port: 9092}]}
"""


@pytest.mark.parametrize(
    ("name", "service", "severities"),
    [
        ("stream", "", ["error"]),
        ("stream-host", "", ["error"]),
        # beside these Services there often is one more, in another file
        ("stream", "clusterIP: None, ", ["warning"]),
        ("stream", "type: NodePort, ", ["warning"]),
        ("stream", "type: LoadBalancer, ", ["warning"]),
        ("stream-svc", "", []),
        ("other", "", ["warning"]),
        ("other", "clusterIP: None, ", []),
        ("other", "type: NodePort, ", []),
        ("other.example.org", "", []),
    ],
)
def test_pods_have_no_name_but_that_of_their_service(
    name: str, service: str, severities: list[str]
) -> None:
    text = NAMED_PODS.replace("NAME", name).replace("selector:", f"{service}selector:")
    assert [item.severity for item in mistakes(read(text))] == severities
