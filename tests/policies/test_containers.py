"""The pack on containers of programs that know nothing of earshot, and on those behind its gate."""

from __future__ import annotations

from typing import Any

import pytest

from components.gate import GATE_TYPE
from earshot.adopt.adoption import adopt_compose
from earshot.config.docker import DockerSpec
from earshot.placement.docker import DockerPlan, plan_docker
from earshot.sources.compose import read_compose
from policies.containers import CONTAINER_TYPE
from tests.doubles.dns_server import dns_server
from tests.policies.calls import UNKNOWN, UNKNOWN_LIST, Pack
from tests.rules.container_examples import KRAFT
from toolchain.paths import ROOT

OWN_ID = "5L6g3nShT-eMCtK-X86swQ"
ID = "sha256:" + "0123456789abcdef" * 4


def inputs(changed: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    """A combined node that is well, as `docker.Container` is registered; an empty text takes a
    variable away."""
    env = {**KRAFT, **(changed or {})}
    return {
        "name": "kafka1",
        "image": ID,
        "envs": [f"{name}={value}" for name, value in env.items() if value],
        "networksAdvanced": [{"name": "kafka", "aliases": ["kafka1"]}],
        "ports": [{"internal": 9092, "external": 9092}],
        **more,
    }


def mandatory(found: dict[str, list[str]]) -> set[str]:
    return set(found) - {"advice", "not-known-yet"}


def second(**more: Any) -> dict[str, Any]:
    texts = {name: value.replace("kafka1", "kafka2") for name, value in KRAFT.items()}
    made = inputs(
        {**texts, "KAFKA_NODE_ID": "2", "KAFKA_CONTROLLER_QUORUM_VOTERS": "2@kafka2:9093"}
    )
    networks = [{"name": "kafka", "aliases": ["kafka2"]}]
    return {**made, "name": "kafka2", "networksAdvanced": networks, **more}


def test_a_broker_that_is_well_passes_with_its_names_taken_on_their_declaration() -> None:
    found = Pack().analyze(CONTAINER_TYPE, inputs(image="apache/kafka:4.1.1"))
    assert list(found) == ["advice"]
    assert found["advice"][0] == (
        "listener INTERNAL (scope internal): kafka1 is taken on its declaration: container "
        "kafka1 has this name on network kafka; not looked up: no resolver of scope internal "
        "can be asked from here"
    )


def test_each_finding_comes_from_its_rules_policy_with_container_and_remedy() -> None:
    bound = KRAFT["KAFKA_LISTENERS"].replace("HOST://0.0.0.0", "HOST://localhost")
    found = Pack().analyze(CONTAINER_TYPE, inputs({"KAFKA_LISTENERS": bound}))
    assert mandatory(found) == {"kl006"}
    (text,) = found["kl006"]
    assert text == (
        "container kafka1, broker 1, listener HOST: listens on localhost:9092, which inside "
        "the container is the container alone, behind the published port 9092->9092 [KL006]\n"
        "  expected: a listener on all of the container's interfaces (0.0.0.0:9092)\n"
        "  fix: write HOST://0.0.0.0:9092 into `listeners`, and keep what it "
        "advertises\n"
        "  source: https://docs.docker.com/engine/network/port-publishing/"
    )
    assert "[KL006]" in text and "fix: write HOST://0.0.0.0:9092" in text


def test_containers_without_a_broker_are_nobodys_business() -> None:
    pack = Pack()
    client = {
        "name": "app",
        "image": "example/app:1",
        "envs": ["KAFKA_BOOTSTRAP_SERVERS=localhost:9092", "KAFKA_BROKERS=kafka1:9092"],
        "ports": [{"internal": 9092, "external": 9092}],
    }
    topics = {"name": "topics", "image": "apache/kafka:4.1.1", "command": ["kafka-topics.sh"]}
    for props in (client, topics):
        assert pack.analyze(CONTAINER_TYPE, props, name=props["name"]) == {}
    assert mandatory(pack.analyze(CONTAINER_TYPE, inputs())) == set(), "their ports are not held"


@pytest.mark.parametrize(
    ("unknown", "said"),
    [
        ({"envs": UNKNOWN_LIST, "image": "apache/kafka:4.1.1"}, "variables: not known yet"),
        ({"envs": UNKNOWN_LIST, "image": UNKNOWN}, "it cannot be told whether a broker runs here"),
        ({"envs": [*inputs()["envs"], UNKNOWN]}, "a variable: not known yet"),
        ({"ports": UNKNOWN_LIST}, "published ports: not known yet"),
        ({"ports": [{"internal": 9092, "external": UNKNOWN}]}, "the host's port for 9092"),
        ({"networksAdvanced": [{"name": UNKNOWN}]}, "a network: not known yet"),
        ({"networksAdvanced": [{"name": "n", "aliases": [UNKNOWN]}]}, "aliases on network n"),
        ({"name": UNKNOWN}, "its name: not known yet"),
        ({"hostname": UNKNOWN}, "its hostname: not known yet"),
    ],
)
def test_what_a_preview_does_not_know_is_neither_passed_nor_stopped(
    unknown: dict[str, Any], said: str
) -> None:
    found = Pack().analyze(CONTAINER_TYPE, inputs(**unknown))
    assert mandatory(found) == set()
    assert any(said in text for text in found["not-known-yet"]), found


def test_an_unknown_setting_of_another_image_may_be_anybodys() -> None:
    props = {"name": "db", "image": "postgres:17", "envs": [UNKNOWN]}
    assert Pack().analyze(CONTAINER_TYPE, props) == {}


def test_only_unknown_variables_hide_a_broker() -> None:
    props = {"name": "b", "image": UNKNOWN, "envs": ["A=b"], "ports": UNKNOWN_LIST}
    assert Pack().analyze(CONTAINER_TYPE, props) == {}


def test_what_a_preview_knows_is_judged_all_the_same() -> None:
    envs = [item for item in inputs()["envs"] if not item.startswith("KAFKA_LISTENERS")]
    found = Pack().analyze(
        CONTAINER_TYPE, inputs(envs=[*envs, "KAFKA_LISTENERS=A://h_1:1", UNKNOWN])
    )
    assert mandatory(found) == {"kl001"}


def test_an_unknown_image_of_a_broker_is_taken_for_one_that_is_like_apache_kafka() -> None:
    found = Pack().analyze(CONTAINER_TYPE, inputs({"KAFKA_PORT": "9092"}, image=UNKNOWN))
    assert mandatory(found) == set()
    assert "\n".join(found["advice"]) == (
        "container kafka1, broker 1: sets KAFKA_PORT: it becomes the property 'port' - if its "
        "image is like apache/kafka [KL014]\n"
        "  expected: listeners and advertised.listeners, which replace it\n"
        "  fix: take KAFKA_PORT away; in Kubernetes set enableServiceLinks to false; "
        "EARSHOT_IMAGE=NAME among its variables says which image it is\n"
        "  source: https://hub.docker.com/r/apache/kafka\n"
        "listener INTERNAL (scope internal): kafka1 is taken on its declaration: container "
        "kafka1 has this name on network kafka; not looked up: no resolver of scope internal "
        "can be asked from here\n"
        "listener CONTROLLER (scope controller): kafka1 is taken on its declaration: "
        "container kafka1 has this name on network kafka; not looked up: no resolver of scope "
        "controller can be asked from here"
    )


@pytest.mark.parametrize(
    ("image", "changed"),
    [("apache/kafka:4.1.1", {}), (ID, {"EARSHOT_IMAGE": "apache/kafka:4.1.1"})],
)
def test_an_image_that_is_told_is_judged_as_itself(image: str, changed: dict[str, str]) -> None:
    pack = Pack()
    found = pack.analyze(CONTAINER_TYPE, inputs({"KAFKA_PORT": "1", **changed}, image=image))
    assert mandatory(found) == {"kl014"}


def test_a_second_broker_on_taken_addresses_is_stopped() -> None:
    pack = Pack()
    assert mandatory(pack.analyze(CONTAINER_TYPE, inputs(), name="one")) == set()
    found = pack.analyze(CONTAINER_TYPE, second(), name="two")
    assert mandatory(found) == {"kl004", "kl006"}
    assert found["kl006"][0] == (
        "container kafka2, broker 2: publishes 9092->9092, and container one has taken port "
        "9092 of this host [KL006]\n"
        "  expected: a port of the host for each container\n"
        "  fix: publish another port of the host, and advertise that one\n"
        "  source: https://docs.docker.com/engine/network/port-publishing/"
    )


@pytest.mark.parametrize(
    ("providers", "apart"),
    [
        ((None, None), False),
        (({"host": "ssh://a"}, {"host": "ssh://b"}), True),
        (({"host": "ssh://a"}, {"host": "ssh://a"}), False),
        (({"context": "a", "host": "ssh://a"}, {"context": "b", "host": "ssh://a"}), True),
        ((None, {"host": "unix:///var/run/docker.sock"}), False),
        (({"host": "ssh://a"}, {"host": UNKNOWN}), True),
    ],
)
def test_engines_are_told_apart_by_their_providers(
    providers: tuple[Any, Any], apart: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    pack = Pack()
    pack.analyze(CONTAINER_TYPE, inputs(), name="one", provider=providers[0])
    found = pack.analyze(CONTAINER_TYPE, second(), name="two", provider=providers[1])
    assert (mandatory(found) == set()) is apart


def test_names_beyond_the_network_are_looked_up() -> None:
    listeners = "INTERNAL://kafka1:19092,HOST://nope.invalid:9092,CONTROLLER://kafka1:9093"
    props = inputs({"KAFKA_ADVERTISED_LISTENERS": listeners})
    # a resolver that nobody can ask proves nothing
    config = {"resolvers": {"external": ["127.0.0.1:1"]}, "timeout": 0.5}
    found = Pack(config).analyze(CONTAINER_TYPE, props)
    assert mandatory(found) == {"kl011"}
    assert "listener HOST (scope external): nope.invalid does not resolve" in found["kl011"][0]
    waived = {**config, "waived": {"nope.invalid": "the record comes tomorrow"}}
    found = Pack(waived).analyze(CONTAINER_TYPE, props)
    assert mandatory(found) == set()
    assert (
        "listener HOST (scope external): nope.invalid is waived: the record comes tomorrow"
    ) in found["advice"]


ZOOKEEPER = {
    "name": "kafka0",
    "image": "confluentinc/cp-enterprise-kafka:5.2.1",
    "networksAdvanced": [{"name": "app_default", "aliases": ["kafka0"]}],
    "ports": [{"internal": 9092, "external": 9092}],
    "envs": [
        "KAFKA_BROKER_ID=0",
        "KAFKA_ZOOKEEPER_CONNECT=zookeeper:2181",
        "KAFKA_LISTENERS=LISTENER_BOB://kafka0:29092,LISTENER_FRED://localhost:9092",
        "KAFKA_ADVERTISED_LISTENERS=LISTENER_BOB://kafka0:29092,LISTENER_FRED://localhost:9092",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=LISTENER_BOB:PLAINTEXT,LISTENER_FRED:PLAINTEXT",
        "KAFKA_INTER_BROKER_LISTENER_NAME=LISTENER_BOB",
    ],
}


@pytest.mark.parametrize("image", [ZOOKEEPER["image"], ID])
def test_a_broker_of_zookeepers_time_is_stopped_for_where_it_binds_alone(image: str) -> None:
    found = Pack().analyze(CONTAINER_TYPE, {**ZOOKEEPER, "image": image})
    assert mandatory(found) == {"kl006"}
    (text,) = found["kl006"]
    assert text == (
        "container kafka0, broker 0, listener LISTENER_FRED: listens on localhost:9092, which "
        "inside the container is the container alone, behind the published port 9092->9092 "
        "[KL006]\n"
        "  expected: a listener on all of the container's interfaces (0.0.0.0:9092)\n"
        "  fix: write LISTENER_FRED://0.0.0.0:9092 into `listeners`, and keep what it "
        "advertises\n"
        "  source: https://docs.docker.com/engine/network/port-publishing/"
    )
    assert any("KL002 is not judged" in text for text in found["advice"])


def docker_plan(**document: Any) -> DockerPlan:
    spec = DockerSpec.model_validate({"placement": "docker", "brokers": 1, **document})
    return plan_docker(spec, "test")


def gate(docker: DockerPlan, **changed: Any) -> dict[str, Any]:
    containers = {
        str(id): {**item.inputs(OWN_ID), **changed} for id, item in docker.containers.items()
    }
    return {
        "placement": "docker",
        "plan": docker.plan.model_dump(mode="json"),
        "addresses": {},
        "containers": containers,
    }


@pytest.mark.parametrize("mode", ["combined", "separate"])
def test_the_gate_of_our_own_containers_passes_and_so_do_they(mode: str) -> None:
    docker = docker_plan(brokers=3, controllers={"mode": mode})
    pack = Pack()
    assert mandatory(pack.analyze(GATE_TYPE, gate(docker))) == set()
    for id, item in docker.containers.items():
        env = [*item.inputs(OWN_ID)["envs"], f"EARSHOT_IMAGE={item.image}"]
        props = {**item.inputs(OWN_ID), "image": ID, "envs": env}
        found = pack.analyze(
            CONTAINER_TYPE, props, name=f"node-{id}", parents=f"x:y:Docker${GATE_TYPE}$"
        )
        assert found == {}


def test_the_gate_stops_for_ports_that_disagree() -> None:
    found = Pack().analyze(GATE_TYPE, gate(docker_plan(), ports=[]))
    assert mandatory(found) == {"kl006"}
    assert found["kl006"][0] == (
        "container kafka-1, broker 1, listener HOST (scope host): advertises localhost:9092, "
        "and the container publishes no port for 9092 [KL006]\n"
        "  expected: a published port that leads to 9092, advertised as it is\n"
        "  fix: publish 9092:9092\n"
        "  source: https://docs.docker.com/engine/network/port-publishing/"
    )


def test_the_gate_stops_for_what_the_image_refuses() -> None:
    docker = docker_plan(controllers={"mode": "separate", "count": 1})
    (controller,) = (id for id in docker.containers if not docker.plan.node(id).is_broker)
    props = gate(docker)
    props["containers"][str(controller)]["envs"].append(
        "KAFKA_ADVERTISED_LISTENERS=CONTROLLER://c:1"
    )
    found = Pack().analyze(GATE_TYPE, props)
    assert mandatory(found) == {"kl014"}
    assert found["kl014"][0] == (
        "container controller-10001, broker 10001: is a controller only and sets "
        "KAFKA_ADVERTISED_LISTENERS: the image exits [KL014]\n"
        "  expected: no such variable on a controller\n"
        "  fix: bind CONTROLLER to the container's own name instead, as the voters "
        "call it\n"
        "  source: https://hub.docker.com/r/apache/kafka"
    )


def test_inputs_of_the_gate_that_are_not_known_yet_are_said() -> None:
    found = Pack().analyze(GATE_TYPE, gate(docker_plan(), ports=UNKNOWN_LIST))
    assert mandatory(found) == set()
    assert (
        "container kafka-1, broker 1: published ports: not known yet [KL006]\n"
        "  expected: the container's variables, ports and networks, judged again with their "
        "values\n"
        "  fix: nothing yet: the update judges it\n"
        "  source: https://docs.docker.com/engine/network/port-publishing/"
    ) in found["not-known-yet"]
    for hidden in (UNKNOWN, {"1": UNKNOWN}):
        found = Pack().analyze(GATE_TYPE, {**gate(docker_plan()), "containers": hidden})
        assert mandatory(found) == set()


def test_a_container_whose_variables_come_later_is_no_news_behind_a_gate() -> None:
    """The gate was shown all of them but the cluster's id, which makes the whole unknown here."""
    props = inputs(envs=UNKNOWN_LIST, image=UNKNOWN)
    found = Pack().analyze(CONTAINER_TYPE, props, parents=f"x:y:Docker${GATE_TYPE}$")
    assert found == {}


@pytest.mark.parametrize(
    ("name", "stopped"),
    [
        ("two_listeners.yml", {"kl006"}),
        ("three_listeners.yml", set()),
        ("kraft_remapped.yml", set()),
    ],
)
def test_what_was_adopted_is_stopped_as_it_was_written(name: str, stopped: set[str]) -> None:
    source = ROOT / "tests" / "adopt" / "files" / name
    compose = read_compose(source.read_text(), name, {}, str)
    adoption = adopt_compose(compose, compose, name)
    docker = docker_plan(**dict(adoption.document or {}))
    config = {"waived": {"never-gonna-give-you-up": "it is in everybody's hosts file"}}
    found = Pack(config).analyze(GATE_TYPE, gate(docker))
    assert mandatory(found) == stopped
    if stopped:
        (text,) = found["kl006"]
        assert text == (
            "container kafka0, broker 0, listener LISTENER_FRED: listens on localhost:9092, "
            "which inside the container is the container alone, behind the published port "
            "127.0.0.1:9092->9092 [KL006]\n"
            "  expected: a listener on all of the container's interfaces (0.0.0.0:9092)\n"
            "  fix: write LISTENER_FRED://0.0.0.0:9092 into `listeners`, and keep what "
            "it advertises\n"
            "  source: https://docs.docker.com/engine/network/port-publishing/"
        )


@pytest.mark.parametrize("address", ["10.0.0.11", "docker-a.example.com"])
def test_several_docker_hosts_reach_each_other_by_names_and_published_ports(address: str) -> None:
    other = address.replace("11", "12").replace("-a", "-b")
    hosts = [
        {"name": "a", "engine": "ssh://a", "external": address},
        {"name": "b", "engine": "ssh://b", "external": other},
    ]
    docker = docker_plan(brokers=3, hosts=hosts)
    table = {"docker-a.example.com": ("10.0.0.11",), "docker-b.example.com": ("10.0.0.12",)}
    with dns_server(table) as server:
        config = {"resolvers": {"external": [server]}}
        pack = Pack(config)
        assert mandatory(pack.analyze(GATE_TYPE, gate(docker))) == set()
        for id, item in docker.containers.items():
            where = {"host": docker.hosts[item.host].engine}
            found = pack.analyze(CONTAINER_TYPE, item.inputs(OWN_ID), name=f"n{id}", provider=where)
            assert mandatory(found) == set()
        found = Pack(config).analyze(GATE_TYPE, gate(docker, ports=[]))
    assert {text.partition(" (scope")[0].rpartition(" ")[2] for text in found["kl006"]} == {
        "INTERNAL", "EXTERNAL", "CONTROLLER"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "alone", "behind"),
    [
        (
            {"KAFKA_LISTENERS": KRAFT["KAFKA_LISTENERS"].replace("HOST://0.0.0.0", "HOST://[::1]")},
            {"kl006", "advice"},
            {"kl006"},
        ),
        ({"CLUSTER_ID": ""}, {"advice"}, set()),
    ],
    ids=["grave", "advice"],
)
def test_only_what_is_grave_is_said_again_behind_a_gate(
    changed: dict[str, str], alone: set[str], behind: set[str]
) -> None:
    for parents, said in (("", alone), (f"x:y:Docker${GATE_TYPE}$", behind)):
        props = inputs(changed, image="apache/kafka:4.1.1")
        assert set(Pack().analyze(CONTAINER_TYPE, props, parents=parents)) == said


def test_what_only_looks_like_a_container_is_nobodys_business() -> None:
    pack = Pack()
    props = inputs({"KAFKA_LISTENERS": "nonsense"}, image="apache/kafka:4.1.1")
    assert pack.analyze("docker:index/service:Service", props) == {}
    assert mandatory(pack.analyze(CONTAINER_TYPE, props)) != set()
