"""The pack on containers of programs that know nothing of earshot, and on those behind its gate."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import earshot_policies.evaluations
import pytest
from earshot_policies.evaluations import CONTAINER_TYPE
from earshot_pulumi.gate import GATE_TYPE

from earshot.adopt.adoption import adopt_compose
from earshot.config.docker import DockerSpec
from earshot.placement.docker import DockerPlan, plan_docker
from earshot.rules.evaluate import RULES
from earshot.rules.rule import Severity
from earshot.sources.compose import read_compose
from earshot.sources.docker_container import NETWORK, REMOTE_IMAGE
from tests.doubles.dns_server import dns_server
from tests.policies.calls import UNKNOWN, UNKNOWN_LIST, Pack, headline
from tests.policies.programs import Program
from tests.rules.container_examples import KRAFT
from toolchain.paths import ROOT

OWN_ID = "5L6g3nShT-eMCtK-X86swQ"
APACHE = "apache/kafka:4.1.1"
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


def mandatory(findings: dict[str, list[str]]) -> set[str]:
    advisory = {rule.id.lower() for rule in RULES if rule.severity is Severity.WARNING}
    return set(findings) - {"advice", "not-known-yet"} - advisory


def second(**more: Any) -> dict[str, Any]:
    texts = {name: value.replace("kafka1", "kafka2") for name, value in KRAFT.items()}
    container = inputs(
        {**texts, "KAFKA_NODE_ID": "2", "KAFKA_CONTROLLER_QUORUM_VOTERS": "2@kafka2:9093"}
    )
    networks = [{"name": "kafka", "aliases": ["kafka2"]}]
    return {**container, "name": "kafka2", "networksAdvanced": networks, **more}


def registered(*containers: Mapping[str, Any], nets: Sequence[str] = ("kafka",)) -> Program:
    """A program that makes ``nets`` and ``containers``, which are called as they are named."""
    program = Program()
    for net in nets:
        program.add(NETWORK, net, {"name": net})
    for props in containers:
        program.add(CONTAINER_TYPE, str(props["name"]), props)
    return program


def at_the_end(program: Program, pack: Pack | None = None) -> dict[str, list[tuple[str, str]]]:
    """By policy, what is said of the program as a whole, each with the resource's name; nothing
    may be said of one of its resources alone."""
    by_resource, end = program.run(pack or Pack(), preview=True)
    assert by_resource == {}
    return {
        policy: [(urn.rpartition("::")[2], text) for urn, text in reported]
        for policy, reported in end.items()
    }


def ui(bootstrap: str = "kafka1:19092", **more: Any) -> dict[str, Any]:
    return {
        "name": "ui",
        "image": "provectuslabs/kafka-ui:v0.7.2",
        "envs": [f"KAFKA_CLUSTERS_0_BOOTSTRAPSERVERS={bootstrap}"],
        "networksAdvanced": [{"name": "kafka"}],
        **more,
    }


def test_a_broker_that_is_well_passes_in_silence() -> None:
    for image in (ID, "apache/kafka:4.1.1"):
        program = registered(inputs(image=image), ui())
        assert program.run(Pack(), preview=True) == ({}, {})
        assert program.run(Pack(), preview=False) == ({}, {})


def test_each_finding_comes_from_its_rules_policy_with_container_and_remedy() -> None:
    bound = KRAFT["KAFKA_LISTENERS"].replace("HOST://0.0.0.0", "HOST://localhost")
    pack = Pack()
    findings = pack.analyze(
        CONTAINER_TYPE, inputs({"KAFKA_LISTENERS": bound}, image="apache/kafka:4.1.1")
    )
    assert findings == {
        "kl017": [
            (
                "container kafka1, listener HOST: publishes 9092->9092, and HOST listens on "
                "localhost:9092, which is the container alone: no client connects there [KL017]\n"
                "  expected: a listener on all interfaces of the container\n"
                "  fix: let it listen on all interfaces of its container; write kafka1: "
                "KAFKA_LISTENERS: "
                "INTERNAL://0.0.0.0:19092,HOST://0.0.0.0:9092,CONTROLLER://0.0.0.0:9093\n"
                "  source: https://docs.docker.com/engine/network/port-publishing/"
            )
        ]
    }
    assert pack.places == [f"urn:pulumi:s::p::{CONTAINER_TYPE}::x, envs[3]"]


@pytest.mark.parametrize("name", ["\x1b]0;t\x07", "\u202e", "<{%x%}>"])
def test_names_in_a_program_steer_neither_the_terminal_nor_the_cli(name: str) -> None:
    """Pulumi's CLI prints messages as they are, and panics at a colour that it does not have."""
    advertised = {"KAFKA_ADVERTISED_LISTENERS": f"{name}://x:1"}
    texts = [
        text
        for found in Pack().analyze(CONTAINER_TYPE, inputs(advertised)).values()
        for text in found
    ]
    assert texts and not any(name.upper() in text for text in texts)


