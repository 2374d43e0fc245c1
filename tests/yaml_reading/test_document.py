from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from earshot.errors import EarshotError
from earshot.yaml_reading.document import (
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_VALUES,
    read_cloud_config,
    read_yaml,
    read_yaml_documents,
    read_yaml_texts,
    yaml_nodes,
    yaml_nodes_of_documents,
)
from earshot.yaml_reading.tags import OverrideValue, Reset, UnknownValue
from tests.raised import raised

Reader = Callable[[str, str], object]
READERS = (read_yaml, read_yaml_texts, read_cloud_config)


def refused(read: Reader, text: str) -> str:
    error = raised(EarshotError, read, text, "x.yaml")
    return str(error)


def doubled(entry: str, levels: int) -> str:
    """A document in which each level repeats the one before it twice."""
    lines = ["a0: &a0 {k: v}"]
    lines += [f"a{i}: &a{i} {entry.format(f'*a{i - 1}')}" for i in range(1, levels)]
    return "\n".join(lines)


BOMBS = {
    "aliases": doubled("[{0}, {0}]", 40),
    "aliases in maps": doubled("{{x: {0}, y: {0}}}", 40),
    "merge keys": doubled("{{<<: [{0}, {0}]}}", 40),
}
DEEP = "is nested more than 64 levels deep"
MANY = "its aliases (*name) repeat more than 100,000 values"


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("name", BOMBS)
def test_what_repeats_without_measure_is_refused(read: Reader, name: str) -> None:
    assert len(BOMBS[name]) < 1500
    assert MANY in refused(read, BOMBS[name])


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    "text",
    [
        "[" * 50_000,
        "{a: " * 50_000,
        "- " * 500 + "x",
        "\n".join(["- &a0 [x]", *(f"- &a{i} [*a{i - 1}]" for i in range(1, 100))]),
        "\n".join(["- &a0 {k: v}", *(f"- &a{i} {{<<: *a{i - 1}}}" for i in range(1, 100))]),
    ],
)
def test_depth_is_refused_whether_written_or_by_aliases(read: Reader, text: str) -> None:
    assert DEEP in refused(read, text)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("text", ["&a [*a]", "&a {x: *a}", "&a {<<: *a}", "- &a {<<: [*a]}"])
def test_an_alias_within_what_it_repeats_is_refused(read: Reader, text: str) -> None:
    assert refused(read, text) == (
        f"x.yaml: line 1, column {text.index('&') + 1}: "
        "an alias (*name) is within the value that it repeats\n"
        "  fix: write it with fewer aliases (*name) and levels, or in several files"
    )


@pytest.mark.parametrize("read", READERS)
def test_size_is_refused(read: Reader) -> None:
    assert refused(read, "x" * (MAX_CHARACTERS + 1)) == (
        "x.yaml: holds 1,048,577 characters\n  allowed: YAML of at most 1,048,576 characters"
    )
    assert "holds more than 100,000 values" in refused(read, "[" + "1," * (MAX_VALUES + 1) + "]")


@pytest.mark.parametrize("text", ["9" * 401, "1" + ":59" * 200_000, "1" + ":59" * 200_000 + ".5"])
def test_a_number_without_end_is_refused_and_a_text_is_not(text: str) -> None:
    message = f"a value of {len(text):,} characters is no text"
    assert message in refused(read_yaml, f"k: {text}")
    assert message in refused(read_cloud_config, f"k: {text}")
    assert read_yaml_texts(f"k: {text}", "x.yaml") == {"k": text}
    assert read_yaml(f"k: '{text}'", "x.yaml") == {"k": text}


@pytest.mark.parametrize("value", ["!hunter2 x", "!e!hunter2 x", "*hunter2", "&hunter2 &hunter2"])
def test_a_password_without_quotes_is_not_shown(value: str) -> None:
    message = refused(read_yaml, f"password: {value}")
    assert "line 1, column" in message and "hunter2" not in message


def test_a_key_that_stands_twice() -> None:
    text = "a: 1\nb: {c: 1, c: 2}\n"
    message = "x.yaml: is no YAML; line 2, column 11: the key 'c' occurs twice"
    assert refused(read_yaml, text).startswith(message)
    assert refused(read_yaml_texts, text).startswith(message)
    assert read_cloud_config(text, "x.yaml") == {"a": 1, "b": {"c": 2}}
    assert read_yaml_texts("a: 1\nb: 2\na: 3", "x.yaml", unique=False) == {"a": "3", "b": "2"}


