from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from earshot.errors import EarshotError
from earshot.sources.compose import Compose, is_compose, read_compose, started_services
from earshot.sources.compose_files import MAX_INCLUDED
from earshot.sources.service import BASE_FILE, Service
from earshot.topology.container import Container, JoinedNetwork, PublishedPort
from tests.goldens import refusals_are_golden


def read(
    text: str,
    variables: Mapping[str, str] | None = None,
    files: Mapping[str, str] | None = None,
    *,
    over: str = "",
    lenient: bool = False,
) -> Compose:
    """A file that ``over``, a file of another folder, is laid over."""
    contents = {path: textwrap.dedent(content) for path, content in (files or {}).items()}

    def open_file(path: str) -> str:
        if path not in contents:
            raise FileNotFoundError(2, "No such file or directory", path)
        return contents[path]

    return read_compose(
        textwrap.dedent(text),
        "c.yml",
        variables or {},
        open_file,
        over=[(over, "deploy/b.yml")] if over else (),
        lenient=lenient,
    )


def lenient(
    text: str, variables: Mapping[str, str] | None = None, files: Mapping[str, str] | None = None
) -> Compose:
    """The same as `earshot lint` reads it."""
    return read(text, variables, files, lenient=True)


def of_service(text: str) -> str:
    """A file whose service k has the keys of ``text``."""
    return "services:\n  k:\n" + textwrap.indent(textwrap.dedent(text), "    ")


def one(
    text: str, variables: Mapping[str, str] | None = None, files: Mapping[str, str] | None = None
) -> Service:
    return read(of_service(text), variables, files).services[0]


def lenient_container(text: str, **more: Mapping[str, str]) -> Container:
    return lenient(of_service(text), **more).services[0].container


def names(services: Iterable[Service]) -> list[str]:
    return [service.name for service in services]


def refusal(text: str, files: Mapping[str, str] | None = None) -> str:
    with pytest.raises(EarshotError) as caught:
        read(text, files=files)
    return str(caught.value)


@pytest.mark.parametrize(
    "environment",
    ["{A: 0, B: '1.10', C: yes, D: '', E:, HOST:}", "[A=0, B=1.10, C=yes, D=, E, HOST]"],
)
def test_environment_as_map_and_as_list(environment: str) -> None:
    service = one(f"environment: {environment}", variables={"HOST": "h"})
    assert service.container.env == {"A": "0", "B": "1.10", "C": "yes", "D": "", "HOST": "h"}


def test_scalars_are_read_as_they_are_written() -> None:
    container = one("environment: {A: 010, B: 1e3, C: on, D: 22:22}\nports: [22:22]").container
    assert container.env == {"A": "010", "B": "1e3", "C": "on", "D": "22:22"}
    assert container.published == (PublishedPort(22, 22),)


def test_variables_are_replaced_everywhere_but_in_keys() -> None:
    container = one(
        "image: apache/kafka:${TAG:-4.1.1}\nports: ['${P}:9092']\nenvironment: {A$$: $$x$P}",
        variables={"P": "9092"},
    ).container
    assert container.image == "apache/kafka:4.1.1"
    assert container.published == (PublishedPort(9092, 9092),)
    assert container.env == {"A$$": "$x9092"}
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
    k, front, plain, on_host = (service.container for service in read(text).services)
    assert (k.name, k.hostname) == ("broker", "host-k")
    assert k.networks == (
        JoinedNetwork("real-back", ("k", "kafka0", "kafka"), "10.0.0.5"),
        JoinedNetwork("front", ("k",)),
    )
    assert front.networks == (JoinedNetwork("front", ("other",)),)
    assert plain.networks == (JoinedNetwork("default", ("plain",)),)
    assert on_host.on_host_network and on_host.networks == () == on_host.published


def test_environment_outweighs_env_files() -> None:
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
    service = one("env_file: a.env\nscale: 2", files={"a.env": "A=1\n"})
    assert (service.container.env, service.replicas) == ({"A": "1"}, "2")


def test_a_service_extends_another_of_its_file() -> None:
    text = """
        services:
          base: {image: base, environment: [A=1, B=1], ports: ["1:1"]}
          k: {extends: base, environment: {B: 2, C: 2}, ports: ["2:2", "1:1"]}
    """
    k = read(text).services[1].container
    assert (k.image, k.env) == ("base", {"A": "1", "B": "2", "C": "2"})
    assert k.published == (PublishedPort(1, 1), PublishedPort(2, 2))