def test_a_client_that_is_sent_nowhere_is_found_at_the_end() -> None:
    pack = Pack()
    findings = at_the_end(registered(ui("kafka1:9092"), inputs()), pack)
    ((name, text),) = findings.pop("kl015-stack")
    assert (findings, name) == ({}, "kafka1")
    assert text == (
        "container kafka1, listener HOST: ui bootstraps to HOST and is sent on to localhost:9092: "
        "it is the client itself, and nothing listens at port 9092 [KL015]\n"
        "  expected: an address that works where these clients are\n"
        "  fix: bootstrap ui to INTERNAL; write ui: KAFKA_CLUSTERS_0_BOOTSTRAPSERVERS: "
        "kafka1:19092\n"
        "  source: https://kafka.apache.org/documentation/#brokerconfigs_advertised.listeners"
    )
    assert pack.places == [f"urn:pulumi:s::p::{CONTAINER_TYPE}::kafka1, envs[4]"]


def test_a_client_of_earshots_own_brokers_is_checked_too() -> None:
    docker = docker_plan()
    (node,) = docker.containers.values()
    own = {**node.inputs(OWN_ID), "envs": [*node.inputs(OWN_ID)["envs"]]}
    net = own["networksAdvanced"][0]["name"]
    program = registered(nets=[net])
    program.parents[CONTAINER_TYPE] = f"x:y:Docker${GATE_TYPE}$"
    program.add(CONTAINER_TYPE, "node", own)
    program.parents.clear()
    program.add(CONTAINER_TYPE, "ui", ui(f"{own['name']}:9092", networksAdvanced=[{"name": net}]))
    ((urn, text),) = at_the_end(program)["kl015-stack"]
    assert urn == "node" and "ui bootstraps to HOST and is sent on to localhost:9092" in text


@pytest.mark.parametrize(
    ("client", "nets", "stopped"),
    [
        (ui("nobody:9999"), ("kafka",), True),
        (ui("nobody:9999"), (), False),
        (ui("nobody:9999", networksAdvanced=[{"name": UNKNOWN}]), ("kafka",), False),
        (ui("kafka1:9092", networksAdvanced=[]), ("kafka",), True),
        (ui("kafka1:9092", networksAdvanced=[], networkMode=UNKNOWN), ("kafka",), False),
    ],
    ids=["no such name", "others' network", "network not known", "on the bridge", "mode not known"],
)
def test_a_name_is_unknown_only_if_the_whole_network_is_known(
    client: dict[str, Any], nets: tuple[str, ...], stopped: bool
) -> None:
    findings = at_the_end(registered(inputs(), client, nets=nets))
    assert ("kl015-stack" in findings) is stopped


def test_what_is_not_known_of_one_container_may_be_the_name_of_another() -> None:
    hidden = {"name": "db", "image": "postgres:17", "networksAdvanced": [{"name": UNKNOWN}]}
    assert at_the_end(registered(inputs(), ui("nobody:9999"), hidden)) == {}
    password = {"name": "db", "image": "postgres:17", "envs": [UNKNOWN]}
    assert "kl015-stack" in at_the_end(registered(inputs(), ui("nobody:9999"), password))


