from __future__ import annotations

from collections import UserDict
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.errors import EarshotError
from earshot.sources.substitution import Variables, read_env_file

VALUES = {"A": "one", "EMPTY": "", "B_2": "two"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("$A", "one"),
        ("${A}", "one"),
        ("$A-$B_2.", "one-two."),
        ("$$A", "$A"),
        ("$${A}", "${A}"),
        ("$$$A", "$one"),
        ("${NO:-y}", "y"),
        ("${NO-y}", "y"),
        ("${EMPTY:-y}", "y"),
        ("${EMPTY-y}", ""),
        ("${A:-y}", "one"),
        ("${A:+z}", "z"),
        ("${NO:+z}", ""),
        ("${EMPTY+z}", "z"),
        ("${EMPTY:+z}", ""),
        ("${A:?why}", "one"),
        ("${EMPTY?why}", ""),
        ("${NO:-${ALSO:-$A}}x", "onex"),
        ("${NO:-a:b-c?d}", "a:b-c?d"),
        ("BOB://${A}:${PORT:-9092}", "BOB://one:9092"),
        ("${NO:-}", ""),
    ],
)
def test_forms(text: str, expected: str) -> None:
    assert Variables(VALUES).substitute(text) == expected


FORMS = "allowed: $X, ${X}, ${X:-default}, ${X:?message}, ${X:+other}, and $$ for a dollar sign"


def set_it(name: str) -> str:
    return f"fix: set {name} in the environment, in .env, or in a file for --env-file"


@pytest.mark.parametrize(
    ("text", "observed", "rest"),
    [
        ("${NO:?give it}", "the variable NO is required, and not set (give it)", set_it("NO")),
        ("${EMPTY:?}", "the variable EMPTY is required, and not set", set_it("EMPTY")),
        ("$1", "has a $ that no variable's name follows (at character 2)", FORMS),
        ("a$", "has a $ that no variable's name follows (at character 3)", FORMS),
        ("${A", "has a ${ that is not closed (at character 4)", FORMS),
        ("${A:-b", "has a ${ that is not closed (at character 7)", FORMS),
        ("${A!b}", "has a form that compose does not know (at character 4)", FORMS),
        ("${NO:-" * 30, "is nested too deeply (at character 127)", FORMS),
    ],
)
def test_a_text_that_compose_refuses_is_refused(text: str, observed: str, rest: str) -> None:
    # without a place, the variable or the text is named
    variable = observed.partition("variable ")[2].partition(" ")[0]
    unplaced = f"variable {variable}" if variable else "text"
    for place, shown_place in (("f.yml: services.k", "f.yml: services.k"), ("", unplaced)):
        with pytest.raises(EarshotError) as caught:
            Variables(VALUES).substitute(text, place)
        assert str(caught.value) == f"{shown_place}: {observed}\n  {rest}"


@given(st.text(alphabet="abAB09 :/,._-${}?+", max_size=40))
def test_any_text_is_replaced_or_refused(text: str) -> None:
    try:
        result = Variables(VALUES).substitute(text)
    except EarshotError:
        return
    assert isinstance(result, str)
    if "$" not in text:
        assert result == text


@given(st.text(max_size=40))
def test_an_escaped_text_stays(text: str) -> None:
    assert Variables({}).substitute(text.replace("$", "$$")) == text


@given(
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True),
    st.text(alphabet="abc:/-.9", max_size=10),
    st.none() | st.text(alphabet="xyz", max_size=3),
)
def test_defaults_follow_their_rule(name: str, default: str, value: str | None) -> None:
    variables = Variables({} if value is None else {name: value})
    assert variables.substitute(f"${{{name}:-{default}}}") == (value or default)
    assert variables.substitute(f"${{{name}-{default}}}") == (default if value is None else value)


@pytest.mark.parametrize(
    ("text", "expected", "missing"),
    [
        ("$NO", "${NO}", ["NO"]),
        ("a-${NO}:1", "a-${NO}:1", ["NO"]),
        ("${NO:?give it}", "${NO}", ["NO"]),
        ("${EMPTY:?}", "", []),
        ("${EMPTY?}", "", []),
        ("${NO:-y}", "y", []),
        ("${NO:-$ALSO}", "${ALSO}", ["ALSO"]),
        ("${NO:+y}", "", []),
        ("$A$$NO", "one$NO", []),
        ("${NO:?}$GONE$A", "${NO}${GONE}one", ["NO", "GONE"]),
    ],
)
def test_an_unset_variable_may_be_kept(text: str, expected: str, missing: list[str]) -> None:
    variables = Variables(VALUES, keep=True)
    assert variables.substitute(text) == expected
    assert list(variables.missing) == missing


def test_missing_variables_are_those_that_count() -> None:
    variables = Variables(VALUES)
    text = "$GONE|${ALSO}|${A:-$UNUSED}|${NO:-$NESTED}|${NO:+$OFF}"
    assert variables.substitute(text) == "||one||"
    assert list(variables.missing) == ["GONE", "ALSO", "NESTED"]


@given(st.text(alphabet="abAB09 :/,._-${}?+", max_size=40))
def test_what_is_known_is_the_same_where_the_rest_stays(text: str) -> None:
    strict, lenient = Variables(VALUES), Variables(VALUES, keep=True)
    try:
        expected = strict.substitute(text)
    except EarshotError:
        return
    result = lenient.substitute(text)
    assert lenient.missing == strict.missing
    if not strict.missing:
        assert result == expected


class Environment(UserDict[str, str]):
    """Counts how often all of it is read."""

    readings = 0

    def __iter__(self) -> Iterator[str]:
        self.readings += 1
        return super().__iter__()


def test_the_environment_is_read_once_for_all_lines_of_a_file() -> None:
    environment = Environment({"A": "of the environment"})
    text = "".join(f"V{i}=${{V{i - 1}}}$A\n" for i in range(1, 100))
    values = read_env_file(f"V0=x\nA=y\n{text}", ".env", Variables(environment))
    assert values["V99"] == "x" + "of the environment" * 99
    assert environment.readings == 1


def test_a_quote_may_close_many_lines_later() -> None:
    between = "\n".join(f"line {i} 'of' many" for i in range(100))
    values = read_env_file(f'A="first\n{between}\nlast" # end\nB=2', ".env", Variables({}))
    assert values == {"A": f"first\n{between}\nlast", "B": "2"}