def test_anchors_and_merge_keys() -> None:
    text = """
        x-env: &env {A: 1, B: 1}
        x-k: &k {image: i, ports: ["1:1"]}
        services:
          k: {<<: *k, environment: {<<: *env, B: 2}}
    """
    k = read(text).services[0].container
    assert (k.image, k.env) == ("i", {"A": "1", "B": "2"})


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


def test_each_unreadable_text_has_one_error() -> None:
    ports = [
        f"services: {{k: {{ports: ['1', {port}]}}}}" for port in ("x", "'${X:?}'", "!other [a]")
    ]
    texts = [
        "",
        "- a",
        "services:",
        "services: {}",
        "services: [k]",
        "version: '3'",
        "include: [a.yml]",
        "include: [a.yml]\nservices: {k: {}}",
        "services: {k: [a]}",
        "services: {k: {}, k: {}}",
        "services:\n\tk: 1",
        *ports,
        *(
            f"services: {{k: {{{key}: {{a: b}}}}}}"
            for key in ("ports", "volumes", "env_file", "profiles", "links")
        ),
        *(
            f"services: {{k: {{image: a, {key}: {value}}}}}"
            for key in ("ports", "volumes", "networks", "profiles", "links", "extra_hosts")
            for value in ("9092", "a:b", "true", "1.5")
        ),
        "services: {k: {environment: [{A: b}]}}",
        "services: {k: {environment: {A: [b]}}}",
        "services: {k: {environment: [a=b, [c]]}}",
        "services: {k: {environment: {A: '${X:?}'}}}",
        "services: {k: {command: [a, [b, '${X:?}']]}}",
        "networks: {n: {name: '${X:?}'}}\nservices: {k: {}}",
        "services: {k: {image: '${X:?no}'}}",
        "services: {k: {extends: z}}",
        "services: {k: {extends: [a]}}",
        "services: {k: {extends: j}, j: {extends: k}}",
        "services: {k: {extends: {file: gone.yml}}}",
        "services: {k: {extends: {file: n.yml, service: z}}}",
        "services: {k: {networks: {n: [a]}}}",
        "services: {k: {networks: {n: {aliases: {a: b}}}}}",
        "services: &s {k: {x: *s}}",
        "services: {k: \x01}",
    ]
    files = {"n.yml": "services: {a: {}, b: {}}"}
    path = Path(__file__).parent / "mistakes" / "compose.txt"
    refusals_are_golden(texts, lambda text: refusal(text, files), path)
    deep = "a: &a [1]\nservices: {k: [" + "[" * 2000
    assert "is nested more than 64 levels deep" in refusal(deep)


def test_a_bomb_of_anchors_does_not_go_off() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]
    assert refusal("\n".join([*lines, "services: {k: {command: *a8}}"])) == (
        "c.yml: line 6, column 5: its aliases (*name) repeat more than 100,000 values\n"
        "  fix: write it with fewer aliases (*name) and levels, or in several files"
    )


def test_what_is_empty_is_nothing() -> None:
    service = one(
        """
        image:
        hostname: ''
        ports: ''
        env_file:
        environment:
        networks: {}
        volumes: [{type: tmpfs}, '']
        entrypoint: ''
        command: []
        extends: ''
        scale: ''
        """
    )
    assert service == Service(
        "k",
        Container(
            "k",
            networks=(JoinedNetwork("default", ("k",)),),
            mounts=("", ""),
            open_networks=True,  # without an image it is a part of a service
        ),
    )


@pytest.mark.parametrize("required", ["false", "False", "true", "''"])
def test_a_missing_env_file_is_refused_unless_it_is_not_required(required: str) -> None:
    text = f"env_file: [{{path: gone.env, required: {required}}}]\nenvironment: {{A: 1}}"
    if required.lower() == "false":
        assert one(text).container.env == {"A": "1"}
    else:
        assert refusal(of_service(text)) == (
            "c.yml: services.k.env_file[0]: gone.env cannot be read (No such file or directory)"
        )


def test_an_env_file_that_is_no_text_is_refused() -> None:
    def broken(path: str) -> str:
        return b"\xff".decode()

    with pytest.raises(EarshotError) as caught:
        read_compose("services: {k: {env_file: a.env}}", "c.yml", {}, broken)
    assert str(caught.value) == (
        "c.yml: services.k.env_file[0]: a.env cannot be read (it is no UTF-8 text)"
    )


