"""The pack on plain Pulumi programs with brokers: it stops a mistake before a container exists."""

import contextlib
import json
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from earshot.checks.deployment import mistakes
from earshot.listeners.model import ClusterPlan, Listener, Node
from earshot.listeners.render import environment
from earshot.listeners.terms import Role, Scope
from earshot.sources.docker_container import read_service
from tests.doubles.dns_server import dns_server
from tests.e2e.docker_engine import Engine
from tests.e2e.docker_project import Project, docker_project
from tests.e2e.ports import free_ports
from tests.rest import with_combinations
from toolchain.paths import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
READY_SECONDS = 60.0
SMALL = {"KAFKA_HEAP_OPTS": "-Xmx256m", "KAFKA_LOG_CLEANER_DEDUPE_BUFFER_SIZE": "2097152"}


@pytest.fixture
def project(docker_engine: Engine, kafka_image: str, tmp_path: Path) -> Iterator[Project]:
    """A project with the pack switched on; whatever becomes of the test, its resources go."""
    new_project = docker_project(tmp_path / "p", docker_engine)
    new_project.environment["PULUMI_OPTION_POLICY_PACK"] = str(ROOT / "policies")
    yield new_project
    new_project.pulumi("destroy", "--yes", "--skip-preview")


@pytest.fixture
def mark() -> str:
    """A unique part of names."""
    return f"e{uuid.uuid4().hex[:8]}"


def configure(project: Project, **names: Any) -> None:
    """The pack's configuration of `names`."""
    path = project.folder / "pack.json"
    path.write_text(json.dumps({"names": names}))
    project.environment["PULUMI_OPTION_POLICY_PACK_CONFIG"] = str(path)


def kraft(name: str, port: int, id: int = 1) -> dict[str, str]:
    """The variables of a combined node that is well, published on ``port``."""
    return {
        "CLUSTER_ID": "MkU3OEVBNTcwNTJENDM2Qk",
        "KAFKA_NODE_ID": str(id),
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_LISTENERS": "INTERNAL://0.0.0.0:19092,OUTSIDE://0.0.0.0:9092,CONTROLLER://:9093",
        "KAFKA_ADVERTISED_LISTENERS": f"INTERNAL://{name}:19092,OUTSIDE://localhost:{port},"
        f"CONTROLLER://{name}:9093",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "INTERNAL:PLAINTEXT,OUTSIDE:PLAINTEXT,"
        "CONTROLLER:PLAINTEXT",
        "KAFKA_INTER_BROKER_LISTENER_NAME": "INTERNAL",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": f"{id}@{name}:9093",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        **SMALL,
    }


def network(mark: str, image: str) -> str:
    return f"""
image = docker.RemoteImage("image", name="{image}", keep_locally=True)
network = docker.Network("network", name="{mark}-net")
"""


def container(key: str, name: str, env: Mapping[str, str], port: int, dependency: str = "") -> str:
    """One container of a plain program. An empty text removes a variable.

    The container is registered after that with the key ``dependency``. Without one, the order of
    registrations is not fixed."""
    envs = [f"{name}={value}" for name, value in env.items() if value]
    return f"""
{key} = docker.Container(
    "{key}",
    name="{name}",
    image=image.image_id,
    envs={envs!r},
    ports=[docker.ContainerPortArgs(internal=9092, external={port})],
    networks_advanced=[
        docker.ContainerNetworksAdvancedArgs(name=network.name, aliases=["{name}"])
    ],
    opts=pulumi.ResourceOptions(depends_on=[{dependency}]),
)
"""


def containers(engine: Engine, mark: str) -> set[str]:
    """The containers of a test on the engine, whatever their state."""
    output = engine.run("ps", "--all", "--filter", f"name={mark}", "--format", "{{.Names}}")
    return set(output.split())


class Mistake(NamedTuple):
    """Variables changed in a node that is well; NAME and PORT stand for its own."""

    changed_variables: dict[str, str]
    rule: str
    message: str
    remedy: str
    place: str = "Container::kafka, envs["
    image: str = "image.image_id"
    """The image of the broker. The defaults of an image are known by its name."""
    command: str = "up"
    """`preview` where all containers are looked at together: an update does that at its end."""


def advertised(internal: str, outside: str) -> dict[str, str]:
    text = f"INTERNAL://{internal},OUTSIDE://{outside},CONTROLLER://NAME:9093"
    return {"KAFKA_ADVERTISED_LISTENERS": text}


