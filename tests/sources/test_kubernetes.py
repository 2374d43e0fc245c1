from __future__ import annotations

import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earshot.sources.kubernetes import Manifest, read_manifest
from earshot.sources.pod_variables import MAX_EXPANDED, Keys
from earshot.sources.workloads import PodContainer
from earshot.topology.cluster import ClusterService
from earshot.yaml_reading.document import read_yaml_documents


def read(text: str) -> Manifest:
    return read_manifest(read_yaml_documents(textwrap.dedent(text), "m.yaml", unique=False))


def pod(container: str, spec: str = "", more: str = "") -> str:
    """A Pod called p, with one container called c that has the keys of ``container``."""
    return (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n"
        + textwrap.indent(textwrap.dedent(spec).strip() + "\n", "  ")
        + "  containers:\n    - name: c\n"
        + textwrap.indent(textwrap.dedent(container).strip() + "\n", "      ")
        + ("---\n" + textwrap.dedent(more).strip() + "\n" if more else "")
    )


def one(container: str, spec: str = "", more: str = "") -> PodContainer:
    (container_read,) = read(pod(container, spec, more)).containers
    return container_read


def env(container: str, more: str = "") -> dict[str, str]:
    return dict(one(container, more=more).service.container.env)


CONFIG = """
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: m}
    data: {A: from-map, B: "1"}
"""


@pytest.mark.parametrize(("kind", "path"), [
    ("Pod", ("spec",)),
    *((kind, ("spec", "template", "spec"))
      for kind in ("StatefulSet", "Deployment", "DaemonSet", "ReplicaSet", "Job")),
    ("CronJob", ("spec", "jobTemplate", "spec", "template", "spec")),
])  # fmt: skip
def test_containers_of_every_workload(kind: str, path: tuple[str, ...]) -> None:
    body: object = "{containers: [{name: c, image: apache/kafka:4.1.1}]}"
    for key in reversed(path):
        body = f"{{{key}: {body}}}"
    head = f"{{apiVersion: v1, kind: {kind}, metadata: {{name: w, namespace: n}}, "
    (container,) = read(f"---\n{head}{str(body)[1:]}").containers
    assert (container.name, container.namespace) == ("w/c", "n")
    assert container.path == (0, *path, "containers", 0)
    assert container.service.container.image == "apache/kafka:4.1.1"
    assert container.can_run_broker is (kind not in ("Job", "CronJob"))


def test_a_list_holds_resources() -> None:
    manifest = read("""
        apiVersion: v1
        kind: List
        items:
          - {apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 9092}]}}
          - {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c}]}}
    """)
    assert [entry.path for entry in manifest.containers] == [
        (0, "items", 1, "spec", "containers", 0)
    ]
    assert [entry.name for entry in manifest.services] == ["s"]


@pytest.mark.parametrize(("pods", "containers"), [
    # containers of one name get numbers
    ([pod("image: a"), pod("image: b"), pod("image: c")], {"p/c": 0, "p/c#2": 0, "p/c#3": 0}),
    # an init container is no broker
    ([pod("image: apache/kafka", "initContainers: [{name: i, image: apache/kafka}]")],
     {"p/i": 0, "p/c": 1}),
    # a resource without a name
    ([pod("image: a").replace("metadata: {name: p}\n", "")], {"Pod/c": 0}),
    ([pod("image: apache/kafka:4.1.1"),
      pod("image: apache/kafka:4.1.1\nargs: [kafka-topics.sh, --list]"),
      pod("image: mine\nenv: [{name: KAFKA_BOOTSTRAP_SERVERS, value: 'kafka:9092'}]"),
      pod("image: mine\nenv: [{name: KAFKA_ADVERTISED_LISTENERS, value: 'A://b:1'}]")],
     {"p/c": 1, "p/c#2": 0, "p/c#3": 0, "p/c#4": 1}),
])  # fmt: skip
def test_names_of_containers_and_which_are_brokers(
    pods: list[str], containers: dict[str, int]
) -> None:
    manifest = read("---\n".join(pods))
    brokers = {broker.name for broker in manifest.brokers}
    names = [container.name for container in manifest.containers]
    assert {name: int(name in brokers) for name in names} == containers
    assert all(broker.can_run_broker for broker in manifest.brokers)


def test_variables_and_where_they_are_set() -> None:
    container = one("env: [{name: X, value: 010}, {name: E, value: }, {name: N}]")
    assert container.service.container.env == {"X": "010", "E": "", "N": ""}
    place: Keys = (0, "spec", "containers", 0, "env", 0)
    assert container.variables["X"] == place