def test_files_of_another_folder_are_sought_there() -> None:
    files = {
        "sub/base.yml": """
            services:
              k: {env_file: [x.env, {path: y.env}], extends: {file: deep/b.yml, service: b}}
              plain: {extends: {service: deeper}, hostname: h}
              deeper: {image: "i:${TAG}", env_file: x.env}
        """,
        "sub/deep/b.yml": "services: {b: {image: i, env_file: z.env}}",
        "sub/x.env": "A=x",
        "sub/y.env": "B=y",
        "sub/deep/z.env": "C=z",
    }
    container = one("extends: {file: sub/base.yml}", files=files).container
    assert (container.image, container.env) == ("i", {"A": "x", "B": "y", "C": "z"})
    text = "extends: {file: sub/base.yml, service: plain}"
    container = one(text, files=files, variables={"TAG": "7"}).container
    assert (container.image, container.hostname) == ("i:7", "h")
    assert container.env == {"A": "x"}
    files = {"sub/base.yml": "services: {k: {env_file: [{format: raw}]}}"}
    assert refusal(of_service("extends: {file: sub/base.yml, service: k}"), files) == (
        "c.yml: services.k.env_file[0]: sub/ cannot be read (No such file or directory)"
    )


def test_what_is_extended_is_merged_as_compose_does() -> None:
    text = """
        services:
          base:
            networks: {one: {aliases: [a]}}
            volumes: ["x:/x"]
            env_file: [a.env]
            command: base
            environment: {A: 1}
          k:
            {extends: {service: base}, networks: [two], volumes: ["y:/y"], env_file: [b.env],
             command: own}
    """
    service = read(text, files={"a.env": "F=a\nG=a\n", "b.env": "F=b\n"}).services[1]
    assert service == Service(
        "k",
        Container(
            "k",
            networks=(JoinedNetwork("one", ("k", "a")), JoinedNetwork("two", ("k",))),
            env={"F": "b", "G": "a", "A": "1"},
            mounts=("/x", "/y"),
            open_networks=True,
        ),
        ("own",),
    )


@pytest.mark.parametrize("length", [20, 21, 3000])
def test_a_chain_of_services_that_extend_each_other_has_an_end(length: int) -> None:
    links = (f"s{i}: {{extends: s{i - 1}}}" for i in range(1, length))
    text = "services: {s0: {image: i}, " + ", ".join(links) + "}"
    if length == 20:
        assert read(text).services[19].container.image == "i"
    else:
        assert refusal(text) == (
            "c.yml: services.s0.extends: is at the end of 20 services that extend each other\n"
            "  fix: adopt the output of `docker compose config` instead"
        )


def test_networks_that_are_no_map_give_no_names() -> None:
    (service,) = read("networks: [a]\nservices: {k: {networks: [a]}}").services
    assert service.container.networks == (JoinedNetwork("a", ("k",)),)


def test_what_only_one_of_two_services_has_is_taken_from_it() -> None:
    files = {
        "b.yml": """
            services:
              b: {environment: {A: 1}, ports: ['1:1']}
              plain: {image: 'kafka:1'}
        """
    }
    bare = one("extends: {file: b.yml, service: b}", files=files).container
    assert (bare.env, bare.published) == ({"A": "1"}, (PublishedPort(1, 1),))
    text = "extends: {file: b.yml, service: plain}\nenvironment: {A: 2}\nports: ['2:2']"
    set_here = one(text, files=files).container
    assert (set_here.env, set_here.image) == ({"A": "2"}, "kafka:1")
    assert set_here.published == (PublishedPort(2, 2),)


@pytest.mark.parametrize("key", ["ports", "volumes", "env_file", "environment", "networks"])
@pytest.mark.parametrize("text", ["", "''"])
def test_a_key_with_nothing_behind_it_is_not_there(key: str, text: str) -> None:
    assert one(f"image: a\n{key}: {text}") == one("image: a")


@pytest.mark.parametrize("key", ["version", "networks", "volumes", "configs", "secrets", "name"])
def test_a_file_without_services_is_not_taken_for_the_oldest_format(key: str) -> None:
    assert "services: is no map of services, or empty" in refusal(f"{key}: {{image: a}}")
    assert names(read("k: {image: i}\nz: {image: j}").services) == ["k", "z"]