MISTAKES = {
    "bound to localhost behind a published port": Mistake(
        {"KAFKA_LISTENERS": "INTERNAL://0.0.0.0:19092,OUTSIDE://localhost:9092,CONTROLLER://:9093"},
        "KL017",
        "OUTSIDE listens on localhost:9092, which is the container alone",
        "let it listen on all interfaces of its container; write NAME: KAFKA_LISTENERS:",
    ),
    "a container name in an external listener": Mistake(
        advertised("NAME:19092", "NAME:9092"),
        "KL017",
        "clients that come in there are sent to NAME, a name that only the containers know",
        "write NAME: KAFKA_ADVERTISED_LISTENERS:",
        command="preview",
    ),
    "published and advertised port that disagree": Mistake(
        advertised("NAME:19092", "localhost:1"),
        "KL017",
        "advertises localhost:1 and listens on 9092, and the published port is PORT",
        "OUTSIDE://localhost:PORT",
    ),
    "a missing inter-broker listener": Mistake(
        {"KAFKA_INTER_BROKER_LISTENER_NAME": ""},
        "KL002",
        "Kafka does not start",
        "inter.broker.listener.name",
        place="Container::kafka",
        image='"apache/kafka:4.1.1"',
    ),
}


@pytest.mark.parametrize(
    "name", with_combinations("a container name in an external listener", MISTAKES)
)
def test_a_mistake_is_stopped_before_the_container_exists(
    name: str, project: Project, kafka_image: str, mark: str
) -> None:
    mistake, (port,), container_name = MISTAKES[name], free_ports(1), f"{mark}-kafka"

    def filled(text: str) -> str:
        return text.replace("NAME", container_name).replace("PORT", str(port))

    changed_variables = {
        key: value.replace("NAME", container_name).replace(":PORT", f":{port}")
        for key, value in mistake.changed_variables.items()
    }
    env = kraft(container_name, port) | changed_variables
    text = container("kafka", container_name, env, port).replace("image.image_id", mistake.image)
    project.write(network(mark, kafka_image) + text)
    output = project.failed_output(command=mistake.command)
    assert f"container {container_name}" in output and mistake.place in output
    assert f"[{mistake.rule}]" in output and "[mandatory]" in output
    assert filled(mistake.message) in output
    assert filled(mistake.remedy) in output
    assert containers(project.engine, mark) == set()


def test_the_configuration_files_and_the_gate_that_is_missing(
    project: Project, kafka_image: str, mark: str, tmp_path: Path
) -> None:
    """Two containers with one mistake: by id, in a file, once, and neither behind a gate."""
    ports, names = free_ports(2), (f"{mark}-one", f"{mark}-two")
    wrong_variables = {
        "KAFKA_LISTENERS": "INTERNAL://:19092,OUTSIDE://localhost:9092,CONTROLLER://:9093"
    }
    project.write(
        network(mark, kafka_image)
        + container("one", names[0], kraft(names[0], ports[0]) | wrong_variables, ports[0])
        + container(
            "two",
            names[1],
            kraft(names[1], ports[1], 2) | wrong_variables,
            ports[1],
            dependency="one",
        )
    )
    file = tmp_path / "findings.sarif"
    project.environment["EARSHOT_FINDINGS"] = str(file)
    output = project.failed_output(command="preview")
    assert output.count("OUTSIDE listens on localhost:9092, which is the container alone") == 1
    assert "other resources have the same cause" in output and "repeated" in output
    assert "brokers one, two: no gate checks what they advertise" in output
    results = json.loads(file.read_text())["runs"][0]["results"]
    assert len([result for result in results if result["ruleId"] == "KL017"]) == 2

    levels(project, KL017="advisory")
    assert "[KL017]" in project.run("preview")
    results = json.loads(file.read_text())["runs"][0]["results"]
    assert {result["level"] for result in results if result["ruleId"] == "KL017"} == {"warning"}
    levels(project, KL999="advisory")
    assert "KL999: no such policy; allowed: KL002" in project.failed_output(command="preview")
    assert containers(project.engine, mark) == set()


def levels(project: Project, **levels: str) -> None:
    """The pack's configuration of levels."""
    path = project.folder / "pack.json"
    path.write_text(json.dumps(levels))
    project.environment["PULUMI_OPTION_POLICY_PACK_CONFIG"] = str(path)


