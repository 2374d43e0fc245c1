from __future__ import annotations

import textwrap
from collections.abc import Mapping

import pytest

from earshot.adopt.compose import Compose, Service, read_compose
from earshot.errors import EarshotError
from earshot.rules.container import Network, PublishedPort


def read(
    text: str, variables: Mapping[str, str] | None = None, files: Mapping[str, str] | None = None
) -> Compose:
    given = {name: textwrap.dedent(item) for name, item in (files or {}).items()}

    def open_file(path: str) -> str:
        if path not in given:
            raise FileNotFoundError(2, "No such file or directory", path)
        return given[path]

    return read_compose(textwrap.dedent(text), "c.yml", variables or {}, open_file)


def one(text: str, **more: Mapping[str, str]) -> Service:
    body = textwrap.indent(textwrap.dedent(text), "    ")
    return read(f"services:\n  k:\n{body}", **more).services[0]


def test_environment_as_map_and_as_list() -> None:
    as_map = one(
        "environment: {A: 0, B: '1.10', C: yes, D: '', E:, HOST:}", variables={"HOST": "h"}
    )
    as_list = one("environment: [A=0, B=1.10, C=yes, D=, E, HOST]", variables={"HOST": "h"})
    expected = {"A": "0", "B": "1.10", "C": "yes", "D": "", "HOST": "h"}
    assert as_map.container.env == as_list.container.env == expected


def test_scalars_mean_what_stands_there() -> None:
    service = one("environment: {A: 010, B: 1e3, C: on, D: 22:22}\nports: [22:22]")
    assert service.container.env == {"A": "010", "B": "1e3", "C": "on", "D": "22:22"}
    assert service.container.published == (PublishedPort(22, 22),)


def test_variables_are_replaced_everywhere_but_in_keys() -> None:
    service = one(
        "image: apache/kafka:${TAG:-4.1.1}\nports: ['${P}:9092']\nenvironment: {A$$: $$x$P}",
        variables={"P": "9092"},
    )
    assert service.container.image == "apache/kafka:4.1.1"
    assert service.container.published == (PublishedPort(9092, 9092),)
    assert service.container.env == {"A$$": "$x9092"}


def test_missing_variables_are_named() -> None:
    assert read("services: {k: {image: 'a:$NO'}}").missing == ("NO",)


def test_names_and_networks() -> None:
    text = """
        services:
          k:
            container_name: broker
            hostname: host-k
            networks:
              back: {aliases: [kafka0, kafka], ipv4_address: 10.0.0.5}
              front:
          other: {networks: [front]}
          plain: {}
          onhost: {network_mode: host, ports: ["1:1"]}
        networks:
          back: {name: real-back}
    """
    k, other, plain, on_host = (item.container for item in read(text).services)
    assert (k.name, k.hostname) == ("broker", "host-k")
    assert k.networks == (
        Network("real-back", ("k", "kafka0", "kafka"), "10.0.0.5"),
        Network("front", ("k",)),
    )
    assert other.networks == (Network("front", ("other",)),)
    assert plain.networks == (Network("default", ("plain",)),)
    assert on_host.on_host_network and on_host.networks == () == on_host.published


def test_env_files_come_before_environment() -> None:
    service = one(
        """
        env_file:
          - a.env
          - {path: gone.env, required: false}
        environment: {B: mine}
        """,
        files={"a.env": "A=$X\nB=theirs\n"},
        variables={"X": "x"},
    )
    assert service.container.env == {"A": "x", "B": "mine"}


def test_a_service_extends_another_of_its_file() -> None:
    text = """
        services:
          base:
            image: base
            environment: [A=1, B=1]
            ports: ["1:1"]
          k:
            extends: base
            environment: {B: 2, C: 2}
            ports: ["2:2", "1:1"]
    """
    k = read(text).services[1].container
    assert k.image == "base"
    assert k.env == {"A": "1", "B": "2", "C": "2"}
    assert k.published == (PublishedPort(1, 1), PublishedPort(2, 2))


def test_a_service_extends_one_of_another_file_whose_paths_are_its_own() -> None:
    files = {
        "sub/base.yml": """
            services:
              deeper: {image: "i:${TAG}", env_file: x.env}
              base: {extends: {service: deeper}, hostname: h}
        """,
        "sub/x.env": "A=1",
    }
    k = one("extends: {file: sub/base.yml, service: base}", files=files, variables={"TAG": "7"})
    assert (k.container.image, k.container.hostname) == ("i:7", "h")
    assert k.container.env == {"A": "1"}


def test_anchors_and_merge_keys() -> None:
    text = """
        x-env: &env {A: 1, B: 1}
        x-k: &k {image: i, ports: ["1:1"]}
        services:
          k: {<<: *k, environment: {<<: *env, B: 2}}
    """
    k = read(text).services[0].container
    assert (k.image, k.env) == ("i", {"A": "1", "B": "2"})


def test_the_oldest_format_has_no_heading() -> None:
    assert [item.name for item in read("k: {image: i}\nz: {image: j}").services] == ["k", "z"]


def test_commands_replicas_and_mounts() -> None:
    service = one(
        """
        entrypoint: [sh, -c]
        command: kafka-topics --list
        deploy: {replicas: 3}
        volumes: ["./c:/mnt/shared/config:ro", {type: bind, target: /x}, /y]
        """
    )
    assert service.command == ("sh", "-c", "kafka-topics", "--list")
    assert service.replicas == "3"
    assert service.container.mounts == ("/mnt/shared/config", "/x", "/y")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "c.yml: holds no services"),
        ("- a", "c.yml: holds no services"),
        ("services:", "c.yml: services: is no map of services, or empty"),
        ("services: {k: [a]}", "c.yml: services.k: found ['a']"),
        ("services: {k: {}, k: {}}", "the key 'k' stands twice"),
        ("services:\n\tk: 1", "c.yml: is no YAML; line 2, column 1"),
        ("services: {k: {ports: !override [a]}}", "the tag !override is not read"),
        ("services: {k: {ports: [x]}}", "c.yml: services.k.ports[0]: found 'x'"),
        ("services: {k: {ports: {a: b}}}", "c.yml: services.k.ports: found a map"),
        ("services: {k: {environment: {A: [b]}}}", "services.k.environment.A: found ['b']"),
        ("services: {k: {environment: [{A: b}]}}", "services.k.environment[0]: found"),
        ("services: {k: {env_file: no.env}}", "env_file[0]: no.env cannot be read (No such file"),
        ("services: {k: {extends: z}}", "names the service z, which c.yml does not have"),
        ("services: {k: {extends: j}, j: {extends: k}}", "extends itself, by way of others"),
        ("services: {k: {extends: {file: n.yml}}}", "extends: n.yml cannot be read"),
        ("services: {k: {image: '${X:?no}'}}", "c.yml: services.k.image: the variable X is"),
        ("include: [a.yml]\nservices: {k: {}}", "c.yml: include: files that include others"),
        ("services: &s {k: {x: *s}}", "c.yml: grows without end through its anchors"),
        ("a: &a [1]\nservices: {k: [" + "[" * 2000, "is nested too deeply"),
        ("services: {k: \x01}", "is no YAML"),
    ],
)
def test_what_cannot_be_read_is_one_clear_error(text: str, message: str) -> None:
    with pytest.raises(EarshotError) as caught:
        read(text)
    assert message in str(caught.value)


def test_a_bomb_of_anchors_does_not_go_off() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]
    with pytest.raises(EarshotError, match="grows without end"):
        read("\n".join([*lines, "services: {k: {command: *a8}}"]))