def test_a_file_that_many_services_extend_is_read_once() -> None:
    paths: list[str] = []

    def open_file(path: str) -> str:
        paths.append(path)
        return "services: {a: {}, b: {}}"

    links = (f"{name}: {{extends: {{file: b.yml, service: {name}}}}}" for name in "ab")
    read_compose(f"services: {{{', '.join(links)}}}", "c.yml", {}, open_file)
    assert paths == ["b.yml"]


def test_an_unset_variable_is_kept() -> None:
    compose = lenient("services: {k: {image: 'a:$TAG', environment: {A: '${B:-b}${C:?no}$D'}}}")
    assert compose.services[0].container.image == "a:${TAG}"
    assert compose.services[0].container.env == {"A": "b${C}${D}"}
    assert compose.missing == ("TAG", "C", "D")


def test_a_property_of_another_tool_is_kept() -> None:
    compose = lenient("services: {k: {image: 'a:${project.version}', environment: {D: $$}}}")
    assert compose.services[0].container.image == "a:${project.version}"
    assert compose.services[0].container.env == {"D": "$"}
    assert compose.malformed == (
        "services.k.image has a form that compose does not know (at character 12)",
    )


@pytest.mark.parametrize(("text", "problem"), [
    *((f"services: {{k: {{image: a, environment: {environment}}}}}",
       f"services.k.environment{problem}") for environment, problem in (
        ("{A: 'x$'}", ".A: has a $ that no variable's name follows"),
        ("{A: '${C:9092'}", ".A: has a form that compose does not know"),
        ("{A: '${C'}", ".A: has a ${ that is not closed"),
        ("{A: '${C:-d'}", ".A: has a ${ that is not closed"),
        ("{A: '$1'}", ".A: has a $ that no variable's name follows"),
        ("5", ": found one value"), ("A=b", ": found one value"), ("true", ": found one value"),
    )),
    *((f"services: {{k: {{image: a, {key}: {value}}}}}",
       f"services.k.{key}: found one value\n  allowed: a list")
      for key in ("ports", "volumes", "networks", "profiles", "links", "extra_hosts")
      for value in ("9092", "a:b", "true", "1.5")),
    ("services: {}", "is no map of services, or empty"),
])  # fmt: skip
def test_what_compose_refuses_is_refused_in_lenient_reading_too(text: str, problem: str) -> None:
    with pytest.raises(EarshotError, match=re.escape(problem)):
        lenient(text)


KAFKA = "services: {kafka: {image: 'apache/kafka:3.9.0', env_file: k.env}}"


def test_included_files_are_read_with_their_own_paths() -> None:
    files = {"d/other.yml": f"include: [more.yml]\n{KAFKA}", "d/k.env": "A=1"}
    files |= {"d/more.yml": "services: {ui: {image: ui}}"}
    compose = lenient("include: [d/other.yml]\nservices: {}", files=files)
    assert names(compose.services) == ["ui", "kafka"]
    assert compose.services[1].container.env == {"A": "1"}
    assert [path for _, path in compose.included] == ["d/other.yml", "d/more.yml"]
    assert compose.not_included == ()
    assert not compose.services[0].container.open_networks


@pytest.mark.parametrize(
    "entry",
    ["gone.yml", "{path: other.yml, project_directory: d}", "{path: [other.yml], env_file: e}"],
)
def test_an_included_file_that_is_not_read_is_named(entry: str) -> None:
    text = f"include: [{entry}]\nservices: {{ui: {{image: ui}}}}"
    compose = lenient(text, files={"other.yml": KAFKA})
    assert names(compose.services) == ["ui"]
    assert compose.not_included == ("gone.yml" if entry == "gone.yml" else "other.yml",)
    assert compose.services[0].container.open_networks


@pytest.mark.parametrize(
    ("entry", "cycle"),
    [
        ("./c.yml", "c.yml -> c.yml"),
        ("{path: [z.yml, c.yml]}", "c.yml -> c.yml"),
        ("x.yml", "y.yml -> x.yml -> y.yml"),
        ("z.yml, x.yml", "y.yml -> x.yml -> y.yml"),
    ],
)
def test_files_that_include_each_other_are_refused(entry: str, cycle: str) -> None:
    files = {
        "x.yml": "include: [y.yml]",
        "y.yml": "include: [./x.yml]",
        "z.yml": "include: [y.yml]",
    }
    with pytest.raises(EarshotError, match=f"{cycle}: docker compose refuses the cycle"):
        lenient(f"include: [{entry}]\n{KAFKA}", files=files)


