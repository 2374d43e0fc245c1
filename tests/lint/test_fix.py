"""Lines written into a file: where they come, and where nothing is certain."""

from pathlib import Path

import pytest
from hypothesis import given, settings

from earshot.lint.compose_files import check_compose
from earshot.lint.fix import difference, fix_text, with_lines
from earshot.lint.model import FileOptions
from earshot.rules.rule import LineToWrite
from tests.checks.test_remedies import deployments

FILE = """\
# ours
services:
  kafka:   # the broker
    image: 'apache/kafka:4.1.1'
    ports: ["9092:9092", 9093:9093]
    environment:
      KAFKA_NODE_ID: 1   # first
      "KAFKA_LISTENERS": 'A://:1,B://:2'  # bound

      KAFKA_ADVERTISED_LISTENERS: A://a:1
      FOLDED: >-
        a
        b
      VARIABLE: A://${HOST}:1
      ANCHOR: &anchor x
  ui:
    image: ui
    command: [run, --bootstrap-server, "kafka:9092"]
    environment:
      - BROKERS=kafka:9092   # where
      - "OTHER=1"
"""


def one(line: LineToWrite, text: str = FILE) -> tuple[str, str]:
    """The line that goes and the one that comes; all others stay."""
    fixed_text = with_lines(text, "a.yml", [line])
    assert fixed_text is not None
    old_lines, new_lines = text.split("\n"), fixed_text.split("\n")
    gone = [text_line for text_line in old_lines if text_line not in new_lines]
    come = [text_line for text_line in new_lines if text_line not in old_lines]
    assert len(new_lines) - len(old_lines) == len(come) - len(gone)
    return "\n".join(gone), "\n".join(come)


@pytest.mark.parametrize(("line", "gone", "come"), [
    (LineToWrite("kafka", "KAFKA_LISTENERS", "A://:3"),
     "      \"KAFKA_LISTENERS\": 'A://:1,B://:2'  # bound",
     "      \"KAFKA_LISTENERS\": 'A://:3'  # bound"),
    (LineToWrite("kafka", "KAFKA_NODE_ID", "2"), "      KAFKA_NODE_ID: 1   # first",
     '      KAFKA_NODE_ID: "2"   # first'),
    (LineToWrite("kafka", "KAFKA_ADVERTISED_LISTENERS", "A://a:1,B://b:2"),
     "      KAFKA_ADVERTISED_LISTENERS: A://a:1",
     "      KAFKA_ADVERTISED_LISTENERS: A://a:1,B://b:2"),
    (LineToWrite("kafka", "NEW", "A:B"), "", "      NEW: A:B"),
    (LineToWrite("ui", "NEW", "a:1"), "", "      - NEW=a:1"),
    (LineToWrite("ui", "BROKERS", "kafka:1"), "      - BROKERS=kafka:9092   # where",
     "      - BROKERS=kafka:1   # where"),
    (LineToWrite("ui", "OTHER", "2"), '      - "OTHER=1"', '      - "OTHER=2"'),
    (LineToWrite("kafka", "ports", "9094:9092", "9092:9092"), '    ports: ["9092:9092", 9093:9093]',
     '    ports: ["9094:9092", 9093:9093]'),
    (LineToWrite("kafka", "ports", "9093:1", "9093:9093"), '    ports: ["9092:9092", 9093:9093]',
     '    ports: ["9092:9092", "9093:1"]'),
    (LineToWrite("ui", "command", "kafka:29092", "kafka:9092"),
     '    command: [run, --bootstrap-server, "kafka:9092"]',
     '    command: [run, --bootstrap-server, "kafka:29092"]'),
])  # fmt: skip
def test_a_line_at_its_place(line: LineToWrite, gone: str, come: str) -> None:
    assert one(line) == (gone, come)


@pytest.mark.parametrize(
    "line",
    [
        LineToWrite("kafka", "FOLDED", "x"),
        LineToWrite("kafka", "VARIABLE", "x"),
        LineToWrite("kafka", "ANCHOR", "x"),
        LineToWrite("kafka", "KAFKA_LISTENERS", "a'b"),
        LineToWrite("kafka", "ports", "1:1", "7:7"),
        LineToWrite("kafka", "command", "b:1", "a:1"),
        LineToWrite("ui", "command", "b:1", "kafka:909"),
        LineToWrite("ui", "ports", "1:1", "9092:9092"),
        LineToWrite("gone", "A", "x"),
        LineToWrite("kafka", "listeners", "A://:1", "B://:1"),
    ],
)
def test_nothing_is_written_where_the_place_is_not_certain(line: LineToWrite) -> None:
    assert with_lines(FILE, "a.yml", [line]) is None


