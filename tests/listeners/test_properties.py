import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earshot.errors import EarshotError
from earshot.listeners import render
from earshot.listeners.model import ClusterPlan
from earshot.listeners.properties import (
    NodeSettings,
    malformed_keys,
    property_of,
    property_of_3,
    read_environment,
    read_properties,
    variable,
    without_references,
    write_environment,
    write_properties,
)
from tests.listeners.clusters import any_properties, odd_properties, plans
from tests.raised import raised


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
        ("a=\\\\\\\n\\\\\nb=1\n", {"a": "\\\\", "b": "1"}),
        ("\\\n# a=1\nb=1\\\n\n", {"b": "1"}),
        ("a\\ b\\=c=1\n", {"a b=c": "1"}),
        ("a=\\u00e9\\t\\z\n", {"a": "é\tz"}),
        ("a=1\x85b=2\u2028c=3\n", {"a": "1\x85b=2\u2028c=3"}),
        ("a=x\\", {"a": "x"}),
        ("a=\\ud83d\\ude00\\ud83d\n", {"a": "😀\ufffd"}),
    ],
)
def test_reads_a_file_as_java_does(text: str, values: dict[str, str]) -> None:
    assert read_properties(text) == NodeSettings(values)


def test_reads_notes_from_comments() -> None:
    read = read_properties("#earshot.scopes=INTERNAL:internal\nnode.id=1\n")
    assert read == NodeSettings({"node.id": "1"}, {"scopes": "INTERNAL:internal"})


@given(any_properties, any_properties)
def test_a_file_reads_back_as_it_was_written(values: dict[str, str], notes: dict[str, str]) -> None:
    text = write_properties(NodeSettings(values, notes))
    assert text.isascii()
    assert read_properties(text) == NodeSettings(values, notes)


@given(odd_properties)
def test_plain_text_is_written_as_it_is(values: dict[str, str]) -> None:
    expected = "".join(f"{key}={value}\n" for key, value in values.items())
    assert write_properties(NodeSettings(values)) == (expected or "\n")


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("log.dirs", "/home/jürgen/a b", "log.dirs=/home/j\\u00fcrgen/a b"),
        ("log.dirs", "/x#1=2:3/!", "log.dirs=/x#1=2:3/!"),
        ("log.dirs", "C:\\new", "log.dirs=C:\\\\new"),
        ("log.dirs", "/\U0001f442", "log.dirs=/\\ud83d\\udc42"),
        ("a b=c:d#e!f", " x\ty\n", "a\\ b\\=c\\:d\\#e\\!f=\\ x\\ty\\n"),
    ],
)
def test_escapes_what_java_reads_otherwise(key: str, value: str, line: str) -> None:
    assert write_properties(NodeSettings({key: value})) == f"{line}\n"


anything = st.text(st.characters(codec="utf-8"))


@given(st.dictionaries(anything, anything))
def test_what_is_written_holds_no_escape_that_java_refuses(values: dict[str, str]) -> None:
    assert malformed_keys(write_properties(NodeSettings(values))) == []


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("# C:\\users\na=\\\\users\nb=\\u00e9\n", []),
        ("a=C:\\users\nb=\\u00e\nc=\\\\\\u\n", ["a", "b", "c"]),
    ],
)
def test_escapes_that_java_refuses(text: str, keys: list[str]) -> None:
    assert malformed_keys(text) == keys


@given(odd_properties)
def test_an_environment_reads_back_as_it_was_written(values: dict[str, str]) -> None:
    settings = NodeSettings(values, {"scopes": "INTERNAL:internal"})
    assert read_environment(write_environment(settings)) == settings


@pytest.mark.parametrize(("key", "name"), [
    ("node.id", "KAFKA_NODE_ID"),
    ("a_b", "KAFKA_A__B"),
    ("a-b", "KAFKA_A___B"),
    ("listener.name.plaintext_host.ssl.keystore.location",
     "KAFKA_LISTENER_NAME_PLAINTEXT__HOST_SSL_KEYSTORE_LOCATION"),
])  # fmt: skip
def test_names_the_variable_of_a_property(key: str, name: str) -> None:
    assert variable(key) == name
    assert property_of(name) == key


@pytest.mark.parametrize("key", ["Upper.case", "a..b", "a._b", "a.-b", "a_-b", "heap.opts", "opts"])
def test_refuses_a_key_that_no_variable_can_stand_for(key: str) -> None:
    with pytest.raises(EarshotError, match="mounted properties file"):
        write_environment(NodeSettings({key: "1"}))


def test_what_an_image_makes_of_a_variable_decides() -> None:
    settings = NodeSettings({"my.kafka.key": "1"})
    assert write_environment(settings) == {"KAFKA_MY_KAFKA_KEY": "1"}
    with pytest.raises(EarshotError, match=r"would arrive as 'my[.]key' through"):
        write_environment(settings, property_of_3)


@pytest.mark.parametrize("value", ["a\\b", "é", "a\nb", " a"])
def test_refuses_a_value_that_no_variable_can_carry(value: str) -> None:
    assert str(raised(EarshotError, write_environment, NodeSettings({"a.b": value}))) == (
        f"broker property a.b: found {value!a}, which would arrive changed through the "
        "variable KAFKA_A_B: images copy it into a properties file without an escape\n"
        "  allowed: printable ASCII without backslashes and leading blanks\n"
        "  fix: choose a value without these characters"
    )


def test_leaves_the_image_s_own_variables_alone() -> None:
    variables = {"KAFKA_HEAP_OPTS": "-Xmx1g", "KAFKA_NODE_ID": "1", "PATH": "/bin"}
    assert read_environment(variables) == NodeSettings({"node.id": "1"})


def test_values_that_only_a_node_can_read_are_left_out() -> None:
    provider = "config.providers.file.class=a.FileConfigProvider\n"
    referring = "ssl.key.password=${file:/run/keys:password}\nsasl.x=before ${vault:a:b:c} after\n"
    kept = "#earshot.kafka_version=4.1.1\nnode.id=1\nlog.dirs=${HOME}\n"
    assert without_references(kept + f"config.providers=file\n{provider}{referring}") == kept


@settings(max_examples=30)
@given(plans())
def test_file_and_environment_say_the_same(cluster: ClusterPlan) -> None:
    for node in cluster.nodes:
        file = read_properties(render.server_properties(cluster, node))
        variables = read_environment(render.environment(cluster, node))
        assert dict(file.values) == render.settings(cluster, node)
        assert file.notes == variables.notes
        differ = {key for key, value in file.values.items() if variables.values.get(key) != value}
        # images refuse the variable on a controller alone
        assert differ <= (set() if node.is_broker else {"listeners", "advertised.listeners"})
        assert ("advertised.listeners" in variables.values) == node.is_broker