def test_files_override_those_that_are_included_before_them() -> None:
    files = {
        "x.yml": "services: {k: {image: kafka, environment: {A: '1'}}}",
        "y.yml": "services: {k: {environment: {A: '2'}}}",
    }
    for text in (
        "include: [{path: [x.yml, y.yml]}]",
        "include: [x.yml]\nservices: {k: {environment: {A: '2'}}}",
    ):
        (service,) = lenient(text, files=files).services
        assert (service.container.image, service.container.env) == ("kafka", {"A": "2"})


def test_included_files_are_read_once_and_their_number_is_limited() -> None:
    files = {"x.yml": f"include: [y.yml]\n{KAFKA}", "y.yml": "services: {}"}
    text = "include: [{path: [x.yml]}, {path: [x.yml, z.yml]}]"
    entries = lenient(text, files=files | {"z.yml": "services: {}"})
    assert [path for _, path in entries.included] == ["x.yml", "z.yml", "y.yml"]
    files = {f"{i}.yml": f"include: [{i + 1}.yml]" for i in range(MAX_INCLUDED + 5)}
    compose = lenient("include: [0.yml]", files=files)
    assert len(compose.included) == MAX_INCLUDED
    assert compose.not_included == (f"{MAX_INCLUDED}.yml",)


@pytest.mark.parametrize("text", ["environment: [A]", "environment: {A: }", "env_file: k.env"])
def test_a_variable_of_the_environment_that_is_not_set_is_not_known(text: str) -> None:
    body = f"services: {{k: {{image: a, {text}}}}}"
    files = {"k.env": "A\n"}
    compose = lenient(body, files=files)
    assert (compose.services[0].container.env, compose.missing) == ({"A": "${A}"}, ("A",))
    assert lenient(body, {"A": "1"}, files).services[0].container.env == {"A": "1"}
    strict = read(body, files=files)
    assert (strict.services[0].container.env, strict.missing) == ({}, ())


def test_an_unset_variable_of_an_env_file_is_unknown() -> None:
    body = "services: {k: {image: a, env_file: k.env, environment: {B: '$C'}}}"
    compose = lenient(body, {"C": "x${D}"}, {"k.env": "A=${HOST_IP}:1\n"})
    assert compose.services[0].container.env == {"A": "${HOST_IP}:1", "B": "x${D}"}
    assert set(compose.missing) == {"HOST_IP", "D"}


def test_an_env_file_may_be_raw() -> None:
    container = one("env_file: [{path: k.env, format: raw}]", files={"k.env": "A='$x'\n"}).container
    assert container.env == {"A": "'$x'"}


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("ports: ['${PORTS}', '1:1']", ("ports",)),
        ("ports: ['${A}', '${B}']", ("ports",)),
        ("env_file: gone.env", ("env_file",)),
        ("extends: {file: gone.yml, service: k}", ("extends",)),
        ("env_file: [{path: gone.env, required: false}]", ()),
        ("image: a", ()),
    ],
)
def test_what_cannot_be_read_is_named_and_the_rest_is_read(
    text: str, unknown: tuple[str, ...]
) -> None:
    image = "" if "extends" in text else "i"
    container = lenient_container(f"{text}\nhostname: h\nimage: {image}")
    assert (container.unknown, container.hostname) == (unknown, "h")
    assert container.published == ((PublishedPort(1, 1),) if "1:1" in text else ())


def test_a_file_beside_it_is_extended() -> None:
    files = {"b.yml": "services: {b: {image: i}}"}
    container = lenient_container("extends: {file: b.yml, service: b}", files=files)
    assert (container.image, container.unknown) == ("i", ())


def test_the_last_of_equal_keys_counts() -> None:
    assert lenient_container("image: a\nimage: b").image == "b"


