"""The containers that a script starts have the settings of its `docker run` commands."""

from typing import Any

import pytest

from earshot.sources.docker_run import StartedContainers, started_containers
from earshot.sources.shell import read_script
from earshot.topology.container import JoinedNetwork


def started(text: str) -> StartedContainers:
    return started_containers(read_script(text))


@pytest.mark.parametrize(
    ("options", "attribute", "expected"),
    [
        ("", "name", "kafka (line 1)"),
        ("--name k", "name", "k"),
        ("--name=k", "name", "k"),
        ("-d -it --rm --name k", "name", "k"),
        ("-e A=b --env=C=d", "env", {"A": "b", "C": "d"}),
        ("-e HOST", "env", {"HOST": "${HOST}"}),
        ("", "network_mode", "bridge"),
        ("--net host", "network_mode", "host"),
        ("--network=n --network-alias a", "networks", (JoinedNetwork("n", ("a",)),)),
        ("--add-host db:192.0.2.1", "extra_hosts", {"db": "192.0.2.1"}),
        ("--link zk:zookeeper", "links", {"zookeeper": "zk"}),
        ("-v data:/var/lib/kafka:ro", "mounts", ("/var/lib/kafka",)),
        ("-P", "unknown", ("ports",)),
        ("--env-file kafka.env", "unknown", ("env_file",)),
        ("$OPTIONS", "unknown", ("options",)),
    ],
)
def test_options_are_settings_of_the_container(options: str, attribute: str, expected: Any) -> None:
    (container,) = started(f"docker run {options} apache/kafka:4.0.0").containers
    assert getattr(container.service.container, attribute) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("docker run -d", "line 1: the command ends before the image"),
        ("for i in 1 2; do\ndocker run kafka\ndone", "line 2: kafka is started in a loop"),
        (
            "docker run --name k -e A=1 kafka\ndocker run --name k -e A=2 kafka",
            "container k: is started in two ways",
        ),
    ],
)
def test_a_container_that_is_not_read_is_named(text: str, reason: str) -> None:
    result = started(text)
    assert (result.containers, result.not_read) == ((), (reason,))


def test_a_variable_file_is_read_as_docker_does_it() -> None:
    script = read_script("docker run --env-file kafka.env kafka")
    (container,) = started_containers(
        script, lambda file: f"FILE={file}\nHOST=${{HOST}}"
    ).containers
    assert container.service.container.env == {"FILE": "kafka.env", "HOST": "${HOST}"}


@pytest.mark.parametrize(
    "option", ["--log-level debug", "-D", "-H unix:///run/docker.sock", "--context=default"]
)
def test_options_before_the_subcommand_are_skipped(option: str) -> None:
    text = f"docker {option} network create n\ndocker {option} run --network n -- kafka"
    (container,) = started(text).containers
    assert container.service.container.open_networks is False


@pytest.mark.parametrize("option", ["-H ssh://other", "--context other", "--context default-eu"])
def test_containers_on_another_host_are_left_out(option: str) -> None:
    assert started(f"docker {option} run --name k kafka").containers == ()


@pytest.mark.parametrize(
    ("before", "is_open"),
    [
        ("docker network create n\n", False),
        ("", True),
        ("docker network create n\ndocker run -d\n", True),  # a command that is not read
    ],
)
def test_only_a_network_that_the_script_creates_is_known_whole(before: str, is_open: bool) -> None:
    (container,) = started(f"{before}docker run --network n kafka").containers
    assert container.service.container.open_networks is is_open
