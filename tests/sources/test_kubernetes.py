from __future__ import annotations

import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earshot.sources.kubernetes import Manifest, read_manifest
from earshot.sources.pod_variables import MAX_EXPANDED, Keys
from earshot.sources.workloads import PodContainer
from earshot.topology.cluster import ClusterService
from earshot.yaml_document import read_yaml_documents


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


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("Pod", ("spec",)),
        ("StatefulSet", ("spec", "template", "spec")),
        ("Deployment", ("spec", "template", "spec")),
        ("DaemonSet", ("spec", "template", "spec")),
        ("ReplicaSet", ("spec", "template", "spec")),
        ("Job", ("spec", "template", "spec")),
        ("CronJob", ("spec", "jobTemplate", "spec", "template", "spec")),
    ],
)
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


def test_containers_of_one_name_are_told_apart() -> None:
    manifest = read("---\n".join([pod("image: a"), pod("image: b"), pod("image: c")]))
    assert [container.name for container in manifest.containers] == ["p/c", "p/c#2", "p/c#3"]


def test_init_containers_are_clients_at_most() -> None:
    manifest = read(
        pod("image: apache/kafka", spec="initContainers: [{name: i, image: apache/kafka}]")
    )
    assert [(container.name, container.can_run_broker) for container in manifest.containers] == [
        ("p/i", False),
        ("p/c", True),
    ]
    assert [container.name for container in manifest.brokers] == ["p/c"]


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


def test_a_variable_of_its_own_takes_the_place_of_a_config_maps() -> None:
    text = "envFrom: [{configMapRef: {name: m}}]\nenv: [{name: A, value: own}]"
    assert env(text, CONFIG) == {"A": "own", "B": "1"}


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
def test_what_the_file_does_not_hold_is_there_and_not_known(source: str) -> None:
    assert env(f"env: [{{name: X, valueFrom: {{{source}}}}}]", CONFIG) == {"X": "$(X)"}


@pytest.mark.parametrize("source", ["secretRef: {name: s}", "configMapRef: {name: elsewhere}"])
def test_variables_that_the_file_does_not_hold(source: str) -> None:
    assert one(f"envFrom: [{{{source}}}]", more=CONFIG).service.container.unknown == ("envFrom",)


def test_a_config_map_of_another_namespace_is_another() -> None:
    config_map = CONFIG.replace("name: m", "name: m, namespace: n")
    assert one("envFrom: [{configMapRef: {name: m}}]", more=config_map).service.container.unknown


def test_values_hold_those_of_variables_before_them() -> None:
    variables = env("""
        env:
          - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
          - {name: PORT, value: "9092"}
          - {name: X, value: "PLAINTEXT://$(POD).kafka:$(PORT),$(LATER) $$(PORT)"}
          - {name: LATER, value: y}
    """)
    assert variables["X"] == "PLAINTEXT://$(POD).kafka:9092,$(LATER) $(PORT)"


def test_values_do_not_grow_without_measure() -> None:
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


@pytest.mark.parametrize(
    ("volume", "path", "unknown"),
    [
        ("configMap: {name: m}", "/etc/kafka", ("mounted files",)),
        ("configMap: {name: m}", "/mnt/shared/config", ("mounted files",)),
        ("secret: {secretName: s}", "/etc/kafka/secrets", ()),
        ("configMap: {name: m}", "/srv/scripts", ()),
        ("persistentVolumeClaim: {claimName: d}", "/opt/kafka/data", ()),
        ("emptyDir: {}", "/etc/kafka", ()),
    ],
)
def test_files_that_may_replace_those_of_the_image(
    volume: str, path: str, unknown: tuple[str, ...]
) -> None:
    mount = f"volumeMounts: [{{name: v, mountPath: {path}}}]"
    container = one(mount, spec=f"volumes: [{{name: v, {volume}}}]").service.container
    assert container.unknown == unknown
    assert container.mounts == (path,)