@pytest.mark.parametrize("read", READERS)
def test_merge_keys_that_override_are_no_repetition(read: Reader) -> None:
    # the map that is merged stands deeper than the one that merges it, and is made later
    text = "base: &b {a: x, c: x}\nin: {deep: &d {<<: *b, a: y}}\ntop: {<<: [*d, *b], c: z}\n"
    document: Any = read(text, "x.yaml")
    assert document["top"] == {"a": "y", "c": "z"}
    assert document["in"] == {"deep": {"a": "y", "c": "x"}}


@pytest.mark.parametrize("read", READERS)
def test_as_deep_and_as_much_as_is_allowed(read: Reader) -> None:
    assert read("[" * MAX_DEPTH + "]" * MAX_DEPTH, "x.yaml") is not None
    assert read("[" + "x," * 50_000 + "]", "x.yaml") == ["x"] * 50_000


def test_scalars_as_each_reader_takes_them() -> None:
    text = "{a: 0, b: 1.10, c: 22:22, d: ~, e: no}"
    assert read_yaml(text, "x") == {"a": 0, "b": 1.1, "c": 1342, "d": None, "e": False}
    assert read_yaml_texts(text, "x") == {"a": "0", "b": "1.10", "c": "22:22", "d": None, "e": "no"}


PIECES = st.sampled_from(
    ["a", "&a ", "*a", "<<: ", ": ", "- ", "[", "]", "{", "}", ", ", "\n", "  ", "? ", "!!int ",
     "!!set ", "!x ", "'", '"', "|\n", ">", "#", "%YAML 1.2\n", "---\n", "...\n", "1:1", "0x", "\t",
     "!!binary ", "!!timestamp 2024-99-99", "\x00", "é", "!!omap ", "!!pairs ", "=", "&b ", "*b"]
)  # fmt: skip


@settings(max_examples=300)
@given(st.lists(PIECES, max_size=40).map("".join) | st.text(max_size=60))
@example("- &A !!int\n- *A")
@example("!!omap [a]")
@example("? [a]\n: b")
@example("!!timestamp x")
@example("!!float x")
@example("!!bool x")
@example("!!binary \udc00")
def test_any_text_is_read_or_refused_in_one_clear_error(text: str) -> None:
    for read in READERS:
        try:
            document = read(text, "x.yaml")
        except EarshotError as error:
            assert str(error).startswith("x.yaml: ")
        else:
            yaml.safe_dump(document)  # a tree without end would not come back


def test_several_merge_keys_in_one_map_are_no_key_that_stands_twice() -> None:
    text = "a: &a {x: one, z: one}\nb: &b {y: two}\nc:\n  <<: *a\n  <<: *b\n  z: own\n"
    for read in (read_yaml, read_yaml_texts):
        document = read(text, "f.yml")
        assert isinstance(document, dict)
        assert document["c"] == {"x": "one", "y": "two", "z": "own"}


def test_a_large_file_of_many_services_that_share_anchors_is_read() -> None:
    shared = ", ".join(f"KAFKA_{number}: v" for number in range(60))
    services = "".join(f"  k{id}:\n    <<: *base\n    hostname: k{id}\n" for id in range(300))
    text = f"x-base: &base\n  image: i\n  environment: {{{shared}}}\nservices:\n{services}"
    document = read_yaml_texts(text, "compose.yml")
    assert isinstance(document, dict)
    assert len(document["services"]) == 300 and len(document["services"]["k7"]["environment"]) == 60


def test_nodes_have_their_places() -> None:
    root = yaml_nodes("a:\n  - &b {c: d}\n  - *b\n", "x.yaml")
    assert isinstance(root, yaml.MappingNode)
    (key, sequence) = root.value[0]
    assert (key.value, key.start_mark.line, key.start_mark.column) == ("a", 0, 0)
    first, second = sequence.value
    assert first is second, "an alias is the node that it stands for"
    assert (first.start_mark.line, first.start_mark.column) == (1, 4)


