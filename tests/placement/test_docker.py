"""From a docker spec to containers: what each of them is given."""

import inspect
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pulumi_docker as docker
import pytest

from earshot.checks.plan import check_planned
from earshot.config.docker import DockerSpec
from earshot.config.document import read_spec
from earshot.errors import EarshotError
from earshot.facts.cluster import ClusterFacts
from earshot.listeners.properties import read_environment
from earshot.names.policy import ResolverPolicy
from earshot.placement.docker import DockerPlan, plan_docker, plan_step
from earshot.rules.evaluate import evaluate
from earshot.transition.steps import transition
from tests.certificates.handed_over import FILES, hand_over
from tests.sources.containers import container_facts

OWN_ID = "5L6g3nShT-eMCtK-X86swQ"


def planned(**rest: Any) -> DockerPlan:
    spec = read_spec({"placement": "docker", **rest}, "test")
    assert isinstance(spec, DockerSpec)
    return plan_docker(spec, "mine")


def test_a_property_that_an_image_would_change_is_refused() -> None:
    with pytest.raises(EarshotError, match=r"^broker property a\.b: .* changed through"):
        planned(extra={"a.b": "x\\y"})


def test_the_third_broker_of_a_host() -> None:
    made = planned(hosts=[{"external": "kafka.example.com"}])
    assert [str(item) for item in made.plan.node(3).listeners] == [
        "INTERNAL://kafka-3:19092",
        "HOST://localhost:9094",
        "EXTERNAL://kafka.example.com:39094",
        "CONTROLLER://kafka-3:29092",
    ]
    container = made.containers[3]
    assert (container.name, container.network) == ("kafka-3", "earshot-mine")
    assert container.volume == "earshot-mine-kafka-3"
    assert [str(port) for port in container.ports] == ["127.0.0.1:9094->9092", "39094->39092"]
    assert container.variables(OWN_ID) == {**container.environment, "CLUSTER_ID": OWN_ID}
    assert container.environment["KAFKA_LISTENERS"].startswith("INTERNAL://0.0.0.0:19092,")


def test_inputs_are_those_of_the_provider() -> None:
    inputs = planned().containers[1].inputs(OWN_ID)
    names = inspect.signature(docker.ContainerArgs.__init__).parameters
    assert {re.sub("[A-Z]", lambda m: f"_{m[0].lower()}", key) for key in inputs} <= names.keys()
    assert inputs["ports"][0] == {
        "internal": 9092,
        "external": 9092,
        "ip": "127.0.0.1",
        "protocol": "tcp",
    }


def test_a_broker_may_fetch_keys_of_tokens_from_where_its_settings_say() -> None:
    url = "https://a/keys?x=1&y"
    made = planned(extra={"sasl.oauthbearer.jwks.endpoint.url": url})
    option = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={url}"
    assert made.containers[1].environment["KAFKA_OPTS"] == option
    assert "KAFKA_OPTS" not in planned().containers[1].environment


@pytest.mark.parametrize(("heap", "small"), [("256m", True), ("512m", False), ("1g", False)])
def test_a_small_heap_gets_a_small_log_cleaner(heap: str, small: bool) -> None:
    environment = planned(heap=heap).containers[1].environment
    assert ("KAFKA_LOG_CLEANER_DEDUPE_BUFFER_SIZE" in environment) is small
    assert environment["KAFKA_HEAP_OPTS"] == f"-Xms{heap} -Xmx{heap}"


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"brokers": 1},
        {"hosts": [{"external": "kafka.example.com"}]},
        {"broker_ids": [0, 1, 2], "names": {0: "kafka0"}},
        {"security": {}},
        {"security": {}, "controllers": {"mode": "separate"}},
    ],
)
def test_what_is_computed_passes_the_rules_for_containers(settings: dict[str, Any]) -> None:
    made = planned(**settings)
    found = []
    for container in made.containers.values():
        inputs = container.inputs(OWN_ID)
        facts: ClusterFacts = container_facts(
            inputs["envs"],
            inputs["ports"],
            inputs["networksAdvanced"],
            inputs["name"],
            inputs["image"],
            hostname=inputs["hostname"],
        )
        found += [item for item in evaluate(facts) if item.rule in ("KL006", "KL014")]
    assert found == []


