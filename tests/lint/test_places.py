"""The place of a finding: line and column, from 1."""

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.lint.model import Place
from earshot.lint.places import at_paths, in_files, in_properties, of_container, of_resource
from earshot.sources.kubernetes import read_manifest
from earshot.sources.pod_variables import Keys
from earshot.yaml_reading.document import read_yaml_documents
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
    expected = replace(finding(), container=container, inputs=inputs)
    ((placed, where),) = in_files([(text, "c.yml")], [expected])
    assert placed is expected and where.file == "c.yml"
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
        ("", ("image",), (3, 1)),  # of all services
    ],
)
def test_a_place_in_a_compose_file(
    container: str, inputs: tuple[str, ...], expected: tuple[int, int]
) -> None:
    assert place(container, *inputs) == expected


@pytest.mark.parametrize(("text", "container", "key", "expected"), [
    # a service comes before one whose container has this name
    ("services:\n  a: {container_name: b}\n  b: {image: x}\n", "b", "", (3, 3)),
    # the oldest format
    ("k:\n  image: apache/kafka\n", "k", "image", (2, 3)),
    # merged keys come after others
    ("x: &x {image: a}\nservices:\n  k:\n    image: b\n    <<: [*x]\n", "k", "image", (4, 5)),
    # the last of equal keys
    ("services:\n  k:\n    image: a\n    image: b\n", "k", "image", (4, 5)),
    *((f"services:\n  k:\n    environment: {environment}\n", "k", "listeners", (2, 3))
      for environment in ("", "[]", "{}", "text", "[[a]]", "[{a: b}]", "{[a]: b}")),
    *(((f"x: &x {{CLUSTER_ID: a}}\ny: &y {{CLUSTER_ID: a}}\n"
        f"services:\n  k:\n    environment: {environment}\n"), "k", "CLUSTER_ID", expected)
      for environment, expected in (
        ("{<<: *x, CLUSTER_ID: b}", (5, 27)), ("{CLUSTER_ID: b, <<: *x}", (5, 19)),
        ("{<<: [*x, *y]}", (1, 8)), ("{<<: [*y, *x]}", (2, 8)),
        ("[CLUSTER_ID=a, CLUSTER_ID=b]", (5, 33)),
    )),
])  # fmt: skip
def test_a_place_in_other_compose_files(
    text: str, container: str, key: str, expected: tuple[int, int]
) -> None:
    assert place(container, *filter(None, [key]), text=text) == expected


def test_findings_keep_their_order_and_none_needs_no_file() -> None:
    findings = [replace(finding(), container=name) for name in ("listed", "kafka")]
    assert [where.line for _, where in in_files([(TEXT, "c.yml")], findings)] == [11, 4]
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
    listeners_finding = replace(finding(), inputs=("listeners",))
    assert in_properties(text, "s.properties", listeners_finding) == Place(
        "s.properties", *expected
    )


@given(st.text(max_size=60))
def test_any_properties_have_a_place_or_none(text: str) -> None:
    where = in_properties(text, "s.properties", replace(finding(), inputs=("listeners", "a")))
    assert where.line <= len(text.splitlines()) and bool(where.line) == bool(where.column)


def place_at(text: str, paths: Iterable[Keys], *inputs: str) -> tuple[int, int]:
    """The place of a finding with these paths, in a document called m.yaml."""
    expected = replace(finding(), inputs=inputs)
    ((placed, where),) = at_paths(text, "m.yaml", [(expected, paths)])
    assert placed is expected and where.file == "m.yaml"
    return where.line, where.column


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ((0, "spec", "listeners", 1), (4, 7)),
        ((0, "spec", "listeners", 2), (0, 0)),
        ((0, "spec", "gone", 0), (0, 0)),  # and not the first document
        ((0, "spec", "listeners", 1, "gone", 0), (0, 0)),
    ],
)
def test_a_place_in_a_document(path: Keys, expected: tuple[int, int]) -> None:
    text = "spec:\n  listeners:\n    - {name: a}\n    - {name: b}\n"
    assert place_at(text, [path]) == expected


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [(("spec.listeners[1].port",), (5, 15)), ((), (2, 1)), (("spec.gone",), (2, 1))],
)
def test_a_place_of_a_resource(inputs: tuple[str, ...], expected: tuple[int, int]) -> None:
    text = "apiVersion: v1\nkind: Kafka\nspec:\n  listeners: [{port: 1},\n    {name: b, port: 2}]\n"
    assert place_at(text, of_resource((0,), replace(finding(), inputs=inputs)), *inputs) == expected


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
        (("gone",), (7, 7)),  # the container's name, wherever it is
        ((), (7, 7)),
    ],
)
def test_a_place_of_a_container_of_a_pod(
    inputs: tuple[str, ...], expected: tuple[int, int]
) -> None:
    (container,) = read_manifest(read_yaml_documents(POD, "m.yaml")).containers
    paths = of_container(container, replace(finding(), inputs=inputs))
    assert place_at(POD, paths, *inputs) == expected