@pytest.mark.parametrize("text", ["", "# nothing", "---"])
def test_an_empty_document_has_no_node_or_an_empty_one(text: str) -> None:
    node = yaml_nodes(text, "x.yaml")
    assert node is None or node.value == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "x.yaml: is no YAML; line "),
        ("[" * 100, "x.yaml: line 1, column 65: is nested more than 64 levels deep"),
        ("a\x01", "x.yaml: is no YAML ("),
    ],
)
def test_of_what_is_no_yaml_there_are_no_nodes(text: str, said: str) -> None:
    assert str(raised(EarshotError, yaml_nodes, text, "x.yaml")).startswith(said)


@given(st.lists(PIECES, max_size=40).map("".join) | st.text(max_size=60))
def test_any_text_has_nodes_or_is_refused(text: str) -> None:
    try:
        node = yaml_nodes(text, "x.yaml")
    except EarshotError as error:
        assert error.observed
        return
    assert node is None or isinstance(node, yaml.Node)


def documents(text: str) -> list[object]:
    return read_yaml_documents(text, "x.yaml")


@pytest.mark.parametrize(("text", "expected"), [
    ("", []),
    ("# nothing\n", []),
    ("a: 1", [{"a": "1"}]),
    ("---\na: 010\n---\nb: on\n...\n", [{"a": "010"}, {"b": "on"}]),
    ("a: &x {k: v}\n---\n---\n{E:, F: &x g}\n", [{"a": {"k": "v"}}, None, {"E": None, "F": "g"}]),
    ("a: !secret name\nb: !Sub [x]\n", [{"a": "${secret}", "b": "${Sub}"}]),
    ("a: !!python/name:m.t\nb: !<tag:x.y,2000:z> c",
     [{"a": "${python_name_m_t}", "b": "${tag_x_y_2000_z}"}]),
    ("a: {<<: !include f, k: v}", [{"a": {"<<": "${include}", "k": "v"}}]),
    ("a: {<<: [{k: v}, !include f]}", [{"a": {"<<": [{"k": "v"}, "${include}"]}}]),
])  # fmt: skip
def test_documents(text: str, expected: list[object]) -> None:
    assert documents(text) == expected


def test_lenient_texts_keep_the_tags_of_compose() -> None:
    text = "a: !reset null\nb: !override [c]\nd: !Ref e\n"
    tags = read_yaml_texts(text, "x.yaml", lenient=True)
    assert tags == {"a": Reset(), "b": OverrideValue(["c"]), "d": UnknownValue("${Ref}")}
    with pytest.raises(EarshotError, match="a tag"):
        read_yaml_texts(text, "x.yaml")


def test_documents_are_measured_together() -> None:
    half = "\n".join(
        ["a0: &a0 [" + "x," * 500 + "]", *(f"a{i}: [" + "*a0," * 20 + "]" for i in range(1, 6))]
    )
    assert len(documents(half)) == 1
    assert str(raised(EarshotError, documents, f"{half}\n---\n{half}\n")) == (
        "x.yaml: line 8, column 1: with its aliases (*name) it holds more than 100,000 values\n"
        "  fix: write it with fewer aliases (*name) and levels, or in several files"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("---\n" * (MAX_VALUES + 1), "holds more than 100,000 values"),
        ("a: 1\n---\na: 1\na: 2\n", "line 4, column 1: the key 'a' occurs twice"),
        ("a: &x 1\n---\nb: *x\n", "is no YAML; line 3"),  # an alias ends with its document
        *((f"a: b\n---\n{bomb}\n", MANY) for bomb in BOMBS.values()),
    ],
)
def test_documents_that_are_refused(text: str, message: str) -> None:
    assert message in str(raised(EarshotError, documents, text))


def test_a_key_twice_in_one_document_may_be_read() -> None:
    assert read_yaml_documents("a: 1\na: 2\n", "x.yaml", unique=False) == [{"a": "2"}]


def test_nodes_of_documents_have_their_places() -> None:
    nodes = yaml_nodes_of_documents("# c\n---\na: 1\n---\n---\nb: 2\n", "x.yaml")
    assert [node.start_mark.line for node in nodes] == [2, 4, 5]
    assert yaml_nodes("{E:, F:}", "x.yaml") is not None, "as compose reads it"


@given(st.text(alphabet="ab:-{}[]&*<! \n'\"|>#%", max_size=80))
def test_documents_of_any_text_are_read_or_refused(text: str) -> None:
    try:
        values = documents(text)
        assert len(yaml_nodes_of_documents(text, "x.yaml")) == len(values)
    except EarshotError:
        pass
