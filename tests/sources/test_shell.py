"""The words of a script's commands are those that the shell would pass."""

import pytest

from earshot.sources.shell import HereDocument, read_script
from earshot.sources.shell_syntax import Syntax, syntax_of
from earshot.sources.values import COMPUTED


def words(text: str, syntax: Syntax = Syntax.POSIX) -> list[tuple[str, ...]]:
    return [command.words for command in read_script(text, syntax).commands]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b; c && d | e", [("a", "b"), ("c",), ("d",), ("e",)]),
        ("a \\\n  -x y\nb", [("a", "-x", "y"), ("b",)]),
        ("a 'b c' \"d $E\" f\\ g", [("a", "b c", "d ${E}", "f g")]),
        ("a # no more\n#b\nc#d", [("a",), ("c#d",)]),
        # a comment ends a command that a backslash continues
        ("a \\\n # b\n c", [("a",), ("c",)]),
        ("a >out 2>&1 <in", [("a",)]),
        ("if a; then sudo -E b; else ! c; fi", [("a",), ("b",), ("c",)]),
        ("env -i A=1 b", [("b",)]),
        ("X=1 Y=2 a", [("a",)]),
        ("a '' b", [("a", "", "b")]),
        ("a 'open", [("a", "open")]),
        ("timeout -k 5 10 sudo -u root -- nice -n 5 a; exec a", [("a",), ("a",)]),
        ("sudo bash -lc 'b; c'", [("bash", "-lc", "b; c"), ("b",), ("c",)]),
        ("eval 'a b'", [("eval", "a b"), ("a", "b")]),
        ("((x = 1<<2))\na $'b' $\"c\"", [("a", "b", "c")]),
        (
            '${A%%"}"} $(: ")" # don\'t (\n)\na',
            [("${computed}", "${computed}"), (":", ")"), ("a",)],
        ),
        (
            "a `b \\`c\\`` d",
            [("a", "${computed}", "d"), ("b", "${computed}"), ("c",)],
        ),
        ("", []),
    ],
)
def test_words_are_split_as_by_the_shell(text: str, expected: list[tuple[str, ...]]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("P=1\na $P ${P}2", ("a", "1", "12")),
        ("export H=h P=1\nA=$H:$P\na $A", ("a", "h:1")),
        ("A=${A}\na ${A:-9}", ("a", "9")),
        ("declare A=1; readonly B=2; typeset C=3; local D=4\na $A $B $C $D", ("a", *"1234")),
        ("a ${P:-9} ${P-8} ${1:-7}", ("a", "9", "8", "7")),
        ("a ${P:-${Q:-9}}", ("a", "9")),
        ("a " + "${P:-" * 2000, ("a", COMPUTED)),
        ("P=${P:-9}\na $P", ("a", "9")),
        ("P=1\na ${P:-9}", ("a", "1")),
        ('O="-p 1:1 -d"\na $O "$O"', ("a", "-p", "1:1", "-d", "-p 1:1 -d")),
        ("a $P ${P%%:*} $1 `b`", ("a", "${P}", "${computed}", "${computed}", "${computed}")),
        ("P=$(b)\na $P", ("a", "${P}")),
        # two values: which one counts depends on the run
        ("P=1\nP=2\na $P", ("a", "${P}")),
        ("P=1\nP=1\na $P", ("a", "1")),
        ("P=$P\na $P", ("a", "${P}")),
    ],
)
def test_variables_have_the_value_that_the_script_assigns(
    text: str, expected: tuple[str, ...]
) -> None:
    assert expected in words(text)


@pytest.mark.parametrize("form", ["ID=$({})", "ID=`{}`", 'ID="$({})"'])
def test_commands_within_others_are_read_with_their_lines(form: str) -> None:
    text = form.format("docker run \\\n x")
    commands = read_script(f"a\n{text}\nb").commands
    assert [(command.words, command.line) for command in commands] == [
        (("a",), 1),
        (("docker", "run", "x"), 2),
        (("b",), 4),
    ]


def test_a_command_in_a_loop_is_marked() -> None:
    text = "a\nfor i in 1 2; do\n  b\ndone\nwhile c; do d; done\ne"
    repeated = [command.words[0] for command in read_script(text).commands if command.is_repeated]
    assert {"b", "d"} <= {*repeated}
    assert not {"a", "e"} & {*repeated}


def test_a_here_document_is_no_command() -> None:
    script = read_script("cat <<EOF >f\nx: $Y\n  EOF\nEOF\ncat <<-'E' | b\n\tz\n\tE\nc")
    assert [command.words[0] for command in script.commands] == ["cat", "cat", "b", "c"]
    assert script.documents == (HereDocument("x: $Y\n  EOF", 2), HereDocument("\tz", 6))


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.bat", "@rem no\nset P=1\nrun ^\n -p %P%:2 ^\n x", ("run", "-p", "1:2", "x")),
        ("a.ps1", "$P = 1\nrun `\n -p ${P}:2 `\n x", ("run", "-p", "1:2", "x")),
        ("a.ps1", "run -e A=$env:B x", ("run", "-e", "A=${B}", "x")),
        ("a.ps1", "\ufeffrun x", ("run", "x")),
    ],
)  # fmt: skip
def test_scripts_of_windows_are_read(name: str, text: str, expected: tuple[str, ...]) -> None:
    assert words(text, syntax_of(name))[-1] == expected


@pytest.mark.parametrize("text", ["$(" * 5000, "${" * 5000, "a <<E\n" * 5000, '"' * 5001, "\\"])
def test_a_broken_script_is_read_to_its_end(text: str) -> None:
    read_script(text)


@pytest.mark.timeout(30)  # a second or two; backticks took minutes while reading was quadratic
@pytest.mark.parametrize("piece", ["`", "A", '"' + "A" * 800_000, "<", "\\\n", "$(" * 300 + "A"])
def test_a_long_word_is_read_in_linear_time(piece: str) -> None:
    read_script("a " + piece * (800_000 // len(piece)))
