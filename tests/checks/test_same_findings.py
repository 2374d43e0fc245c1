"""The same containers get the same findings from every source that describes them.

Cases are one to three brokers with clients, near what works: mostly one thing is wrong.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from earshot.checks import kubernetes
from earshot.checks.containers import ContainerRun, RegisteredContainer
from earshot.checks.deployment import advice_on_services, mistakes
from earshot.checks.instances import InstanceRun
from earshot.checks.lone_settings import mistakes_in_properties, mistakes_in_variables
from earshot.lint.other_files import user_data
from earshot.listeners.images import Family, broker_settings
from earshot.listeners.terms import Scope
from earshot.names.policy import ResolverPolicy, read_policy
from earshot.rules.rule import Finding
from earshot.sources.compose import read_compose
from earshot.sources.docker_container import NETWORK, read_service
from earshot.sources.kubernetes import read_manifest
from earshot.sources.service import Service
from earshot.sources.stack_resources import RegisteredResource, RegisteredStack
from earshot.sources.terraform import Module
from earshot.sources.user_data import broker_files

IMAGES = ("apache/kafka:4.1.1", "confluentinc/cp-kafka:8.0.0", "example/kafka:1")
Verdict = set[tuple[str, str, str, str | None]]
"""Rule, grade, container and listener of each finding."""


@dataclass(frozen=True)
class Box:
    """One container, independent of a file format."""

    name: str
    image: str
    env: Mapping[str, str]
    networks: tuple[str, ...] = ("net",)
    ports: tuple[tuple[int, int], ...] = ()
    command: tuple[str, ...] = ()
    aliases: tuple[str, ...] = field(default=())
    on_host: bool = False


@st.composite
def brokers(draw: st.DrawFn) -> list[Box]:
    """Brokers of one cluster, each a voter."""
    count = draw(st.integers(1, 3))
    image = draw(st.sampled_from(IMAGES))
    names = [f"kafka{i}" for i in range(1, count + 1)]
    voters = ",".join(f"{i}@{name}:9093" for i, name in enumerate(names, 1))
    found = []
    for i, name in enumerate(names, 1):
        outside = 9092 + 10 * i
        inner = draw(odd(name, "localhost", "0.0.0.0", "nobody", names[0]))
        bound = draw(odd("0.0.0.0", "localhost", "", name))
        published = draw(odd(outside, 9092, 9999))
        env = {
            "CLUSTER_ID": "MkU3OEVBNTcwNTJENDM2Qk",
            "KAFKA_NODE_ID": str(draw(odd(i, 1))),
            "KAFKA_PROCESS_ROLES": draw(odd("broker,controller", "broker")),
            "KAFKA_LISTENERS": f"INTERNAL://:19092,HOST://{bound}:9092,CONTROLLER://:9093",
            "KAFKA_ADVERTISED_LISTENERS": f"INTERNAL://{inner}:{draw(odd(19092, 9092))},"
            f"HOST://{draw(odd('localhost', name, 'box.example.com', '203.0.113.9'))}:{outside}",
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "INTERNAL:PLAINTEXT,HOST:PLAINTEXT"
            + draw(odd(",CONTROLLER:PLAINTEXT", "")),
            "KAFKA_INTER_BROKER_LISTENER_NAME": draw(odd("INTERNAL", "HOST", "NONE")),
            "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
            "KAFKA_CONTROLLER_QUORUM_VOTERS": draw(odd(voters, "1@localhost:9093")),
        }
        gone = draw(odd("", "KAFKA_LISTENERS", "CLUSTER_ID", "KAFKA_ADVERTISED_LISTENERS"))
        found.append(
            Box(
                name,
                image,
                {key: value for key, value in env.items() if key != gone},
                networks=draw(odd(("net",), ("net", "other"), ("other",))),
                ports=draw(odd(((9092, published),), (), ((9092, 9092),))),
                aliases=draw(odd((), ("broker",))),
                on_host=draw(odd(False, False, True)),
            )
        )
    return found


@st.composite
def clients(draw: st.DrawFn) -> list[Box]:
    host = st.sampled_from(["kafka1", "kafka2", "localhost", "broker", "nobody"])
    found = []
    for i in range(draw(st.integers(0, 2))):
        address = f"{draw(host)}:{draw(st.sampled_from([19092, 9092, 9102]))}"
        by_command = draw(st.booleans())
        found.append(
            Box(
                f"app{i}",
                "example/app:1",
                {} if by_command else {"KAFKA_BOOTSTRAP_SERVERS": address},
                networks=draw(odd(("net",), ("other",))),
                command=("run", "--bootstrap-server", address) if by_command else (),
            )
        )
    return found


def odd(usual: Any, *others: Any) -> st.SearchStrategy[Any]:
    """Mostly the ``usual`` value."""
    return st.integers(0, 9).flatmap(
        lambda number: st.sampled_from(others) if number == 9 else st.just(usual)
    )


def compose(boxes: Iterable[Box], *, env_file: bool = False) -> tuple[Service, ...]:
    """Read from a Compose file, with variables in it or in files beside it."""
    files = {}
    services = {}
    networks = set()
    for box in boxes:
        section: dict[str, Any] = {"image": box.image, "container_name": box.name}
        if env_file:
            files[f"{box.name}.env"] = "".join(f"{k}={v}\n" for k, v in box.env.items())
            section["env_file"] = f"{box.name}.env"
        else:
            section["environment"] = dict(box.env)
        section["command"] = list(box.command) or None
        section["ports"] = [f"{host}:{inner}" for inner, host in box.ports]
        if box.on_host:
            section["network_mode"] = "host"
        else:
            section["networks"] = {net: {"aliases": list(box.aliases)} for net in box.networks}
            networks |= {*box.networks}
        services[box.name] = section
    # the networks of a program have names of their own, too
    named_networks = {net: {"name": net} for net in sorted(networks)}
    text = yaml.safe_dump({"services": services, "networks": named_networks})
    return read_compose(text, "compose.yaml", {}, files.__getitem__, lenient=True).services


def docker_inputs(box: Box) -> dict[str, Any]:
    """As a program of pulumi-docker registers it."""
    networks = [] if box.on_host else [*box.networks]
    return {
        "name": box.name,
        "image": box.image,
        "envs": [f"{key}={value}" for key, value in box.env.items()],
        "command": list(box.command),
        "ports": [{"internal": float(inner), "external": float(host)} for inner, host in box.ports],
        "networksAdvanced": [{"name": net, "aliases": list(box.aliases)} for net in networks],
        **({"networkMode": "host"} if box.on_host else {}),
    }


def by_pack(boxes: Iterable[Box]) -> tuple[Finding, ...]:
    """The pack's findings about a program's containers: at registration, and at the end."""
    run = ContainerRun()
    found: list[Finding] = []
    for box in boxes:
        item = RegisteredContainer(box.name, read_service(docker_inputs(box), box.name), "engine")
        waived = read_policy({"waived": {"box.example.com": "no lookup in this test"}})
        found += run.register(item, waived).findings
    nets = [RegisteredResource(NETWORK, name, {"name": name}) for name in ("net", "other")]
    return (*found, *(item for _, item in run.evaluate_stack(RegisteredStack(nets)).findings))


def terraform(boxes: Iterable[Box]) -> str:
    """As resources of a Terraform module."""
    networks = ("net", "other")
    text = "".join(f'resource "docker_network" "{n}" {{ name = "{n}" }}\n' for n in networks)
    for box in boxes:
        inputs = docker_inputs(box)
        blocks = [
            f"  ports {{\n    internal = {inner}\n    external = {outer}\n  }}\n"
            for inner, outer in box.ports
        ]
        for network in inputs["networksAdvanced"]:
            name = f"docker_network.{network['name']}.name"
            aliases = json.dumps(network["aliases"])
            blocks.append(
                f"  networks_advanced {{\n    name = {name}\n    aliases = {aliases}\n  }}\n"
            )
        mode = 'network_mode = "host"' if box.on_host else ""
        text += f"""resource "docker_container" "{box.name}" {{
  name    = "{box.name}"
  image   = "{box.image}"
  env     = {json.dumps(inputs["envs"])}
  command = {json.dumps(inputs["command"])}
  {mode}
{"".join(blocks)}}}
"""
    return text


def by_manifest(boxes: Iterable[Box]) -> tuple[Finding, ...]:
    """What is said of pods, each called as its container is, behind a headless Service."""
    boxes = list(boxes)
    services = [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": box.name},
            "spec": {"clusterIP": "None", "selector": {"app": box.name}},
        }
        for box in boxes
    ]
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": box.name, "labels": {"app": box.name}},
            "spec": {
                "containers": [
                    {
                        "name": "it",
                        "image": box.image,
                        "env": [{"name": key, "value": value} for key, value in box.env.items()],
                        "args": list(box.command),
                    }
                ]
            },
        }
        for box in boxes
    ]
    return kubernetes.mistakes(read_manifest([*services, *pods]))


def properties(box: Box) -> str:
    """The file that an image makes of the variables."""
    values = broker_settings(Family.APACHE, box.env).values
    return "".join(f"{key}={value}\n" for key, value in values.items())


def verdict(findings: Iterable[Finding]) -> Verdict:
    return {
        (finding.rule, finding.severity, finding.container, finding.listener)
        for finding in findings
    }


BOXES = st.tuples(brokers(), clients()).map(lambda made: [*made[0], *made[1]])
ADVICE = {f"KL0{number}" for number in range(19, 24)}
"""Rules about security that warn."""
FEW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@FEW
@given(BOXES)
def test_a_compose_file_a_program_and_a_module_get_the_same_verdict(boxes: list[Box]) -> None:
    services = compose(sorted(boxes, key=lambda box: box.name))
    findings = mistakes(services)
    wanted = verdict((*findings, *advice_on_services(services, findings)))
    assert verdict(by_pack(boxes)) == wanted
    assert verdict(by_pack(reversed(boxes))) == wanted, "in whatever order they are registered"
    declared = [one.service for one in Module({"main.tf": terraform(boxes)}).containers()]
    findings = mistakes(declared)
    assert verdict((*findings, *advice_on_services(declared, findings))) == wanted


@FEW
@given(BOXES)
def test_variables_may_stand_in_a_file(boxes: list[Box]) -> None:
    assert verdict(mistakes(compose(boxes, env_file=True))) == verdict(mistakes(compose(boxes)))


@FEW
@given(brokers())
def test_what_does_not_start_does_not_start_in_a_pod(boxes: list[Box]) -> None:
    if boxes[0].image == IMAGES[2]:
        return  # of a Kafka that nobody names, pods ask about a newer release
    wanted = {item[:2] for item in verdict(mistakes(compose(boxes))) if item[0] in REFUSALS}
    found = {item[:2] for item in verdict(by_manifest(boxes)) if item[0] in REFUSALS}
    assert found == wanted


@FEW
@given(BOXES)
def test_clients_and_nodes_get_the_same_verdict_in_pods(boxes: list[Box]) -> None:
    """A pod has one network and every Service; a name without one may be another file's."""
    alike = [replace(box, networks=("net",), aliases=(), on_host=False, ports=()) for box in boxes]
    found = verdict(mistakes(compose(alike)))
    hosts = set(re.findall(r"\b(kafka[0-9]|broker|nobody):", str(alike)))
    if any(item[0] in REFUSALS for item in found) or not hosts <= {box.name for box in alike}:
        return
    if any("HOST://kafka" in box.env.get("KAFKA_LISTENERS", "") for box in alike):
        return  # the address of a name that a pod binds is unknown
    in_pods = {(*it[:2], it[2].partition("/")[0], it[3]) for it in verdict(by_manifest(alike))}
    assert one_rule_for_each_listener(in_pods) == one_rule_for_each_listener(found)


