"""The text for a reader, beyond its goldens."""

from dataclasses import replace

from earshot.lint.model import FileReport, Place, where
from earshot.lint.text import text, unchecked
from earshot.report.terminal import Terminal
from earshot.rules.rule import LineToWrite
from tests.lint import samples
from tests.lint.samples import ERROR, IGNORED, outcome


def checked(name: str, *reasons: str) -> FileReport:
    return FileReport(name, "Compose file", unchecked=reasons)


def test_a_reason_stands_once_with_its_files() -> None:
    reports = [checked("a", "one", "two"), checked("b", "one"), checked("c", "three")]
    assert unchecked(reports) == ["one (a, b)", "two (a)", "three (c)"]


def test_many_files_are_counted() -> None:
    assert unchecked([checked(name, "one") for name in "abc"]) == ["one (a, b, c)"]
    assert unchecked([checked(name, "one") for name in "abcd"]) == ["one (4 files, a the first)"]


def test_a_file_without_mistakes_is_counted_only() -> None:
    assert text(outcome(checked("a"), checked("b"))) == "2 files checked: 0 errors, 0 warnings\n"


def test_what_is_ignored_is_one_line() -> None:
    result = outcome(FileReport("compose.yml", "Compose file", (IGNORED,)))
    assert text(result) == (
        "compose.yml (Compose file)\n\n"
        "compose.yml:8:9: KL006 ignored: a proxy publishes it\n\n"
        "1 file checked: 0 errors, 0 warnings, 1 ignored\n"
    )


def test_colours_are_only_where_they_can_be_shown() -> None:
    assert "\x1b[1;31merror\x1b[0m KL003" in text(samples.full(), Terminal(colour=True))
    assert "\x1b" not in text(samples.full(), Terminal())


def test_a_narrow_terminal_wraps_and_cuts() -> None:
    for line in text(samples.full(), Terminal(width=60)).splitlines():
        # names and addresses stay whole, to be copied
        assert len(line) <= 60 or "://" in line or "KL0" in line or ";" in line


def test_a_line_that_is_not_there_any_more_is_left_out() -> None:
    place = replace(ERROR.place, line=99)
    output = text(
        outcome(FileReport("compose.yml", "Compose file", (replace(ERROR, place=place),)))
    )
    assert "compose.yml:99:46: error KL003" in output and "|" not in output


def test_each_line_to_write_has_its_own() -> None:
    lines = (
        LineToWrite("kafka", "KAFKA_LISTENERS", "A://:1"),
        LineToWrite("ui", "command", "a:1", "b:1"),
    )
    written = replace(ERROR, finding=replace(ERROR.finding, lines=lines))
    output = text(outcome(FileReport("compose.yml", "Compose file", (written,))))
    assert (
        "  fix       advertise localhost\n"
        "  write     kafka: KAFKA_LISTENERS: A://:1\n"
        "            ui: command: a:1 in place of b:1\n"
        "  source    "
    ) in output
    later = replace(written, place=Place("compose.yml", 3, 7))
    other = replace(later, finding=replace(later.finding, observed="advertises 0.0.0.0 too"))
    output = text(outcome(FileReport("compose.yml", "Compose file", (written, other))))
    assert output.count("ui: command") == 1
    assert f"\n  write     the lines for {where(written)}, above\n" in output
    assert written.finding.fix == (
        "advertise localhost; "
        "write kafka: KAFKA_LISTENERS: A://:1; ui: command: a:1 in place of b:1"
    )


def test_what_reads_the_same_of_several_containers_is_one_block() -> None:
    places = [
        (letter, Place("compose.yml", line, 7)) for letter, line in (("a", 2), ("b", 3), ("c", 4))
    ]
    alike = [
        replace(ERROR, finding=replace(ERROR.finding, container=name), place=place)
        for name, place in places
    ]
    different = replace(
        alike[2], finding=replace(alike[2].finding, observed="advertises 0.0.0.0 too")
    )
    output = text(
        outcome(FileReport("compose.yml", "Compose file", (alike[0], different, alike[1])))
    )
    assert output.splitlines()[2:7] == [
        "compose.yml:2:7: error KL003, container a, broker 1, listener EXTERNAL (scope host)",
        "compose.yml:3:7: error KL003, container b, broker 1, listener EXTERNAL (scope host)",
        "  2 |   kafka:",
        "    |       ^",
        "  observed  advertises 0.0.0.0, which is no address of anybody",
    ]
    assert output.count("  observed  ") == 2
    assert output.endswith("1 file checked: 3 errors, 0 warnings\n")
