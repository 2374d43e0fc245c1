"""Where a finding stands: line and column, from 1."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.lint.model import Place
from earshot.lint.places import at_paths, in_files, in_properties, of_container, of_resource
from earshot.sources.kubernetes import read_manifest
from earshot.yaml_document import read_yaml_documents
from tests.lint.samples import finding

TEXT = """\
x-env: &env
  KAFKA_NODE_ID: 1
services:
  kafka:
    image: apache/kafka:4.1.1
    ports: ["9092:9092"]
    environment:
      <<: *env
      KAFKA_ADVERTISED_LISTENERS: A://k:1
      KAFKA_CFG_LISTENERS: A://:1
  listed:
    container_name: broker
    environment:
      - KAFKA_LISTENERS=A://:1
      - CLUSTER_ID
  bare: {image: x}
  flags:
    command: [start, --advertise-kafka-addr=a:1]
  others:
    command: start
"""


def place(container: str, *inputs: str, text: str = TEXT) -> tuple[int, int]:
    wanted = replace(finding(), container=container, inputs=inputs)
    ((found, where),) = in_files([(text, "c.yml")], [wanted])
    assert found is wanted and where.file == "c.yml"
    return where.line, where.column


@pytest.mark.parametrize(
    ("container", "inputs", "expected"),
    [
        ("kafka", ("advertised.listeners",), (9, 7)),  # the variable that sets a property
        ("kafka", ("KAFKA_ADVERTISED_LISTENERS",), (9, 7)),
        ("kafka", ("listeners",), (10, 7)),  # bitnami's
        ("kafka", ("node.id",), (2, 3)),  # merged
        ("kafka", ("ports",), (6, 5)),  # a key of the service
        ("kafka", ("image",), (5, 5)),
        ("kafka", ("gone", "ports", "image"), (6, 5)),  # the first that is there
        ("kafka", ("gone",), (4, 3)),  # the service
        ("kafka", (), (4, 3)),
        ("listed", ("listeners",), (14, 9)),
        ("flags", ("advertised.listeners",), (18, 5)),
        ("others", ("advertised.listeners",), (19, 3)),
        ("listed", ("CLUSTER_ID",), (15, 9)),
        ("listed", ("node.id",), (11, 3)),
        ("broker", ("listeners",), (14, 9)),  # by its container's name
        ("bare", ("listeners",), (16, 3)),
        ("bare", ("image",), (16, 10)),
        ("nobody", ("image",), (0, 0)),
        ("", ("image",), (0, 0)),
    ],
)
def test_a_place_in_a_compose_file(
    container: str, inputs: tuple[str, ...], expected: tuple[int, int]
) -> None:
    assert place(container, *inputs) == expected


def test_a_service_comes_before_one_whose_container_is_called_so() -> None:
    text = "services:\n  a: {container_name: b}\n  b: {image: x}\n"
    assert place("b", text=text) == (3, 3)


def test_the_oldest_format_has_no_heading() -> None:
    assert place("k", "image", text="k:\n  image: apache/kafka\n") == (2, 3)


def test_what_is_merged_comes_after_what_is_written() -> None:
    text = "x: &x {image: a}\nservices:\n  k:\n    image: b\n    <<: [*x]\n"
    assert place("k", "image", text=text) == (4, 5)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ("{<<: *x, CLUSTER_ID: b}", (5, 27)),
        ("{CLUSTER_ID: b, <<: *x}", (5, 19)),
        ("{<<: [*x, *y]}", (1, 8)),
        ("{<<: [*y, *x]}", (2, 8)),
        ("[CLUSTER_ID=a, CLUSTER_ID=b]", (5, 33)),
    ],
)
def test_the_variable_that_counts_is_shown(environment: str, expected: tuple[int, int]) -> None:
    anchors = "x: &x {CLUSTER_ID: a}\ny: &y {CLUSTER_ID: a}\n"
    text = f"{anchors}services:\n  k:\n    environment: {environment}\n"
    assert place("k", "CLUSTER_ID", text=text) == expected


def test_of_a_key_that_stands_twice_the_last_is_meant() -> None:
    assert place("k", "image", text="services:\n  k:\n    image: a\n    image: b\n") == (4, 5)


@pytest.mark.parametrize("environment", ["", "[]", "{}", "text", "[[a]]", "[{a: b}]", "{[a]: b}"])
def test_an_odd_environment_has_no_variables(environment: str) -> None:
    text = f"services:\n  k:\n    environment: {environment}\n"
    assert place("k", "listeners", text=text) == (2, 3)


def test_findings_keep_their_order_and_none_needs_no_file() -> None:
    wanted = [replace(finding(), container=name) for name in ("listed", "kafka")]
    assert [where.line for _, where in in_files([(TEXT, "c.yml")], wanted)] == [11, 4]
    assert list(in_files([("no: [yaml", "c.yml")], [])) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nlisteners=A://:1\n", (2, 1)),
        ("listeners=A\n  listeners : B\n", (2, 3)),  # the last, as Kafka takes it
        ("listeners A://:1", (1, 1)),
        ("listeners\n", (1, 1)),
        ("#listeners=A\nadvertised.listeners=A", (0, 0)),
        ("a=1\r\nlisteners=A\r\n", (2, 1)),
        ("", (0, 0)),
    ],
)
def test_a_place_in_properties(text: str, expected: tuple[int, int]) -> None:
    wanted = replace(finding(), inputs=("listeners",))
    assert in_properties(text, "s.properties", wanted) == Place("s.properties", *expected)


@given(st.text(max_size=60))
def test_any_properties_have_a_place_or_none(text: str) -> None:
    found = in_properties(text, "s.properties", replace(finding(), inputs=("listeners", "a")))
    assert found.line <= len(text.splitlines()) and bool(found.line) == bool(found.column)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ((0, "spec", "listeners", 1), (4, 7)),
        ((0, "spec", "listeners", 2), (0, 0)),
        ((0, "spec", "gone", 0), (0, 0)),  # and not the first document
        ((0, "spec", "listeners", 1, "gone", 0), (0, 0)),
    ],
)
def test_a_place_in_a_document(path: tuple[int | str, ...], expected: tuple[int, int]) -> None:
    text = "spec:\n  listeners:\n    - {name: a}\n    - {name: b}\n"
    wanted = finding()
    assert list(at_paths(text, "m.yaml", [(wanted, [path])])) == [
        (wanted, Place("m.yaml", *expected))
    ]


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [(("spec.listeners[1].port",), (5, 15)), ((), (2, 1)), (("spec.gone",), (2, 1))],
)
def test_a_place_of_a_resource(inputs: tuple[str, ...], expected: tuple[int, int]) -> None:
    text = "apiVersion: v1\nkind: Kafka\nspec:\n  listeners: [{port: 1},\n    {name: b, port: 2}]\n"
    wanted = replace(finding(), inputs=inputs)
    assert list(at_paths(text, "m.yaml", [(wanted, of_resource((0,), wanted))])) == [
        (wanted, Place("m.yaml", *expected))
    ]


POD = """\
apiVersion: v1
kind: Pod
metadata: {name: kafka}
spec:
  containers:
    - image: apache/kafka:4.1.1
      name: broker
      args: [x]
      env:
        - {name: KAFKA_LISTENERS, value: "A://:1"}
"""


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        (("listeners",), (10, 35)),
        (("gone", "image"), (6, 7)),
        (("command",), (8, 7)),
        (("gone",), (7, 7)),  # the container's name, wherever it stands
        ((), (7, 7)),
    ],
)
def test_a_place_of_a_container_of_a_pod(
    inputs: tuple[str, ...], expected: tuple[int, int]
) -> None:
    (container,) = read_manifest(read_yaml_documents(POD, "m.yaml")).containers
    wanted = replace(finding(), inputs=inputs)
    assert list(at_paths(POD, "m.yaml", [(wanted, of_container(container, wanted))])) == [
        (wanted, Place("m.yaml", *expected))
    ]
