from __future__ import annotations

import pytest
from hypothesis import given

from earshot.errors import EarshotError
from earshot.listeners.properties import (
    Settings,
    property_of,
    read_environment,
    read_properties,
    variable,
    write_environment,
    write_properties,
)
from tests.listeners.clusters import odd_properties


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", {}),
        ("a=1\nb=2\n", {"a": "1", "b": "2"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("# a=1\n! b=2\n  # c=3\n\n \t\n", {}),
        ("a = 1 \n b : 2\n c 3\n d\n", {"a": "1 ", "b": "2", "c": "3", "d": ""}),
        ("a=1\na=2\n", {"a": "2"}),
        ("a==1\nb=:2\n", {"a": "=1", "b": ":2"}),
        ("a=x,\\\n    y,\\\n    z\n", {"a": "x,y,z"}),
        ("a=x\\\\\nb=1\n", {"a": "x\\", "b": "1"}),
        ("# note \\\na=1\n", {"a": "1"}),
        ("a=x\\\n# y\n", {"a": "x# y"}),
        ("a\\ b\\=c=1\n", {"a b=c": "1"}),
        ("a=\\u00e9\\t\\z\n", {"a": "é\tz"}),
        ("a=1\x85b=2\u2028c=3\n", {"a": "1\x85b=2\u2028c=3"}),
        ("a=x\\", {"a": "x"}),
    ],
)
def test_reads_a_file_as_java_does(text: str, values: dict[str, str]) -> None:
    assert read_properties(text) == Settings(values)


def test_reads_notes_from_comments() -> None:
    read = read_properties("#earshot.scopes=INTERNAL:internal\nnode.id=1\n")
    assert read == Settings({"node.id": "1"}, {"scopes": "INTERNAL:internal"})


@given(odd_properties, odd_properties)
def test_a_file_reads_back_as_it_was_written(values: dict[str, str], notes: dict[str, str]) -> None:
    assert read_properties(write_properties(Settings(values, notes))) == Settings(values, notes)


@given(odd_properties)
def test_an_environment_reads_back_as_it_was_written(values: dict[str, str]) -> None:
    settings = Settings(values, {"scopes": "INTERNAL:internal"})
    assert read_environment(write_environment(settings)) == settings


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("node.id", "KAFKA_NODE_ID"),
        ("a_b", "KAFKA_A__B"),
        ("a-b", "KAFKA_A___B"),
        (
            "listener.name.plaintext_host.ssl.keystore.location",
            "KAFKA_LISTENER_NAME_PLAINTEXT__HOST_SSL_KEYSTORE_LOCATION",
        ),
    ],
)
def test_names_the_variable_of_a_property(key: str, name: str) -> None:
    assert variable(key) == name
    assert property_of(name) == key


@pytest.mark.parametrize("key", ["Upper.case", "a..b", "a._b", "a.-b", "a_-b", "heap.opts", "opts"])
def test_refuses_a_key_that_no_variable_can_stand_for(key: str) -> None:
    with pytest.raises(EarshotError, match="mounted properties file"):
        write_environment(Settings({key: "1"}))


def test_leaves_the_image_s_own_variables_alone() -> None:
    variables = {"KAFKA_HEAP_OPTS": "-Xmx1g", "KAFKA_NODE_ID": "1", "PATH": "/bin"}
    assert read_environment(variables) == Settings({"node.id": "1"})