def test_an_init_container_may_fill_an_empty_volume() -> None:
    manifest = read(
        pod(
            "volumeMounts: [{name: v, mountPath: /etc/kafka}]",
            spec="volumes: [{name: v, emptyDir: {}}]\ninitContainers: [{name: i}]",
        )
    )
    assert manifest.containers[1].service.container.unknown == ("mounted files",)


@pytest.mark.parametrize(
    ("spec", "links"),
    [("", True), ("enableServiceLinks: true", True), ("enableServiceLinks: false", False)],
)
def test_service_links(spec: str, links: bool) -> None:
    assert one("image: a", spec=spec).has_service_links is links


@pytest.mark.parametrize(
    ("spec", "asks"),
    [
        ("", True),
        ("dnsPolicy: Default", False),
        ("dnsPolicy: None", False),
        ("hostNetwork: true", False),
        ("hostNetwork: false", True),
        ("hostNetwork: true\ndnsPolicy: ClusterFirstWithHostNet", True),
        ("dnsConfig: {searches: [example.org]}", False),
    ],
)
def test_who_answers_for_names(spec: str, asks: bool) -> None:
    assert one("image: a", spec=spec).pod.asks_cluster is asks


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
    cluster_service = service(spec)
    assert (cluster_service.name, cluster_service.namespace) == ("kafka", "")
    numbers = (
        None
        if cluster_service.ports is None
        else tuple(item.port for item in cluster_service.ports)
    )
    assert (numbers, cluster_service.has_address) == (ports, has_address)


@pytest.mark.parametrize(
    ("host", "namespace", "means"),
    [
        ("kafka", "n", True),
        ("KAFKA", "n", True),
        ("kafka", "other", False),
        ("kafka.n", "other", True),
        ("kafka.n.svc", "other", True),
        ("kafka.n.svc.cluster.local", "other", True),
        ("kafka.n.svc.cluster.local.", "other", True),
        ("kafka.other", "n", False),
        ("kafka-0.kafka.n.svc", "n", False),
        ("kafka.example.org", "n", False),
    ],
)
def test_what_a_service_is_called(host: str, namespace: str, means: bool) -> None:
    meant = service("", "name: kafka, namespace: n")
    services = Manifest((), (meant,)).deployment().services_named(host, namespace)
    assert list(services) == ([meant] if means else [])


def test_services_of_others_are_none() -> None:
    assert not read("{apiVersion: serving.knative.dev/v1, kind: Service}").services


def test_brokers_are_told_from_clients() -> None:
    manifest = read(
        "---\n".join(
            [
                pod("image: apache/kafka:4.1.1"),
                pod("image: apache/kafka:4.1.1\nargs: [kafka-topics.sh, --list]"),
                pod("image: mine\nenv: [{name: KAFKA_BOOTSTRAP_SERVERS, value: 'kafka:9092'}]"),
                pod("image: mine\nenv: [{name: KAFKA_ADVERTISED_LISTENERS, value: 'A://b:1'}]"),
            ]
        )
    )
    assert [container.name for container in manifest.brokers] == ["p/c", "p/c#4"]


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


def test_a_container_of_a_resource_without_a_name_is_called_by_its_kind() -> None:
    (container,) = read(pod("image: a").replace("metadata: {name: p}\n", "")).containers
    assert container.name == "Pod/c"


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


def test_where_services_lead() -> None:
    manifest = read("""
        apiVersion: v1
        kind: Service
        metadata: {name: a}
        spec: {type: ExternalName, externalName: b.n.svc.cluster.local}
        ---
        apiVersion: v1
        kind: Service
        metadata: {name: b}
        spec: {type: NodePort, externalTrafficPolicy: Local, internalTrafficPolicy: Local}
    """)
    first, second = manifest.services
    assert (first.external_name, first.is_local_outside) == ("b.n.svc.cluster.local", False)
    assert (second.external_name, second.is_local_outside, second.is_local_inside) == (
        "",
        True,
        True,
    )