def test_the_image_is_called_as_the_resource_that_it_comes_from() -> None:
    old = inputs({"KAFKA_PROCESS_ROLES": "", "KAFKA_ZOOKEEPER_CONNECT": "z:2181"})
    program = registered()
    image = program.add(REMOTE_IMAGE, "image", {"name": "apache/kafka:4.1.1"}, imageId=ID)
    program.add(CONTAINER_TYPE, "kafka1", {**old, "image": image["imageId"]})
    for preview in (True, False):
        by_resource, end = program.run(Pack(), preview)
        assert by_resource == {}
        ((_, text),) = end["kl014-stack"]
        assert "apache/kafka:4.1.1 is Kafka 4, which has no ZooKeeper" in text


def test_an_image_that_the_stack_builds_may_set_anything() -> None:
    bare = {
        "name": "kafka1",
        "image": "confluentinc/cp-kafka:8.0.0",
        "envs": ["KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://kafka1:9092"],
    }
    assert set(Pack().analyze(CONTAINER_TYPE, bare)) == {"kl014"}
    program = registered()
    image = program.add("docker:index/image:Image", "image", {}, imageName="kafka:mine")
    program.add(CONTAINER_TYPE, "kafka1", {**bare, "image": image["imageName"]})
    assert program.run(Pack(), preview=False) == ({}, {})


@pytest.mark.parametrize("called", ["imageName", "tags", "name", "tag"])
def test_the_name_of_an_image_that_the_stack_builds_tells_nothing(called: str) -> None:
    name = "registry.example.com/apache/kafka:latest"
    broken = inputs({"KAFKA_CONTROLLER_LISTENER_NAMES": ""}, image=name)
    assert Pack().analyze(CONTAINER_TYPE, broken)
    program = registered()
    made = {called: [name] if called == "tags" else name}
    program.add("docker-build:index:Image", "image", made)
    program.add(CONTAINER_TYPE, "kafka1", broken)
    assert program.run(Pack(), preview=True) == ({}, {})


def test_containers_without_a_broker_are_not_checked() -> None:
    client = {
        "name": "app",
        "image": "example/app:1",
        "envs": ["KAFKA_BOOTSTRAP_SERVERS=localhost:9092", "KAFKA_BROKERS=kafka1:9092"],
        "ports": [{"internal": 9092, "external": 9092}],
    }
    topics = {"name": "topics", "image": "apache/kafka:4.1.1", "command": ["kafka-topics.sh"]}
    assert at_the_end(registered(client, topics)) == {}


@pytest.mark.parametrize(
    ("unknown", "reported"),
    [
        ({"envs": UNKNOWN_LIST, "image": "apache/kafka:4.1.1"}, "variables: not known yet"),
        ({"envs": UNKNOWN_LIST, "image": UNKNOWN}, "it is not clear whether a broker runs here"),
        ({"envs": [*inputs()["envs"], UNKNOWN]}, "variables: not known yet"),
        ({"envs": [*inputs()["envs"], "KAFKA_LOG_DIRS=${X}"]}, "KAFKA_LOG_DIRS: not known yet"),
        ({"ports": UNKNOWN_LIST}, "ports: not known yet"),
        ({"ports": [{"internal": 9092, "external": UNKNOWN}]}, "ports: not known yet"),
        ({"networksAdvanced": [{"name": UNKNOWN}]}, "a network: not known yet"),
        ({"networksAdvanced": [{"name": "n", "aliases": [UNKNOWN]}]}, "aliases on network n"),
        ({"name": UNKNOWN}, "its name: not known yet"),
        ({"hostname": UNKNOWN}, "its hostname: not known yet"),
    ],
)
def test_what_a_preview_does_not_know_is_neither_passed_nor_stopped(
    unknown: dict[str, Any], reported: str
) -> None:
    program = registered()
    program.add(CONTAINER_TYPE, "kafka", inputs(**unknown))
    program.add(CONTAINER_TYPE, "ui", ui("kafka1:9092", envs=UNKNOWN_LIST))
    by_resource, end = program.run(Pack(), preview=True)
    assert end == {} and set(by_resource) == {"kafka"}
    assert set(by_resource["kafka"]) == {"not-known-yet"}
    assert any(reported in text for text in by_resource["kafka"]["not-known-yet"]), by_resource