@pytest.mark.parametrize(("text", "line"), [
    *((text, LineToWrite("k", "A", "x")) for text in (
        "x: &e {A: 1}\nservices: {k: {image: i, environment: *e}}\n",
        "x: &e\n  A: 1\nservices:\n  k:\n    environment: *e\n  l:\n    environment: *e\n",
        "services: {k: &k {environment: {A: b}}, l: *k}\n",
        "services:\n  k:\n    environment:\n      A: b\n      A: c\n",
        "services:\n  k:\n    image: i\n",
        "services:\n  k:\r    environment:\n      A: b\n",
        "services:\n  k:\n    environment: B\n",
        "services:\n  k:\n    environment: {B: 1}\n",
        "services:\n  k:\n    environment: [B=1]\n",
        "services:\n  k:\n    environment:\n      - A=b\n      - A=c\n      - B=1\n",
        "services:\n  k:\n    environment:\n      - B=1\n      - |\n        A=c\n",
        "services: []\n",
        "a: [\n",
    )),
    *((f"services:\n  k:\n    ports: {ports}\n", LineToWrite("k", "ports", "2:1", "1:1"))
      for ports in ("'1:1'", "['1:1', '1:1']", "[{target: 1}]", "[['1:1']]")),
    # a variable that is not there has nothing to be replaced
    *((f"services:\n  k:\n    environment:\n      {entry}\n", LineToWrite("k", "A", "x", "y"))
      for entry in ("B: 1", "- B=1")),
])  # fmt: skip
def test_nothing_is_written_into_what_is_shared_doubled_or_not_there(
    text: str, line: LineToWrite
) -> None:
    assert with_lines(text, "a.yml", [line]) is None


def test_what_a_merge_key_brings_is_set_in_the_service_itself() -> None:
    text = "x: &e\n  A: 1\nservices:\n  k:\n    environment:\n      <<: *e\n      B: 2\n"
    assert one(LineToWrite("k", "A", "x"), text) == ("", "      A: x")


def test_the_ends_of_lines_stay() -> None:
    text = FILE.replace("\n", "\r\n")
    fixed_text = with_lines(
        text, "a.yml", [LineToWrite("kafka", "NEW", "x"), LineToWrite("ui", "NEW", "y")]
    )
    assert (
        fixed_text is not None
        and fixed_text.count("\r\n") == fixed_text.count("\n") == text.count("\n") + 2
    )
    bare = "services:\n  k:\n    environment:\n      A: b"
    assert with_lines(bare, "a.yml", [LineToWrite("k", "B", "c")]) == f"{bare}\n      B: c"


def test_a_diff_shows_no_secret() -> None:
    """This includes a secret beside a change, in a comment."""
    content = "A: hunter2\nB: 1 # --password hunter2\nC: hunter2\n"
    assert difference(content, content.replace("1", "4"), "a.yml") == (
        "--- a.yml\n+++ a.yml (fixed)\n@@ -2 +2 @@\n"
        "-B: 1 # --password ***\n+B: 4 # --password ***\n"
    )


@settings(max_examples=20, deadline=None)
@given(text=deployments())
def test_what_is_fixed_is_gone_and_the_rest_stays(text: str) -> None:
    old_report = check_compose(text, Path("a.yml"), {}, FileOptions())
    fixed = fix_text(
        text, "a.yml", lambda content: check_compose(content, Path("a.yml"), {}, FileOptions())
    )
    new_report = check_compose(fixed.text, Path("a.yml"), {}, FileOptions())
    assert len(new_report.mistakes) <= len(old_report.mistakes) - len(fixed.fixed_mistakes)
    assert (fixed.text == text) == (not fixed.fixed_mistakes)
    observations = {mistake.finding.observed for mistake in new_report.mistakes}
    assert observations <= {mistake.finding.observed for mistake in old_report.mistakes}


def test_two_lines_for_one_place_are_not_written() -> None:
    lines = [LineToWrite("kafka", "KAFKA_NODE_ID", value) for value in ("2", "3")]
    assert with_lines(FILE, "a.yml", lines) is None