@pytest.mark.parametrize(
    ("text", "is_open"),
    [
        ("services: {k: {image: i}}", False),
        ("services: {k: {build: .}}", False),
        ("services: {k: {image: i, networks: [n]}}\nnetworks: {n: {}}", False),
        ("services: {k: {image: i, networks: [n]}}\nnetworks: {n: {external: true}}", True),
        ("services: {k: {image: i}}\nnetworks: {n: {external: true}}", False),
        ("services: {k: {image: i}}\nnetworks: {default: {external: true, name: x}}", True),
        ("services: {k: {image: i, external_links: [other]}}", True),
        ("services: {k: {image: i, links: ['z:kafka']}, z: {image: i}}", False),
        ("services: {k: {image: i, links: [z]}, z: {image: i}}", False),
        ("services: {k: {image: i, network_mode: bridge}}", False),
        ("services: {k: {image: i, network_mode: bridge, links: [z]}, z: {image: i}}", False),
        ("services: {k: {image: i, network_mode: shared}}", True),
        ("services: {k: {image: i}, z: {image: i, depends_on: [k]}}", False),
        ("services: {k: {image: i}, z: {image: i, depends_on: [other]}}", True),
        ("services: {k: {image: i}, z: {image: i, depends_on: {other: {}}}}", True),
        ("services: {k: {image: i}, z: {hostname: z}}", True),
        ("include: [other.yml]\nservices: {k: {image: i}}", True),
    ],
)
def test_whether_its_networks_may_have_more_names(text: str, is_open: bool) -> None:
    assert lenient(text).services[0].container.open_networks is is_open


def test_links_are_names_for_one_container() -> None:
    text = "services: {k: {image: i, links: [z, 'z:Kafka']}, z: {image: i}}"
    assert lenient(text).services[0].container.links == {"z": "z", "kafka": "z"}


@pytest.mark.parametrize("flag", ["true", "false", ""])
def test_an_internal_network(flag: str) -> None:
    top = f"networks: {{default: {{internal: {flag}}}}}"
    (network,) = lenient(f"services: {{k: {{image: i}}}}\n{top}").services[0].container.networks
    assert network.internal is (flag == "true")


@pytest.mark.parametrize(
    "text",
    [
        "extra_hosts: {A.b: 10.0.0.1, six: '::1'}",
        "extra_hosts: ['A.b:10.0.0.1', 'six:[::1]']",
        "extra_hosts: ['A.b=10.0.0.1', 'six=::1']",
    ],
)
def test_names_of_the_container_s_own_hosts_file(text: str) -> None:
    assert lenient_container(text).extra_hosts == {"a.b": "10.0.0.1", "six": "::1"}


BROKER = "listeners=A://:1\n"


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("volume", "path", "content", "is_read"),
    [
        ("./server.properties:/opt/kafka/config/server.properties", "./server.properties",
         f"a=b\n{BROKER}", True),
        ("./conf:/mnt/shared/config", "./conf/server.properties", BROKER, True),
        ("{type: bind, source: ./server.properties, target: /x}", "./server.properties", BROKER,
         True),
        ("./server.properties:/x", "", "", False),
        ("./server.properties:/x", "./server.properties", "bootstrap.servers=k:1\n", False),
        # a volume of that name
        ("data.properties:/x", "data.properties", BROKER, False),
        ("/etc/server.properties:/x", "/etc/server.properties", BROKER, False),
        # a million lines, in seconds
        ("./server.properties:/x", "./server.properties", "\n" * 1_000_000, False),
    ],
)  # fmt: skip
def test_only_the_mounted_file_of_a_broker_beside_the_compose_file_is_read(
    volume: str, path: str, content: str, is_read: bool
) -> None:
    text = f"services: {{k: {{volumes: [{volume}]}}}}"
    assert lenient(text, files={path: content}).services[0].properties == content * is_read
    assert read(text, files={path: content}).services[0].properties == ""


@pytest.mark.parametrize(
    ("config", "mount"),
    [
        ("content: 'listeners=A://:${PORT:-1}'", "{source: own, target: /x.properties}"),
        ("content: 'listeners=A://:1'", "{source: own, target: /x/server.properties}"),
        ("file: own.properties", "own"),
        ("file: ./own.properties", "{source: own}"),
    ],
)
def test_a_config_of_a_broker_is_read_like_a_mounted_file(config: str, mount: str) -> None:
    text = f"configs: {{own: {{{config}}}}}\nservices: {{k: {{configs: [{mount}]}}}}"
    (service,) = lenient(text, files={"./own.properties": BROKER}).services
    assert service.properties.strip() == BROKER.strip()
    assert service.container.mounts


