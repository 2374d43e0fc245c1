"""Blocks and values of Terraform's language are read as far as their text shows them."""

import time

import pytest

from earshot.sources.hcl import Value, evaluate, read_blocks, shown
from earshot.sources.values import COMPUTED

VALUES: dict[str, Value] = {
    "var.port": "9092",
    "var.long": "x" * 40_000,
    "local.env": {"A": "1", "B": "2"},
    "local.list": ["x", "y"],
}


def resolve(path: tuple[str, ...]) -> Value:
    return VALUES.get(".".join(path))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"a:${var.port}"', "a:9092"),
        ('"a:${var.none}-${1 + 1}"', "a:${var_none}-${computed}"),
        (r'"$${A}\n\"%%{x}"', '${A}\n"%{x}'),
        ('"${"${var.port}"}" # comment', "9092"),
        ("var.port", "9092"),
        ("tostring(var.port)", "9092"),
        ("var.port + 1", None),
        ('var.a ? "b" : "c"', None),
        ("null", None),
        ('[1, true, // comment\n "a,]", var.none,]', ["1", "true", "a,]", None]),
        ('{ a = "1", "b-c" : 2\n d = [] }', {"a": "1", "b-c": "2", "d": []}),
        ('[for k, v in local.env : "${k}=${v}"]', ["A=1", "B=2"]),
        ("[for x in local.list : x]", ["x", "y"]),
        ('[for k, v in local.env : k if v != "1"]', None),
        ("{for k, v in local.env : k => v}", None),
        ("<<EOF\n a ${var.port}\nEOF", " a 9092\n"),
        ("<<-EOF\n    a\n      b \\n\n    EOF", "a\n  b \\n\n"),
        ('concat(["a"], var.b)', None),
        ('"' * 70_000, None),
        ('"${var.long}${var.long}"', COMPUTED),
    ],
    ids=lambda value: str(value)[:40],
)
def test_an_expression_has_its_value_or_is_unknown(text: str, expected: Value) -> None:
    assert evaluate(text, resolve) == expected


def test_what_is_not_known_stays_as_a_variable() -> None:
    assert shown("var.a.b", resolve) == "${var_a_b}"
    assert shown("f(1)", resolve) == "${computed}"


TEXT = """\
# comment {
resource "a" "b" {
  x = "}" /* { */
  y = {
    z = 1
  }
  w = <<-EOT
    } "
  EOT
  inner { v = 1 }
  dynamic "inner" {
    content {
    }
  }
}
locals { u = [1,
  2] }
"""


def test_blocks_have_their_attributes_and_lines() -> None:
    resource, local_values = read_blocks(TEXT).blocks
    assert (resource.type, resource.labels) == ("resource", ("a", "b"))
    assert (resource.line, resource.last_line) == (2, 15)
    assert {name: one.line for name, one in resource.attributes.items()} == {"x": 3, "y": 4, "w": 7}
    assert [(one.type, one.labels) for one in resource.blocks] == [
        ("inner", ()),
        ("dynamic", ("inner",)),
    ]
    assert local_values.attributes["u"].text == "[1,\n  2]"


@pytest.mark.parametrize(
    "part", ['"${', "a {", "[", "a = <<A\n", "/*", "a ", "a = {", "$", 'x = "a${b', '("${[']
)
def test_a_broken_file_takes_linear_time(part: str) -> None:
    start = time.process_time()
    text = "a = " + part * (200_000 // len(part))
    for expression in read_blocks(text).attributes.values():
        evaluate(expression.text, resolve)
    assert time.process_time() - start < 10