def test_variables_from_config_maps() -> None:
    container = one(
        """
        envFrom: [{configMapRef: {name: m}, prefix: P_}]
        env: [{name: X, valueFrom: {configMapKeyRef: {name: m, key: A}}}]
        """,
        more=CONFIG,
    )
    assert container.service.container.env == {"P_A": "from-map", "P_B": "1", "X": "from-map"}
    assert container.variables["P_B"] == (1, "data", "B")
    assert container.variables["X"] == (1, "data", "A")
    assert container.service.container.unknown == ()
    overridden = "envFrom: [{configMapRef: {name: m}}]\nenv: [{name: A, value: own}]"
    assert env(overridden, CONFIG) == {"A": "own", "B": "1"}


@pytest.mark.parametrize(
    "source",
    [
        "secretKeyRef: {name: s, key: k}",
        "fieldRef: {fieldPath: status.podIP}",
        "resourceFieldRef: {resource: limits.cpu}",
        "configMapKeyRef: {name: elsewhere, key: A}",
        "configMapKeyRef: {name: m, key: Z}",
    ],
)
def test_a_value_from_elsewhere_is_unknown(source: str) -> None:
    assert env(f"env: [{{name: X, valueFrom: {{{source}}}}}]", CONFIG) == {"X": "$(X)"}


@pytest.mark.parametrize(
    ("source", "config"),
    [
        ("secretRef: {name: s}", CONFIG),
        ("configMapRef: {name: elsewhere}", CONFIG),
        ("configMapRef: {name: m}", CONFIG.replace("name: m", "name: m, namespace: n")),
    ],
)
def test_variables_from_elsewhere_are_unknown(source: str, config: str) -> None:
    assert one(f"envFrom: [{{{source}}}]", more=config).service.container.unknown == ("envFrom",)


def test_values_have_those_of_earlier_variables_up_to_a_length() -> None:
    variables = env("""
        env:
          - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
          - {name: PORT, value: "9092"}
          - {name: X, value: "PLAINTEXT://$(POD).kafka:$(PORT),$(LATER) $$(PORT)"}
          - {name: LATER, value: y}
    """)
    assert variables["X"] == "PLAINTEXT://$(POD).kafka:9092,$(LATER) $(PORT)"
    lines = ["env:", "- {name: X0, value: xxxxxxxxxx}"]
    lines += [f"- {{name: X{i}, value: $(X{i - 1})$(X{i - 1})}}" for i in range(1, 60)]
    assert max(map(len, env("\n".join(lines)).values())) <= MAX_EXPANDED


def test_command_and_arguments() -> None:
    container = one(
        'command: [sh, -c]\nargs: ["kafka-topics.sh --bootstrap-server $(HOST):1"]\n'
        "env: [{name: HOST, value: kafka}]"
    )
    assert container.service.command == ("sh", "-c", "kafka-topics.sh --bootstrap-server kafka:1")


def test_what_a_command_sets_is_not_known() -> None:
    variables = env("""
        command:
          - sh
          - -c
          - |
            export KAFKA_NODE_ID=${HOSTNAME##*-}
            unset KAFKA_PORT OTHER
            MINE=1 exec /etc/confluent/docker/run
        env: [{name: KAFKA_PORT, value: a}, {name: OTHER, value: b}, {name: KEPT, value: c}]
    """)
    assert variables == {
        "KAFKA_PORT": "$(KAFKA_PORT)",
        "OTHER": "$(OTHER)",
        "KEPT": "c",
        "KAFKA_NODE_ID": "$(KAFKA_NODE_ID)",
    }


INIT = "\ninitContainers: [{name: i}]"


@pytest.mark.parametrize(
    ("volume", "path", "init", "unknown"),
    [
        ("configMap: {name: m}", "/etc/kafka", "", ("mounted files",)),
        ("configMap: {name: m}", "/mnt/shared/config", "", ("mounted files",)),
        ("secret: {secretName: s}", "/etc/kafka/secrets", "", ()),
        ("configMap: {name: m}", "/srv/scripts", "", ()),
        ("persistentVolumeClaim: {claimName: d}", "/opt/kafka/data", "", ()),
        ("emptyDir: {}", "/etc/kafka", "", ()),
        # an init container may fill it
        ("emptyDir: {}", "/etc/kafka", INIT, ("mounted files",)),
    ],
)
def test_files_that_may_replace_those_of_the_image(
    volume: str, path: str, init: str, unknown: tuple[str, ...]
) -> None:
    mount = f"volumeMounts: [{{name: v, mountPath: {path}}}]"
    manifest = read(pod(mount, spec=f"volumes: [{{name: v, {volume}}}]{init}"))
    container = manifest.containers[-1].service.container
    assert (container.unknown, container.mounts) == (unknown, (path,))


@pytest.mark.parametrize(
    ("spec", "has_links", "asks_cluster"),
    [
        ("", True, True),
        ("enableServiceLinks: true", True, True),
        ("enableServiceLinks: false", False, True),
        ("dnsPolicy: Default", True, False),
        ("dnsPolicy: None", True, False),
        ("hostNetwork: true", True, False),
        ("hostNetwork: false", True, True),
        ("hostNetwork: true\ndnsPolicy: ClusterFirstWithHostNet", True, True),
        ("dnsConfig: {searches: [example.org]}", True, False),
    ],
)
def test_service_links_and_the_dns_of_the_cluster(
    spec: str, has_links: bool, asks_cluster: bool
) -> None:
    container = one("image: a", spec=spec)
    assert container.has_service_links is has_links
    assert container.pod.asks_cluster is asks_cluster