@pytest.mark.parametrize(
    "props",
    [
        {"name": "db", "image": "postgres:17", "envs": [UNKNOWN]},
        {"name": "b", "image": UNKNOWN, "envs": ["A=b"], "ports": UNKNOWN_LIST},
    ],
    ids=["an unknown setting of another image", "an unknown image without variables of Kafka"],
)
def test_unknown_inputs_of_other_containers_are_not_reported(props: dict[str, Any]) -> None:
    assert Pack().analyze(CONTAINER_TYPE, props) == {}


def test_what_a_preview_knows_is_checked_all_the_same() -> None:
    envs = [entry for entry in inputs()["envs"] if not entry.startswith("KAFKA_LISTENERS")]
    findings = Pack().analyze(
        CONTAINER_TYPE, inputs(envs=[*envs, "KAFKA_LISTENERS=A://h:1:2", UNKNOWN])
    )
    assert mandatory(findings) == {"kl002"}


def test_clients_of_a_published_port_are_unknown_for_an_unknown_image() -> None:
    listeners = "INTERNAL://kafka1:19092,HOST://kafka1:9092,CONTROLLER://kafka1:9093"
    props = inputs({"KAFKA_ADVERTISED_LISTENERS": listeners})
    assert set(at_the_end(registered(props))) == {"kl017-stack"}
    assert set(at_the_end(registered(props, ui("kafka1:9092")))) == {"advice-stack"}


@pytest.mark.parametrize(
    ("parents", "reported"), [("", {"advice-stack"}), (f"x:y:Docker${GATE_TYPE}$", set())]
)
def test_how_secure_a_broker_is_is_advice_at_the_end(parents: str, reported: set[str]) -> None:
    advertised = "INTERNAL://203.0.113.9:19092,HOST://203.0.113.9:9092"
    program = registered()
    program.parents[CONTAINER_TYPE] = parents
    program.add(CONTAINER_TYPE, "kafka1", inputs({"KAFKA_ADVERTISED_LISTENERS": advertised}))
    assert set(at_the_end(program)) == reported


def test_what_is_said_beside_a_gate_is_about_others() -> None:
    advertised = "INTERNAL://203.0.113.9:19092,HOST://203.0.113.9:9092"
    gated = inputs({"KAFKA_ADVERTISED_LISTENERS": advertised})
    ports = [{"internal": 9092, "external": 9093}, {"internal": 19092, "external": 29092}]
    other = second(ports=ports)
    envs = [
        "KAFKA_ADVERTISED_LISTENERS=INTERNAL://203.0.113.10:29092,HOST://203.0.113.10:9093"
        if entry.startswith("KAFKA_ADVERTISED_LISTENERS=")
        else entry
        for entry in other["envs"]
    ]
    program = registered()
    program.parents[CONTAINER_TYPE] = f"a:comes:First${GATE_TYPE}$"
    program.add(CONTAINER_TYPE, "kafka1", gated)
    program.parents.clear()
    program.add(CONTAINER_TYPE, "kafka2", {**other, "envs": envs})
    end = at_the_end(program)
    ((urn, text),) = end["advice-stack"]
    assert (set(end), urn) == ({"advice-stack"}, "kafka2") and "[KL019]" in text


@pytest.mark.parametrize(("changes", "name"), [
    ({"KAFKA_ZOOKEEPER_CONNECT": "z:1"}, None),
    ({"KAFKA_PORT": "1"}, "confluentinc/cp-kafka:8.0.0"),
], ids=["a second reason", "a reason of the image, which is known at the end"])  # fmt: skip
def test_a_broker_that_does_not_start_is_reported_once(
    changes: dict[str, str], name: str | None
) -> None:
    broken = inputs({"KAFKA_LISTENERS": "A://h:1:2", **changes})
    program = registered()
    if name:
        image = program.add(REMOTE_IMAGE, "image", {"name": name}, imageId=ID)
        alone = Pack().analyze(CONTAINER_TYPE, {**broken, "image": name})
        assert mandatory(alone) == {"kl014"}
        broken["image"] = image["imageId"]
    program.add(CONTAINER_TYPE, "kafka1", broken)
    by_resource, end = program.run(Pack(), preview=False)
    assert set(by_resource["kafka1"]) == {"kl002"} and end == {}


