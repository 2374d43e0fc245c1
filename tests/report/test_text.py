"""The text report on different terminals."""

import pytest

from earshot.report.terminal import Terminal
from earshot.report.text import text
from earshot.validation.result import Delivery
from tests.report import samples


def matrix(output: str) -> list[str]:
    lines = output.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("from "))
    return lines[start + 1 : [*lines, ""].index("", start)]


def test_a_log_is_ascii_with_columns_below_their_brokers() -> None:
    output = text(samples.dead_broker())
    assert output.isascii()
    head, *rows = matrix(output)
    assert rows[0] == "  INTERNAL  internal  ok 1.8 ms  FAIL tcp  ok 2.2 ms"
    for row in rows:
        assert row[head.index("broker 2") :].startswith("FAIL tcp")
        assert row[head.index("broker 3") :].startswith("ok 2.2 ms")


def test_colours_are_those_of_verdicts_and_change_no_letter() -> None:
    plain = colours = text(samples.dead_broker(), Terminal(signs=True, colour=True))
    for code in ("\x1b[32m", "\x1b[1;31m", "\x1b[2m", "\x1b[33m", "\x1b[1m", "\x1b[0m"):
        plain = plain.replace(code, "")
    assert plain == text(samples.dead_broker(), Terminal(signs=True))
    assert matrix(colours.replace("\x1b[1mfrom", "from"))[1] == (
        "  INTERNAL  internal  \x1b[32m✔ 1.8 ms\x1b[0m  \x1b[1;31m✘ tcp\x1b[0m"
        "     \x1b[32m✔ 2.2 ms\x1b[0m"
    )


def test_ways_of_different_lengths_line_up() -> None:
    sound_delivery = Delivery(
        written_through="A", read_through="B", broker=1, acknowledged=1, read=1
    )
    lossy_delivery = sound_delivery.model_copy(
        update={"read_through": "LONGER", "lost": 4, "examples": ("a", "b", "c")}
    )
    fourth_example = lossy_delivery.model_copy(
        update={"written_through": "C", "examples": ("a", "b", "c", "d")}
    )
    replication = [samples.copied(*pair) for pair in ((1, 2), (1, 3), (2, 1))]
    output = text(
        samples.report(
            [], delivery=[sound_delivery, lossy_delivery, fourth_example], replication=replication
        )
    )
    _, deliveries, copies, *_ = output.split("\n\n")
    assert deliveries.splitlines() == [
        "delivery (written through -> read through)",
        "  A -> B       ok    1 acknowledged, 1 read, 0 lost",
        "  A -> LONGER  FAIL  1 acknowledged, 1 read, 4 lost",
        *("    a", "    b", "    c"),
        "  C -> LONGER  FAIL  1 acknowledged, 1 read, 4 lost",
        *("    a", "    b", "    c"),
        "    and 1 more, see --format json",
    ]
    assert copies.splitlines() == [
        "replication (leader -> followers), through INTERNAL",
        "  broker 1 -> 2, 3  ok",
        "  broker 2 -> 1     ok",
    ]


def test_a_matrix_that_is_too_wide_is_turned() -> None:
    brokers = range(1, 31)
    cells = [samples.cell(listener, id) for listener in samples.LISTENERS for id in brokers]
    rows = matrix(text(samples.report(cells)))
    assert rows[0].split() == ["INTERNAL", "EXTERNAL"]
    assert rows[7].startswith("  broker 7   ok")
    assert (len(rows), max(map(len, rows)) <= 100) == (31, True)
    report = samples.all_pass()
    rows = matrix(text(report))
    width = max(map(len, rows))
    assert matrix(text(report, Terminal(width=width))) == rows
    assert matrix(text(report, Terminal(width=width - 1)))[0].split() == ["INTERNAL", "EXTERNAL"]


def test_missing_cells_are_shown() -> None:
    cells = [samples.cell("INTERNAL", 1), samples.cell("INTERNAL", 2), samples.cell("EXTERNAL", 1)]
    assert matrix(text(samples.report(cells)))[2].split()[-2:] == ["not", "there"]
    output = text(samples.report([], vantages=[]))
    assert output.startswith("earshot doctor: INCONCLUSIVE, no cell was checked")


def test_no_line_of_a_block_is_wider_than_the_terminal() -> None:
    output = text(samples.executor_fails(), Terminal(width=60))
    block = output[output.index("  stage") :]
    assert max(map(len, block.splitlines())) <= 60


@pytest.mark.parametrize("name", ["all_pass", "vantages", "inconclusive"])
def test_the_head_fits_a_terminal_of_80_columns(name: str) -> None:
    head, _, remaining_text = text(samples.ALL[name](), Terminal(width=80)).partition("\n\n")
    assert remaining_text
    assert max(map(len, head.splitlines())) <= 80