def test_a_client_that_is_sent_to_itself_is_stopped(
    project: Project, kafka_image: str, mark: str
) -> None:
    (port,), container_name = free_ports(1), f"{mark}-kafka"
    client = {"KAFKA_BOOTSTRAP_SERVERS": f"{container_name}:9092"}
    (client_port,) = free_ports(1)
    text = container("app", f"{mark}-app", client, client_port)
    project.write(
        network(mark, kafka_image)
        + container("kafka", container_name, kraft(container_name, port), port)
        + text.replace("image.image_id", '"example/app:1"')
    )
    output = project.failed_output(command="preview")
    assert (
        f"container {container_name}, listener OUTSIDE: {mark}-app bootstraps to OUTSIDE" in output
    )
    assert f"is sent on to localhost:{port}: it is the client itself" in output
    assert "[KL015]" in output
    assert containers(project.engine, mark) == set()


@pytest.mark.combination
def test_a_value_that_a_preview_does_not_know_is_checked_by_the_update(
    project: Project, kafka_image: str, mark: str
) -> None:
    (port,), container_name = free_ports(1), f"{mark}-kafka"
    env = kraft(container_name, port)
    late_listeners = env.pop("KAFKA_LISTENERS").replace("OUTSIDE://0.0.0.0", "OUTSIDE://localhost")
    text = container("kafka", container_name, env, port)
    late_variable = f'network.id.apply(lambda _: "KAFKA_LISTENERS={late_listeners}")'
    project.write(network(mark, kafka_image) + text.replace("envs=[", f"envs=[{late_variable}, "))
    preview = project.pulumi("preview")
    assert preview.returncode == 0, preview.stdout
    assert f"container {container_name}: variables: not known yet [KL014]" in preview.stdout
    assert "[advisory]" in preview.stdout and "[mandatory]" not in preview.stdout
    output = project.failed_output()
    assert "OUTSIDE listens on localhost:9092" in output and "[KL017]" in output
    assert containers(project.engine, mark) == set()


def wait_for(engine: Engine, name: str, bootstrap: str, expected_text: str) -> str:
    """Waits until kcat in a container prints ``expected_text``. Returns its output."""
    end = time.monotonic() + READY_SECONDS
    while True:
        try:
            listing = engine.run("exec", name, "kcat", "-L", "-b", bootstrap)
        except AssertionError as error:
            listing = str(error)
        if expected_text in listing:
            return listing
        assert time.monotonic() < end, f"{listing}\n{engine.run('logs', '--tail', '20', name)}"
        time.sleep(0.5)


def test_the_kraft_file_of_many_a_team_passes_and_runs(
    project: Project, kafka_image: str, mark: str
) -> None:
    (port,), container_name = free_ports(1), f"{mark}-kafka-test"
    env = {
        "KAFKA_NODE_ID": "1",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
        "PLAINTEXT_HOST:PLAINTEXT",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": f"1@{container_name}:9093",
        "KAFKA_LISTENERS": "PLAINTEXT://:19092,CONTROLLER://:9093,PLAINTEXT_HOST://:9092",
        "KAFKA_INTER_BROKER_LISTENER_NAME": "PLAINTEXT",
        "KAFKA_ADVERTISED_LISTENERS": f"PLAINTEXT://{container_name}:19092,PLAINTEXT_HOST://localhost:{port}",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        **SMALL,
    }
    project.write(network(mark, kafka_image) + container("kafka", container_name, env, port))
    levels(project, **{"no-gate": "disabled"})
    output = project.up()
    assert "[mandatory]" not in output
    assert "[advisory]" not in output
    wait_for(
        project.engine,
        container_name,
        f"{container_name}:19092",
        f"broker 1 at {container_name}:19092",
    )
    listing = project.engine.run(
        "exec", container_name, "kcat", "-L", "-b", f"{container_name}:9092"
    )
    assert f"broker 1 at localhost:{port}" in listing