@pytest.mark.parametrize(
    ("mount", "path"),
    [
        ("{source: a, target: /x/a.properties}", "/x/a.properties"),
        ("{source: a.properties}", "/a.properties"),
        ("a.properties", "/a.properties"),
    ],
)
def test_a_config_of_a_client_is_read_like_a_mounted_file(mount: str, path: str) -> None:
    content = "{content: 'bootstrap.servers=k:1'}"
    configs = f"configs: {{a: {content}, a.properties: {content}}}"
    text = f"{configs}\nservices: {{k: {{configs: [{mount}]}}}}"
    (service,) = lenient(text).services
    assert service.files == {path: "bootstrap.servers=k:1"}


@pytest.mark.parametrize(
    ("section", "unknown"),
    [
        ("configs: [{source: own, target: /mnt/shared/config/server.properties}]", True),
        ("configs: [{source: nowhere, target: /mnt/shared/config/server.properties}]", True),
        ("volumes: ['/etc/kafka:/mnt/shared/config']", True),
        ("volumes: ['kafka:/mnt/shared/config/']", True),
        ("volumes: ['/l.yaml:/mnt/shared/config/log4j2.yaml']", False),
    ],
)
def test_settings_of_apache_kafka_that_are_mounted_from_elsewhere_are_not_known(
    section: str, unknown: bool
) -> None:
    compose = lenient(f"configs: {{own: {{external: true}}}}\nservices: {{k: {{{section}}}}}")
    assert ("mounted files" in compose.services[0].container.unknown) is unknown


def test_an_image_that_is_built_is_known_to_be() -> None:
    assert one("build: .\nimage: a").is_built
    assert not one("image: a").is_built


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("services: {k: {image: i}}", True),
        ("services: {}", True),
        ("version: '3'\nservices: {k: {}}", True),
        ("k: {image: i}\nz: {build: .}\nx-y: {a: b}", True),
        ("k: {extends: {file: b.yml}}", True),
        ("services: [a]", False),
        ("services:", False),
        ("k: {image: i}\nz: {a: b}", False),
        ("name: x\nk: {image: i}", False),
        ("apiVersion: v1\nkind: Pod\nspec: {image: i}", False),
        ("apiVersion: {image: i}", False),
        ("- image: i", False),
        ("text", False),
        ("", False),
        ("x-a: {image: i}", False),
    ],
)
def test_what_a_compose_file_is(text: str, expected: bool) -> None:
    assert is_compose(text, "c.yml") is expected


def test_a_text_that_is_no_yaml_is_refused() -> None:
    with pytest.raises(EarshotError, match=r"^c\.yml: is no YAML; line 1, column 5: "):
        is_compose("a: [", "c.yml")


SCALARS = st.none() | st.text(max_size=8) | st.sampled_from(["9092:9092", "${X}", "a=b", "./c"])
ANYTHING = st.recursive(
    SCALARS,
    lambda items: (
        st.lists(items, max_size=3)
        | st.dictionaries(st.sampled_from(["target", "path", "aliases", "file", "service"]), items)
    ),
    max_leaves=6,
)
KEYS = st.sampled_from(
    ["image", "environment", "ports", "networks", "volumes", "env_file", "extends", "command",
     "entrypoint", "hostname", "container_name", "extra_hosts", "network_mode", "deploy", "links",
     "build", "scale", "external_links"]
)  # fmt: skip


@given(st.dictionaries(st.sampled_from("abk"), st.dictionaries(KEYS, ANYTHING)), ANYTHING)
def test_any_services_are_read_or_refused(services: dict[str, object], networks: object) -> None:
    text = yaml.safe_dump({"services": services, "networks": networks})
    for way_of_reading in (read, lenient):
        try:
            compose = way_of_reading(text)
        except EarshotError as error:
            assert str(error)
            continue
        assert names(compose.services) == sorted(services)


def test_a_service_without_an_image_belongs_to_another_file() -> None:
    assert lenient_container("hostname: h").unknown == (BASE_FILE,)