@pytest.mark.parametrize(
    ("image", "changed"),
    [("confluentinc/cp-kafka:8.0.0", {}), (ID, {"EARSHOT_IMAGE": "confluentinc/cp-kafka:8.0.0"})],
)
def test_an_image_that_is_told_is_checked_as_itself(image: str, changed: dict[str, str]) -> None:
    pack = Pack()
    findings = pack.analyze(CONTAINER_TYPE, inputs({"KAFKA_PORT": "1", **changed}, image=image))
    assert mandatory(findings) == {"kl014"}
    assert mandatory(Pack().analyze(CONTAINER_TYPE, inputs({"KAFKA_PORT": "1"}))) == set()


def test_a_second_broker_on_a_port_that_is_taken_is_stopped() -> None:
    findings = at_the_end(registered(inputs(), second()))
    ((name, text),) = findings.pop("kl017-stack")
    assert (findings, name) == ({}, "kafka2")
    assert headline(text) == (
        "container kafka2: publishes 9092->9092, and kafka1 publishes 9092->9092: Docker starts "
        "only one of them [KL017]"
    )


def test_two_containers_of_one_name_are_told_apart() -> None:
    program = registered(inputs())
    program.add(CONTAINER_TYPE, "twin", inputs())
    ((urn, _),) = at_the_end(program)["kl017-stack"]
    assert urn == "twin"