def test_names_in_the_pods_own_hosts_file() -> None:
    container = one("image: a", spec="hostAliases: [{ip: 10.0.0.1, hostnames: [Kafka, k]}]")
    assert container.service.container.extra_hosts == {"kafka": "10.0.0.1", "k": "10.0.0.1"}


def service(spec: str, metadata: str = "name: kafka") -> ClusterService:
    (cluster_service,) = read(
        f"apiVersion: v1\nkind: Service\nmetadata: {{{metadata}}}\nspec: {{{spec}}}\n"
    ).services
    return cluster_service


@pytest.mark.parametrize(
    ("spec", "ports", "has_address"),
    [
        ("ports: [{port: 9092, targetPort: 1}, {port: 53, protocol: UDP}]", (9092,), True),
        ("ports: [{port: 9092}], type: NodePort", (9092,), True),
        ("ports: [{port: 9092}], clusterIP: None", (9092,), False),
        ("ports: [{port: 9092}], clusterIPs: [None]", (9092,), False),
        ("type: ExternalName, externalName: kafka.example.org", (), False),
        ('ports: [{port: "${PORT}"}, {port: 9092}]', None, True),
    ],
)
def test_services(spec: str, ports: tuple[int, ...] | None, has_address: bool) -> None:
    kafka = service(spec)
    assert (kafka.name, kafka.namespace, kafka.has_address) == ("kafka", "", has_address)
    numbers = None if kafka.ports is None else tuple(port.port for port in kafka.ports)
    assert numbers == ports


@pytest.mark.parametrize(
    ("hosts", "namespace", "is_named"),
    [
        ("kafka KAFKA", "n", True),
        ("kafka.n kafka.n.svc kafka.n.svc.cluster.local kafka.n.svc.cluster.local.", "x", True),
        ("kafka", "x", False),
        ("kafka.other kafka-0.kafka.n.svc kafka.example.org", "n", False),
    ],
)
def test_names_of_a_service(hosts: str, namespace: str, is_named: bool) -> None:
    kafka = service("", "name: kafka, namespace: n")
    deployment = Manifest((), (kafka,)).deployment()
    for host in hosts.split():
        assert list(deployment.services_named(host, namespace)) == [kafka] * is_named, host
    assert not read("{apiVersion: serving.knative.dev/v1, kind: Service}").services


NAMES = """
apiVersion kind metadata name namespace spec template containers initContainers env
envFrom value valueFrom configMapRef configMapKeyRef key data items ports port command
args volumes volumeMounts mountPath hostAliases hostnames Pod List Service ConfigMap
Deployment v1 $(A) apache/kafka KAFKA_LISTENERS 9092 None
"""
WORDS = st.sampled_from(NAMES.split())
TREES = st.recursive(
    WORDS | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=40,
)


@settings(max_examples=150, deadline=None)
@given(st.lists(TREES, max_size=3))
def test_no_shape_ends_in_a_trace(documents: list[object]) -> None:
    shaped = [
        {"apiVersion": "v1", "kind": "Pod", **document} if isinstance(document, dict) else document
        for document in documents
    ]
    for manifest in (read_manifest(documents), read_manifest(shaped)):
        assert len(manifest.brokers) <= len(manifest.containers)


def test_what_kubernetes_adds_to_the_labels_of_replicas() -> None:
    manifest = read("""
        apiVersion: apps/v1
        kind: StatefulSet
        metadata: {name: k}
        spec:
          replicas: 2
          template:
            metadata: {labels: {app: k}}
            spec: {hostNetwork: true, containers: [{name: c}]}
    """)
    (template,) = manifest.containers
    name, index = "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"
    first, second = {(name, "k-0"), (index, "0")}, {(name, "k-1"), (index, "1")}
    assert template.pod.replica_labels == {"k-0": first, "k-1": second}
    replicas = [{"k-0": first}, {"k-1": second}]
    assert [replica.pod.replica_labels for replica in manifest.replicas] == replicas
    assert template.pod.every_label == {("app", "k")} | first | second
    assert template.pod.labels_of("k-1") == {("app", "k")} | second
    assert template.pod.on_host


def test_targets_and_policies_of_services() -> None:
    external = service("type: ExternalName, externalName: b.n.svc.cluster.local")
    assert (external.external_name, external.is_local_outside) == ("b.n.svc.cluster.local", False)
    local = service("type: NodePort, externalTrafficPolicy: Local, internalTrafficPolicy: Local")
    assert (local.external_name, local.is_local_outside, local.is_local_inside) == ("", True, True)