# https://docs.docker.com/reference/compose-file/merge/
def test_files_are_laid_over_each_other_as_compose_does() -> None:
    base = """
services:
  kafka:
    image: old
    command: run
    hostname: kafka
    ports: ["9092:9092"]
    environment: {A: 1, B: 2}
    networks: {inner: {aliases: [broker], ipv4_address: 192.0.2.4}}
    extra_hosts: ["one:192.0.2.1"]
networks: {inner: {name: first}}
"""
    over = """
services:
  kafka:
    image: new
    ports: ["9093:9092", "9092:9092"]
    environment: ["B=3", "C=4"]
    networks: {inner: {aliases: [other]}, outer: }
    extra_hosts: {two: 192.0.2.2}
    profiles: [p]
  app: {image: app}
networks: {inner: {name: second}, outer: }
"""
    kafka, app = read(base, over=over).services
    assert app.name == "app"
    assert kafka.command == ("run",)
    assert kafka.container == Container(
        name="kafka",
        image="new",
        hostname="kafka",
        networks=(
            JoinedNetwork("second", ("kafka", "other"), "192.0.2.4"),
            JoinedNetwork("outer", ("kafka",)),
        ),
        published=(PublishedPort(9092, 9092), PublishedPort(9092, 9093)),
        env={"A": "1", "B": "3", "C": "4"},
        extra_hosts={"one": "192.0.2.1", "two": "192.0.2.2"},
        profiles=("p",),
    )


@pytest.mark.parametrize(
    ("profiles", "expected"),
    [((), "abc"), (("x",), "ab"), (("x", "y"), "abc"), (("*",), "abc"), (("z",), "a")],
)
def test_which_services_run_with_profiles(profiles: tuple[str, ...], expected: str) -> None:
    text = "services: {a: {image: i}, b: {image: i, profiles: [x]}, c: {image: i, profiles: [y]}}"
    started = [*started_services(read(text).services, profiles)]
    assert "".join(names(started)) == expected
    assert not profiles or not any(service.container.profiles for service in started)


@pytest.mark.parametrize("text", ["deploy: {replicas: 0}", "scale: 0"])
@pytest.mark.parametrize("profiles", [(), ("x",)])
def test_a_service_without_containers_does_not_run(text: str, profiles: tuple[str, ...]) -> None:
    body = f"services: {{a: {{image: i, {text}}}, b: {{image: i, scale: 1}}}}"
    assert names(started_services(read(body).services, profiles)) == ["b"]


# https://docs.docker.com/reference/compose-file/merge/#reset-value
@pytest.mark.parametrize(
    ("over", "published", "env", "image"),
    [
        ("ports: !reset []", (), {"A": "1", "B": "2"}, "old"),
        ("ports: !reset null", (), {"A": "1", "B": "2"}, "old"),
        ("ports: !override ['1:2']", (PublishedPort(2, 1),), {"A": "1", "B": "2"}, "old"),
        ("environment: {A: !reset null}", (PublishedPort(9092, 9092),), {"B": "2"}, "old"),
        ("environment: !override {C: 3}", (PublishedPort(9092, 9092),), {"C": "3"}, "old"),
        ("environment: !override [C=$D]", (PublishedPort(9092, 9092),), {"C": "4"}, "old"),
        ("image: !override new", (PublishedPort(9092, 9092),), {"A": "1", "B": "2"}, "new"),
        ("environment: !reset\n    ports: !reset", (), {}, "old"),
    ],
)
def test_the_tags_of_compose_remove_values_of_the_file_below(
    over: str, published: tuple[PublishedPort, ...], env: dict[str, str], image: str
) -> None:
    service = "{image: old, ports: ['9092:9092'], environment: [A=1, B=2]}"
    base, above = f"services: {{k: {service}}}", f"services:\n  k:\n    {over}\n"
    laid = read(base, {"D": "4"}, over=above).services[0]
    extending = f"services:\n  a: {service}\n  k:\n    extends: a\n    {over}\n"
    extended = read(extending, {"D": "4"}).services[1]
    for container in (laid.container, extended.container):
        assert (container.published, container.env, container.image) == (published, env, image)


@pytest.mark.parametrize(
    ("over", "remaining"),
    [
        ("services: {a: !reset null}", ["b"]),
        ("services: !override {c: {image: z}}", ["c"]),
        ("services: {a: !override {image: z}}", ["a", "b"]),
    ],
)
def test_a_tag_may_remove_services(over: str, remaining: list[str]) -> None:
    services = read("services: {a: {image: x, hostname: h}, b: {image: y}}", over=over).services
    assert sorted(names(services)) == remaining
    assert all(service.container.hostname == "" for service in services)
