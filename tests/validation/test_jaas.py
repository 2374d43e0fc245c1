"""Login modules as Kafka reads them: whatever a writer may write comes back whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.errors import EarshotError
from earshot.validation.jaas import LoginModule, read_jaas
from tests.raised import raised
from tests.validation.jaas_texts import modules, written

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def options(text: str) -> dict[str, str]:
    (module,) = read_jaas(f"{SCRAM} required {text};")
    assert module.name == SCRAM
    return dict(module.options)


@pytest.mark.parametrize(("text", "expected"), [
    ("", {}),
    ('a="x"', {"a": "x"}),
    ("a='x' b=\"y\"", {"a": "x", "b": "y"}),
    ("a = x b\n=\ny", {"a": "x", "b": "y"}),
    ("a=\"x;y='z'\"", {"a": "x;y='z'"}),
    (r'a="\"" b="\\" c="\\\""', {"a": '"', "b": "\\", "c": '\\"'}),
    (r"a='it\'s' b='say \"x\"'", {"a": "it's", "b": 'say "x"'}),
    (r'a="\a\b\f\n\r\t\v\q"', {"a": "\a\b\f\n\r\t\vq"}),
    (r'a="\0" b="\101" c="\377" d="\477" e="\18"',
     {"a": "\0", "b": "A", "c": "ÿ", "d": "'7", "e": "\x018"}),
    ('a="x" // the rest; b="y"\nc="z"', {"a": "x", "c": "z"}),
    ('a=/* not "x" */"y"', {"a": "y"}),
    ('a=x/ one slash will do\nb="y"', {"a": "x", "b": "y"}),
    ('a="http://x/*y*/"', {"a": "http://x/*y*/"}),
    ("a=true-ish.1 b_$=ümlaut", {"a": "true-ish.1", "b_$": "ümlaut"}),
    ('a="1" a="2"', {"a": "2"}),
    ('a="unended\n', {"a": "unended"}),
    ('a="over\\\nlines"', {"a": "over\nlines"}),
])  # fmt: skip
def test_options(text: str, expected: dict[str, str]) -> None:
    assert options(text) == expected


@pytest.mark.parametrize(
    ("text", "observed"),
    [
        ("", "has no login module"),
        ("// nothing", "has no login module"),
        ("Module", "begins with something other than a login module's class and `required`"),
        ("Module perhaps;", "begins with something other than"),
        ("'' required;", "begins with something other than"),
        ("; required;", "begins with something other than"),
        ("Module required", "does not end in a semicolon"),
        ('Module required a="hush"', "does not end in a semicolon"),
        ('Module required a="hush;', "does not end in a semicolon"),
        ("Module required a;", "has something other than OPTION=VALUE before its semicolon"),
        ("Module required a=1234;", "has something other than OPTION=VALUE"),
        ("Module required a=-hush;", "has something other than OPTION=VALUE"),
        ('Module required a="hu"sh";', "has something other than OPTION=VALUE"),
        ("Module required a=;", "has something other than OPTION=VALUE"),
    ],
)
def test_each_fault_has_its_message_without_a_value(text: str, observed: str) -> None:
    error = raised(EarshotError, read_jaas, text)
    assert observed in error.observed
    assert "hush" not in str(error)


def test_several_modules() -> None:
    found = read_jaas('A required a="x"; B OPTIONAL b=y;')
    assert found == (LoginModule("A", {"a": "x"}), LoginModule("B", {"b": "y"}))
    assert "x" not in repr(found)


@given(st.data())
def test_what_was_written_is_read_back(data: st.DataObject) -> None:
    held = data.draw(modules)
    text = "".join(data.draw(written(name, items)) for name, items in held)
    assert read_jaas(text) == tuple(LoginModule(name, items) for name, items in held)


@given(st.text(st.sampled_from("abn017 \n\r\t\\\"'/*=;-._$ü\x85€"), max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        assert read_jaas("M required " + text)[0].name == "M"
    except EarshotError as error:
        assert error.object == "client property sasl.jaas.config"
