from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.errors import EarshotError
from earshot.sources.substitution import Variables, read_env_file, read_raw_env_file


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("A=b", {"A": "b"}),
        ("  export A = b ", {"A": "b"}),
        ("A=", {"A": ""}),
        ("A", {}),
        ("KNOWN", {"KNOWN": "k"}),
        ("A\nKNOWN\nB=1", {"KNOWN": "k", "B": "1"}),
        ("A: b", {"A": "b"}),
        ("A=b # c", {"A": "b"}),
        ("A=b#c", {"A": "b#c"}),
        ("A=# c", {"A": ""}),
        ("# A=b", {}),
        ("", {}),
        ("A=1\n\n \t\nB=2", {"A": "1", "B": "2"}),
        ('A="b # c" # d', {"A": "b # c"}),
        (r'A="b\n\"c\" \$KNOWN"', {"A": 'b\n"c" $KNOWN'}),
        ("A='$KNOWN # x'", {"A": "$KNOWN # x"}),
        ("A=$KNOWN-${NO:-x}", {"A": "k-x"}),
        ('A="${KNOWN}"', {"A": "k"}),
        ("A=1\nB=$A", {"A": "1", "B": "1"}),
        ("KNOWN=file\nB=$KNOWN", {"KNOWN": "file", "B": "k"}),  # the environment goes first
        ('A="one\ntwo"\nB=c', {"A": "one\ntwo", "B": "c"}),
        ("A=x=y", {"A": "x=y"}),
        ("A='b' c\nB=d", {"A": "'b' c", "B": "d"}),
        ('A="b\\" c" d\nB=e', {"A": '"b\\" c" d', "B": "e"}),
        ("\ufeffA=b", {"A": "b"}),  # a byte order mark of Windows
    ],
)
def test_lines(line: str, expected: dict[str, str]) -> None:
    assert read_env_file(line, ".env", Variables({"KNOWN": "k"})) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A=1\n1B=c", ".env, line 2: is no assignment"),
        ('A="b', ".env, line 1: has a quote that is not closed"),
        ("A=${B", ".env, line 1: has a ${ that is not closed"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(text: str, message: str) -> None:
    with pytest.raises(EarshotError, match="line") as caught:
        read_env_file(text, ".env", Variables({}))
    assert str(caught.value).startswith(message)


@given(st.from_regex(r"[A-Z_]{1,8}", fullmatch=True), st.text(alphabet="ab c#:/$,", max_size=20))
def test_single_quotes_keep_everything(name: str, value: str) -> None:
    assert read_env_file(f"{name}='{value}'", ".env", Variables({})) == {name: value}


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        assert isinstance(read_env_file(text, ".env", Variables({})), dict)
    except EarshotError as error:
        assert str(error).startswith(".env, line ")


def test_unset_variables_are_kept_and_missing_if_unknown() -> None:
    variables = Variables({"SET": "s"}, keep=True)
    values = read_env_file("A=x$B\nC\nSET\nD=$A-${SET}${E:-e}", "k.env", variables)
    assert values == {"A": "x${B}", "C": "${C}", "SET": "s", "D": "x${B}-se"}
    assert list(variables.missing) == ["B", "C"]


def test_a_raw_file_has_unchanged_text_in_one_form() -> None:
    text = "\ufeff# c\n\n A=' $x # y \nB=\"\nKNOWN\nC\nD="
    values = {"A": "' $x # y ", "B": '"', "KNOWN": "k", "D": ""}
    assert read_raw_env_file(text, "k.env", Variables({"KNOWN": "k"})) == values
    for line in ("=b", "A B=c", "export A=b"):
        with pytest.raises(EarshotError) as caught:
            read_raw_env_file(f"OK=1\n{line}", "k.env", Variables({}))
        error = "k.env, line 2: is no assignment\n  allowed: NAME=value"
        assert str(caught.value).startswith(error)