INTERNAL = {"name": "INTERNAL", "port": 19092, "scopes": ["internal"]}
REPL = {"name": "REPL", "port": 19192, "scopes": ["internal"]}
HOST = {"name": "HOST", "port": 9092, "scopes": ["host"]}
LAN = {"name": "LAN", "port": 9192, "scopes": ["host"]}


def at_step(before: DockerPlan, number: int, **wanted: Any) -> DockerPlan:
    """The plan of the n-th step from ``before``, with its ports as they are."""
    spec = read_spec({"placement": "docker", **wanted}, "test")
    assert isinstance(spec, DockerSpec)
    last = plan_docker(spec, "mine")
    step = transition(before.plan, last.plan)[number - 1].plan
    held = {id: it.ports for id, it in before.containers.items()}
    return plan_step(spec, "mine", last, step, held)


def published(made: DockerPlan) -> dict[int, list[str]]:
    return {id: [str(port) for port in it.ports] for id, it in made.containers.items()}


def test_ports_follow_each_step_of_a_change() -> None:
    before = planned(brokers=2, listeners=[INTERNAL, HOST])
    wanted = {"brokers": 2, "listeners": [INTERNAL, LAN]}
    both, last = (at_step(before, number, **wanted) for number in (1, 2))
    assert published(both) == {
        1: ["127.0.0.1:9092->9092", "127.0.0.1:9192->9192"],
        2: ["127.0.0.1:9093->9092", "127.0.0.1:9193->9192"],
    }
    assert (
        "HOST://localhost:9093,LAN://localhost:9193"
        in both.containers[2].environment["KAFKA_ADVERTISED_LISTENERS"]
    )
    assert last == planned(**wanted)


def test_a_port_that_the_file_has_no_more_stays_while_its_listener_does() -> None:
    """Behind a forward of the user's own, no listener tells the port of the host."""
    behind = HOST | {"published": {1: 39000}, "advertised": {1: "lb.example.com:9999"}}
    before = planned(brokers=1, listeners=[INTERNAL, behind])
    both = at_step(before, 1, brokers=1, listeners=[INTERNAL, LAN])
    assert published(both) == {1: ["127.0.0.1:39000->9092", "127.0.0.1:9192->9192"]}


def test_a_listener_that_is_kept_as_it_was_keeps_its_port_of_the_host() -> None:
    """While brokers move to REPL, HOST has its old protocol, and the old address with it."""
    before = planned(brokers=2, listeners=[INTERNAL, HOST])
    moved = HOST | {"protocol": "SASL_PLAINTEXT", "published": {1: 39000, 2: 39001}}
    both = at_step(before, 1, brokers=2, listeners=[REPL, moved])
    for id, container in both.containers.items():
        (kept,) = (it for it in both.plan.node(id).listeners if it.name == "HOST")
        assert (str(kept), kept.protocol) == (f"HOST://localhost:{9091 + id}", "PLAINTEXT")
        assert [str(it) for it in container.ports] == [f"127.0.0.1:{9091 + id}->9092"]


def test_between_brokers_of_several_hosts_all_is_published() -> None:
    hosts = [{"name": "a", "external": "a.example"}, {"name": "b", "external": "b.example"}]
    before = planned(brokers=2, hosts=hosts, listeners=[INTERNAL])
    both = at_step(before, 1, brokers=2, hosts=hosts, listeners=[REPL])
    assert published(both) == {
        1: ["19092->19092", "19192->19192", "29092->29092"],
        2: ["19092->19092", "19192->19192"],
    }


def test_listeners_side_by_side_want_ports_of_their_own() -> None:
    before = planned(brokers=3, listeners=[INTERNAL, HOST])
    with pytest.raises(EarshotError) as caught:
        at_step(before, 1, brokers=3, listeners=[INTERNAL, LAN | {"port": 9094}])
    assert str(caught.value) == (
        "port 9094 of Docker host local: is needed by LAN of node 1 and by HOST of node 3, which "
        "exist at the same time while listeners change\n"
        "  allowed: ports that no listener has now; nodes of one host use consecutive ports, "
        "beginning at each listener's `port`\n"
        "  fix: choose another `port` (or `published`) for the new listener; nothing was changed"
    )