def one_rule_for_each_listener(items: Iterable[tuple[object, ...]]) -> set[tuple[object, ...]]:
    """Findings of KL015, and those of KL016 about listeners that KL015 does not name.

    Pods have one finding for a wrong address of a listener; containers have one of each rule.
    """
    of_clients = {item for item in items if item[0] == "KL015"}
    named = {item[2:] for item in of_clients}
    return of_clients | {item for item in items if item[0] == "KL016" and item[2:] not in named}


@FEW
@given(brokers())
def test_what_kafka_refuses_it_refuses_in_a_properties_file(boxes: list[Box]) -> None:
    for box in boxes:
        if "KAFKA_LISTENERS" not in box.env or box.image != IMAGES[0]:
            continue  # the image has a part in it
        found = verdict(mistakes_in_properties(properties(box), (4, 1)))
        wanted = [item for item in mistakes(compose([box])) if item.rule == "KL002"]
        assert {item[0] for item in found} == {item.rule for item in wanted}


@FEW
@given(brokers())
def test_what_kafka_refuses_in_user_data_stops_the_instance_too(boxes: list[Box]) -> None:
    for box in boxes:
        text = f"#!/bin/sh\ncat > /k.properties <<'EOF'\n{properties(box)}EOF\n"
        findings = InstanceRun().evaluate(box.name, broker_files(text), SILENT_RESOLVERS)
        by_lint = user_data(text, "user-data.sh", None)
        rules = {item.rule for item in findings}
        # what rules of instances alone stop gets no advice besides
        said = {"KL002"} if rules - {"KL002", *ADVICE} else {"KL002", *ADVICE}
        assert {item.observed for item in findings if item.rule in said} == {
            item.finding.observed for item in by_lint.mistakes if item.finding.rule in said
        }


@FEW
@given(brokers())
def test_what_kafka_refuses_whatever_the_image_it_refuses_in_a_file_of_variables(
    boxes: list[Box],
) -> None:
    for box in boxes:
        if not {"KAFKA_LISTENERS", "KAFKA_ADVERTISED_LISTENERS"} <= set(box.env):
            continue  # whether something derives them is not known of a file alone
        wanted = mistakes(compose([replace(box, image=IMAGES[2])]))
        findings = mistakes_in_variables(box.env)
        assert verdict(replace(item, container=box.name) for item in findings) == {
            item for item in verdict(wanted) if item[0] in REFUSALS
        }


REFUSALS = {"KL002", "KL014"}
SILENT_RESOLVERS = ResolverPolicy(timeout=0.05, resolvers={Scope.EXTERNAL: ("127.0.0.1:1",)})
