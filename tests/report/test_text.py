"""The text report on different terminals."""

import pytest

from earshot.report.terminal import Terminal
from earshot.report.text import text
from earshot.validation.result import Delivery, Replication
from earshot.validation.terms import Verdict
from tests.report import samples


def matrix(output: str) -> list[str]:
    lines = output.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("from "))
    return lines[start + 1 : [*lines, ""].index("", start)]


def test_a_log_gets_plain_ascii() -> None:
    output = text(samples.dead_broker())
    assert output.isascii()
    assert matrix(output)[1] == "  INTERNAL  internal  ok 1.8 ms  FAIL tcp  ok 2.2 ms"


def test_columns_line_up_under_their_broker() -> None:
    head, *rows = matrix(text(samples.dead_broker()))
    for row in rows:
        assert row[head.index("broker 2") :].startswith("FAIL tcp")
        assert row[head.index("broker 3") :].startswith("ok 2.2 ms")


def test_colour_changes_no_letter_and_no_column() -> None:
    signs = text(samples.executor_fails(), Terminal(signs=True))
    colours = text(samples.executor_fails(), Terminal(signs=True, colour=True))
    plain = colours
    for code in ("\x1b[32m", "\x1b[1;31m", "\x1b[2m", "\x1b[33m", "\x1b[1m", "\x1b[0m"):
        plain = plain.replace(code, "")
    assert plain == signs
    assert "\x1b[1;31m" in colours


def test_each_cell_has_the_colour_of_its_verdict() -> None:
    terminal = Terminal(colour=True)
    rows = matrix(text(samples.dead_broker(), terminal).replace("\x1b[1mfrom", "from"))
    assert rows[1] == (
        "  INTERNAL  internal  \x1b[32mok 1.8 ms\x1b[0m  \x1b[1;31mFAIL tcp\x1b[0m"
        "  \x1b[32mok 2.2 ms\x1b[0m"
    )


def test_ways_of_different_lengths_line_up() -> None:
    good = Delivery(written_through="A", read_through="B", broker=1, acknowledged=1, read=1)
    odd = good.model_copy(update={"read_through": "LONGER", "lost": 4, "examples": ("a", "b", "c")})
    more = odd.model_copy(update={"written_through": "C", "examples": ("a", "b", "c", "d")})
    copies = [
        Replication(leader=leader, follower=it, listener="INTERNAL", verdict=Verdict.PASS)
        for leader, followers in ((1, (2, 3)), (2, (1,)))
        for it in followers
    ]
    output = text(samples.report([], delivery=[good, odd, more], replication=copies))
    _, delivery, replication, *_ = output.split("\n\n")
    assert delivery.splitlines() == [
        "delivery (written through -> read through)",
        "  A -> B       ok    1 acknowledged, 1 read, 0 lost",
        "  A -> LONGER  FAIL  1 acknowledged, 1 read, 4 lost",
        *("    a", "    b", "    c"),
        "  C -> LONGER  FAIL  1 acknowledged, 1 read, 4 lost",
        *("    a", "    b", "    c"),
        "    and 1 more, see --format json",
    ]
    assert replication.splitlines() == [
        "replication (leader -> followers), through INTERNAL",
        "  broker 1 -> 2, 3  ok",
        "  broker 2 -> 1     ok",
    ]


def test_many_brokers_stand_one_below_the_other() -> None:
    cells = [
        samples.cell(listener, broker) for listener in samples.LISTENERS for broker in range(1, 31)
    ]
    rows = matrix(text(samples.report(cells)))
    assert rows[0].split() == ["INTERNAL", "EXTERNAL"]
    assert rows[7].startswith("  broker 7   ok")
    assert len(rows) == 31
    assert max(map(len, rows)) <= 100


def test_a_matrix_is_turned_where_it_does_not_fit() -> None:
    report = samples.all_pass()
    rows = matrix(text(report))
    fits = max(map(len, rows))
    assert matrix(text(report, Terminal(width=fits))) == rows
    turned = matrix(text(report, Terminal(width=fits - 1)))
    assert turned[0].split() == ["INTERNAL", "EXTERNAL"]


def test_a_broker_without_the_listener_is_said_to_lack_it() -> None:
    cells = [samples.cell("INTERNAL", 1), samples.cell("INTERNAL", 2), samples.cell("EXTERNAL", 1)]
    assert matrix(text(samples.report(cells)))[2].split()[-2:] == ["not", "there"]


def test_nothing_looked_at_is_no_success() -> None:
    output = text(samples.report([], vantages=[]))
    assert output.startswith("earshot doctor: INCONCLUSIVE, no cell was checked")


def test_no_line_of_a_block_is_wider_than_the_terminal() -> None:
    output = text(samples.executor_fails(), Terminal(width=60))
    block = output[output.index("  stage") :]
    assert max(map(len, block.splitlines())) <= 60


class Stream:
    """Double of a stream: a terminal, or not."""

    def __init__(self, tty: bool, encoding: str = "utf-8") -> None:
        self.tty = tty
        self.encoding = encoding

    def isatty(self) -> bool:
        return self.tty

    def fileno(self) -> int:
        raise OSError("no file behind it")


@pytest.mark.parametrize(
    ("stream", "variables", "expected"),
    [
        (Stream(False), {}, Terminal()),
        (Stream(True), {"TERM": "dumb"}, Terminal()),
        (Stream(True), {}, Terminal(colour=True, signs=True)),
        (Stream(True), {"NO_COLOR": "1"}, Terminal(signs=True)),
        (Stream(True, "ascii"), {}, Terminal(colour=True)),
    ],
)
def test_what_a_stream_can_show(
    stream: Stream, variables: dict[str, str], expected: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert Terminal.of(stream) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["all_pass", "vantages", "inconclusive"])
def test_the_head_fits_a_terminal_of_80_columns(name: str) -> None:
    head, _, rest = text(samples.ALL[name](), Terminal(width=80)).partition("\n\n")
    assert rest
    assert max(map(len, head.splitlines())) <= 80