@pytest.mark.parametrize(
    ("providers", "apart"),
    [
        ((None, None), False),
        (({"host": "ssh://a"}, {"host": "ssh://b"}), True),
        (({"host": "ssh://a"}, {"host": "ssh://a"}), False),
        (({"context": "a", "host": "ssh://a"}, {"context": "b", "host": "ssh://a"}), True),
        ((None, {"host": "unix:///var/run/docker.sock"}), False),
        (({"host": "ssh://a"}, {"host": UNKNOWN}), True),
        ((None, {"host": UNKNOWN}), True),
        ((None, {"context": UNKNOWN, "host": "unix:///var/run/docker.sock"}), True),
    ],
)
def test_engines_are_told_apart_by_their_providers(
    providers: tuple[Any, Any], apart: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    pack = Pack()
    pack.analyze(CONTAINER_TYPE, inputs(), name="one", provider=providers[0])
    pack.analyze(CONTAINER_TYPE, second(), name="two", provider=providers[1])
    assert (pack.analyze_stack([]) == {}) is apart


def test_full_names_beyond_the_networks_are_looked_up() -> None:
    listeners = "INTERNAL://kafka1:19092,HOST://nope.invalid:9092,CONTROLLER://kafka1:9093"
    props = inputs({"KAFKA_ADVERTISED_LISTENERS": listeners})
    # a resolver that nobody can ask proves nothing
    config = {"resolvers": {"external": ["127.0.0.1:1"]}, "timeout": 0.5}
    findings = Pack(config).analyze(CONTAINER_TYPE, props)
    assert mandatory(findings) == {"kl011"}
    assert "listener HOST (scope external): nope.invalid does not resolve" in findings["kl011"][0]
    waived = {**config, "waived": {"nope.invalid": "the record comes tomorrow"}}
    findings = Pack(waived).analyze(CONTAINER_TYPE, props)
    assert mandatory(findings) == set()
    assert (
        "listener HOST (scope external): nope.invalid is waived: the record comes tomorrow"
    ) in findings["advice"]


@pytest.mark.parametrize("leads_here", [True, False])
def test_a_name_that_leads_to_another_machine_is_advice(
    leads_here: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A router may stand before this one."""
    monkeypatch.setattr(earshot_policies.evaluations, "_own_addresses", lambda: ("192.0.2.10",))
    listeners = "INTERNAL://kafka1:19092,HOST://kafka.example.com:9092,CONTROLLER://kafka1:9093"
    props = inputs({"KAFKA_ADVERTISED_LISTENERS": listeners}, image="apache/kafka:4.1.1")
    address = "192.0.2.10" if leads_here else "198.51.100.7"
    with dns_server({"kafka.example.com": (address,)}) as server:
        policy = {"resolvers": {"external": [server]}}
        findings = Pack(policy).analyze(CONTAINER_TYPE, props)
        elsewhere = Pack(policy).analyze(CONTAINER_TYPE, props, provider={"host": "ssh://a"})
    text = (
        "container kafka1, listener HOST (scope external): advertises kafka.example.com, which "
        "resolves to 198.51.100.7: 198.51.100.7 is not its own [KL012]"
    )
    assert set(findings) == (set() if leads_here else {"advice"})
    assert [headline(advice) for advice in findings.get("advice", [])] == [text] * (not leads_here)
    assert elsewhere == {}, "what addresses another machine has is not known here"


@pytest.mark.parametrize("host", ["somewhere", "host.docker.internal", "192.0.2.7"])
def test_what_dns_alone_does_not_decide_is_not_looked_up(host: str) -> None:
    listeners = f"INTERNAL://kafka1:19092,HOST://{host}:9092,CONTROLLER://kafka1:9093"
    props = inputs({"KAFKA_ADVERTISED_LISTENERS": listeners})
    assert at_the_end(registered(props)) == {}


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
    by_resource, end = registered({**ZOOKEEPER, "image": image}).run(Pack(), preview=True)
    assert end == {}
    (text,) = by_resource["kafka0"]["kl017"]
    assert headline(text) == (
        "container kafka0, listener LISTENER_FRED: publishes 9092->9092, and LISTENER_FRED "
        "listens on localhost:9092, which is the container alone: no client connects there [KL017]"
    )


def docker_plan(**document: Any) -> DockerPlan:
    spec = DockerSpec.model_validate({"placement": "docker", "brokers": 1, **document})
    return plan_docker(spec, "test")


def gate(docker: DockerPlan, **changed: Any) -> dict[str, Any]:
    containers = {
        str(id): {**entry.inputs(OWN_ID), **changed} for id, entry in docker.containers.items()
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
    for id, entry in docker.containers.items():
        env = [*entry.inputs(OWN_ID)["envs"], f"EARSHOT_IMAGE={entry.image}"]
        props = {**entry.inputs(OWN_ID), "image": ID, "envs": env}
        findings = pack.analyze(
            CONTAINER_TYPE, props, name=f"node-{id}", parents=f"x:y:Docker${GATE_TYPE}$"
        )
        assert findings == {}


def test_inputs_of_the_gate_that_are_not_known_yet_are_said() -> None:
    findings = Pack().analyze(GATE_TYPE, gate(docker_plan(), ports=UNKNOWN_LIST))
    assert mandatory(findings) == set()
    assert (
        "container kafka-1, broker 1: ports: not known yet [KL006]\n"
        "  expected: the container's variables, ports and networks, checked again with their "
        "values\n"
        "  fix: nothing yet: the update checks it\n"
        "  source: https://docs.docker.com/engine/network/port-publishing/"
    ) in findings["not-known-yet"]
    for hidden in (UNKNOWN, {"1": UNKNOWN}):
        findings = Pack().analyze(GATE_TYPE, {**gate(docker_plan()), "containers": hidden})
        assert mandatory(findings) == set()
        assert "not known yet [KL006]" in "".join(findings["not-known-yet"])


def test_a_container_whose_variables_come_later_is_no_news_behind_a_gate() -> None:
    """The gate was shown all of them but the cluster's id, which makes the whole unknown here."""
    props = inputs(envs=UNKNOWN_LIST, image=UNKNOWN)
    findings = Pack().analyze(CONTAINER_TYPE, props, parents=f"x:y:Docker${GATE_TYPE}$")
    assert findings == {}


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
    findings = Pack(config).analyze(GATE_TYPE, gate(docker))
    assert mandatory(findings) == stopped
    if stopped:
        (text,) = findings["kl006"]
        assert headline(text) == (
            "container kafka0, broker 0, listener LISTENER_FRED: listens on localhost:9092, "
            "which inside the container is the container alone, behind the published port "
            "127.0.0.1:9092->9092 [KL006]"
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
        for id, entry in docker.containers.items():
            where = {"host": docker.hosts[entry.host].engine}
            findings = pack.analyze(
                CONTAINER_TYPE, entry.inputs(OWN_ID), name=f"n{id}", provider=where
            )
            assert mandatory(findings) == set()
        findings = Pack(config).analyze(GATE_TYPE, gate(docker, ports=[]))
    assert {text.partition(" (scope")[0].rpartition(" ")[2] for text in findings["kl006"]} == {
        "INTERNAL", "EXTERNAL", "CONTROLLER"
    }  # fmt: skip


@pytest.mark.parametrize(("changed", "alone", "behind"), [
    ({"KAFKA_LISTENERS": KRAFT["KAFKA_LISTENERS"].replace("HOST://0.0.0.0", "HOST://[::1]")},
     {"kl017"}, {"kl017"}),
    ({"KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": UNKNOWN}, {"not-known-yet"}, set()),
], ids=["grave", "not known"])  # fmt: skip
def test_only_what_is_grave_is_said_again_behind_a_gate(
    changed: dict[str, str], alone: set[str], behind: set[str]
) -> None:
    for parents, reported in (("", alone), (f"x:y:Docker${GATE_TYPE}$", behind)):
        props = inputs(changed, image="apache/kafka:4.1.1")
        props["envs"] = [UNKNOWN if UNKNOWN in entry else entry for entry in props["envs"]]
        assert set(Pack().analyze(CONTAINER_TYPE, props, parents=parents)) == reported


def test_a_resource_that_only_looks_like_a_container_is_not_checked() -> None:
    pack = Pack()
    props = inputs({"KAFKA_LISTENERS": "nonsense"}, image="apache/kafka:4.1.1")
    assert pack.analyze("docker:index/service:Service", props) == {}
    assert mandatory(pack.analyze(CONTAINER_TYPE, props)) != set()


BAD = "process.roles=broker\nlisteners=A://:1\nadvertised.listeners=A://0.0.0.0:1\n"
SETTINGS = "/mnt/shared/config/server.properties"


def test_settings_that_are_uploaded_in_base64_are_judged() -> None:
    content = base64.b64encode(BAD.encode()).decode()
    uploads = [{"file": SETTINGS, "contentBase64": content}]
    findings = Pack().analyze(CONTAINER_TYPE, {"name": "k", "image": APACHE, "uploads": uploads})
    assert "A has the host 0.0.0.0" in "".join(findings["kl002"])


@pytest.mark.parametrize(
    "given",
    [
        {"uploads": [{"file": SETTINGS, "source": "server.properties"}]},
        {"uploads": [{"file": SETTINGS, "content": UNKNOWN}]},
        {"uploads": [{"file": SETTINGS, "contentBase64": "!"}]},
        {"uploads": UNKNOWN_LIST},
        {"volumes": [{"containerPath": "/mnt/shared/config", "hostPath": "/etc/kafka"}]},
    ],
)
def test_settings_that_are_not_read_are_named_and_no_defaults_judged_in_their_place(
    given: dict[str, Any],
) -> None:
    ports = [{"internal": 9092, "external": 19092}]
    findings = Pack().analyze(
        CONTAINER_TYPE, {"name": "k", "image": APACHE, "ports": ports, **given}
    )
    assert set(findings) == {"not-known-yet"}
    assert "mounted files: what they set is not read here" in findings["not-known-yet"][0]
    assert "`earshot lint`" in findings["not-known-yet"][0]


@pytest.mark.parametrize(("changed", "reason"), [
    ({"command": ["/opt/kafka/bin/kafka-server-start.sh", "/etc/my.properties"]},
     "its command starts Kafka with properties that are not read"),
    ({"image": "redpandadata/redpanda:v24.2.7",
      "command": ["redpanda", "start", "--advertise-kafka-addr", UNKNOWN]},
     "an address in its command is not known: ${WORD}"),
], ids=["an own file", "an unknown word"])  # fmt: skip
def test_a_command_whose_listeners_are_not_read_is_said(
    changed: dict[str, Any], reason: str
) -> None:
    pack = Pack()
    pack.analyze(CONTAINER_TYPE, {"name": "kafka", "image": "apache/kafka:4.1.1", **changed})
    ((_, text),) = pack.analyze_stack([])["advice-stack"]
    assert text == f"container kafka: {reason}; not checked"