@pytest.mark.combination
def test_a_name_of_the_host_passes_where_it_resolves_or_is_waived(
    project: Project, kafka_image: str, mark: str
) -> None:
    host, container_name = "never-gonna-give-you-up.example", f"{mark}-kafka0"
    fred, alice = free_ports(2)
    env = kraft(container_name, fred, 0) | {
        "KAFKA_LISTENERS": f"BOB://{container_name}:29092,FRED://{container_name}:9092,ALICE://{container_name}:29094,"
        f"CONTROLLER://{container_name}:9093",
        "KAFKA_ADVERTISED_LISTENERS": f"BOB://{container_name}:29092,FRED://localhost:{fred},"
        f"ALICE://{host}:{alice},CONTROLLER://{container_name}:9093",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "BOB:PLAINTEXT,FRED:PLAINTEXT,ALICE:PLAINTEXT,"
        "CONTROLLER:PLAINTEXT",
        "KAFKA_INTER_BROKER_LISTENER_NAME": "BOB",
    }
    text = container("kafka0", container_name, env, fred)
    second_port = f", docker.ContainerPortArgs(internal=29094, external={alice})],"
    project.write(
        network(mark, kafka_image)
        + text.replace(")],\n    networks", f"){second_port}\n    networks")
    )
    with dns_server({host: ("192.0.2.7",)}) as server:
        configure(project, resolvers={"external": [server]})
        resolved_preview = project.pulumi("preview")
    with dns_server({}) as server:
        configure(project, resolvers={"external": [server]})
        refusal = project.failed_output(command="preview")
        configure(project, resolvers={"external": [server]}, waived={host: "as in the song"})
        waived_preview = project.pulumi("preview")
    assert resolved_preview.returncode == 0, resolved_preview.stdout
    assert f"listener ALICE (scope external): {host} does not resolve" in refusal
    assert "[KL011]" in refusal and f"container {container_name}, listener ALICE" in refusal
    assert (
        waived_preview.returncode == 0
        and f"{host} is waived: as in the song" in waived_preview.stdout
    )


def test_a_container_without_a_broker_is_left_alone(
    project: Project, client_image: str, mark: str
) -> None:
    env = {"KAFKA_BOOTSTRAP_SERVERS": "localhost:9092", "KAFKA_TOPIC": "t"}
    (port,) = free_ports(1)
    text = container("app", f"{mark}-app", env, port)
    project.write(network(mark, client_image) + text)
    assert "kl0" not in project.up()
    assert containers(project.engine, mark) == {f"{mark}-app"}


@pytest.mark.combination
def test_a_controller_alone_starts_with_the_variables_that_earshot_renders(
    docker_engine: Engine, kafka_image: str, mark: str
) -> None:
    plan = plan_with_controller(f"{mark}-controller", f"{mark}-broker")
    names = {10001: f"{mark}-controller", 1: f"{mark}-broker"}
    services = []
    with contextlib.closing(docker_engine.client()) as client, contextlib.ExitStack() as cleanup:
        net = client.networks.create(f"{mark}-net")
        cleanup.callback(net.remove)
        for node in plan.nodes:
            container_name = names[node.id]
            env = {**environment(plan, node), "CLUSTER_ID": "MkU3OEVBNTcwNTJENDM2Qk", **SMALL}
            inputs = {
                "name": container_name,
                "image": "apache/kafka:4.1.1",
                "envs": env,
                "networksAdvanced": [{"name": net.name, "aliases": [container_name]}],
            }
            services.append(read_service(inputs))
            node = client.containers.run(
                kafka_image,
                detach=True,
                name=container_name,
                hostname=container_name,
                network=net.name,
                environment=env,
            )
            cleanup.callback(node.remove, force=True, v=True)
        assert mistakes(services) == ()
        wait_for(docker_engine, names[1], f"{names[1]}:19092", f"broker 1 at {names[1]}:19092")
        status = docker_engine.run(
            "exec",
            names[1],
            "/opt/kafka/bin/kafka-metadata-quorum.sh",
            "--bootstrap-server",
            f"{names[1]}:19092",
            "describe",
            "--status",
        )
        logs = docker_engine.run("logs", names[10001])
    assert f"CONTROLLER://{names[10001]}:9093" in status
    assert f"listenerName='CONTROLLER', securityProtocol=PLAINTEXT, host='{names[10001]}'" in logs


def plan_with_controller(controller: str, broker: str) -> ClusterPlan:
    """A controller and a broker of their own on one network."""
    return ClusterPlan(
        kafka_version="4.1.1",
        inter_broker="INTERNAL",
        controller="CONTROLLER",
        replication_factor=1,
        min_insync_replicas=1,
        nodes=(
            _node(1, Role.BROKER, "INTERNAL", Scope.INTERNAL, broker, 19092),
            _node(10001, Role.CONTROLLER, "CONTROLLER", Scope.CONTROLLER, controller, 9093),
        ),
    )


def _node(id: int, role: Role, name: str, scope: Scope, host: str, port: int) -> Node:
    listener = Listener(name=name, scopes=(scope,), bind_port=port, host=host, port=port)
    return Node(id=id, roles=(role,), listeners=(listener,))