def test_a_node_that_the_file_has_no_more_is_asked_for() -> None:
    before, last = planned(brokers=3), planned(brokers=2)
    spec = read_spec({"placement": "docker", "brokers": 2}, "test")
    assert isinstance(spec, DockerSpec)
    with pytest.raises(EarshotError, match="node 3: is part of an interrupted step"):
        plan_step(spec, "mine", last, before.plan, {})


SECRETS = ("password=", "PRIVATE KEY", "keystore.key", "SSL_KEY_PASSWORD", "KEYSTORE_PASSWORD")


@pytest.mark.parametrize("controllers", [{}, {"mode": "separate"}])
def test_a_secured_node_is_told_of_files_and_of_no_secret(controllers: dict[str, Any]) -> None:
    made = planned(security={"users": [{"name": "app"}]}, controllers=controllers)
    for node in made.plan.nodes:
        container = made.containers[node.id]
        values = read_environment(container.environment).values
        stores = {values[key] for key in values if key.endswith("ssl.keystore.location")}
        assert stores == {f"/etc/kafka/secrets/node-{node.id}.pem"}
        trusted = {values[key] for key in values if key.endswith("ssl.truststore.location")}
        assert trusted == {"/etc/kafka/secrets/ca.pem"}
        assert values["authorizer.class.name"].endswith("StandardAuthorizer")
        assert not [word for word in SECRETS if word in str(container.inputs(OWN_ID))]
        assert [mount.inputs() for mount in container.mounts] == [
            {
                "volumeName": f"earshot-mine-{container.name}",
                "containerPath": "/var/lib/kafka/data",
            },
            {
                "volumeName": f"earshot-mine-{container.name}_keys",
                "containerPath": "/etc/kafka/secrets",
                "readOnly": True,
            },
        ]


def test_no_volume_with_keys_is_called_like_one_with_data() -> None:
    made = planned(brokers=2, names={1: "kafka", 2: "kafka-keys"}, security={})
    volumes = [it.volume for node in made.containers.values() for it in node.mounts]
    assert len(set(volumes)) == 4


def given(root: Path) -> tuple[DockerSpec, DockerPlan]:
    """A cluster with certificates of others, as the stack whose files are below ``root``."""
    document = {"placement": "docker", "brokers": 2, "security": {"tls": {"from": FILES}}}
    spec = read_spec(document, "test")
    assert isinstance(spec, DockerSpec)
    return spec, plan_docker(spec, "mine", root / ".earshot" / "stacks" / "mine" / "kafka")


def test_certificates_of_others_are_read_beside_the_project(tmp_path: Path) -> None:
    hosts = {id: [f"kafka-{id}", "localhost"] for id in (1, 2)}
    hand_over(tmp_path / "certs", hosts)
    spec, made = given(tmp_path)
    assert made.plan.security is not None
    assert made.plan.security.principals == ("CN=b1,O=Example", "CN=b2,O=Example")
    for container in made.containers.values():
        values = read_environment(container.environment).values
        assert values["super.users"] == "User:CN=b1,O=Example;User:CN=b2,O=Example"
        assert values["ssl.truststore.location"] == "/etc/kafka/secrets/trusted.pem"
    ends = (datetime.now(UTC) - timedelta(minutes=5) + timedelta(days=90)).date()
    assert made.notes[-1] == f"certificates of others: that of node 1 expires first, on {ends}"
    assert check_planned(spec, made, ResolverPolicy()).findings == ()
    hand_over(tmp_path / "certs", {2: ["kafka-2"]})
    spec, made = given(tmp_path)
    (found,) = check_planned(spec, made, ResolverPolicy()).findings
    assert (found.rule, found.node) == ("KL010", 2)
    assert found.observed == "advertises localhost, and its certificate is for kafka-2"


def test_subjects_that_no_variable_can_hold_are_refused(tmp_path: Path) -> None:
    hosts = {id: [f"kafka-{id}", "localhost"] for id in (1, 2)}
    hand_over(tmp_path / "certs", hosts, "CN=b{node},O=Example\\, Inc.")
    with pytest.raises(EarshotError) as caught:
        given(tmp_path)
    assert str(caught.value) == (
        "the certificate of node 1: is for CN=b1,O=Example\\, Inc., whose backslash the images "
        "would remove\n"
        '  allowed: subjects without the characters , = + < > # " and \\ in their texts\n'
        "  fix: have the certificate issued for another subject"
    )
