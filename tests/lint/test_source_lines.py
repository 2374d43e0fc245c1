"""The line of a mistake: its caret, and no secret in it."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.lint.model import Place
from earshot.lint.source_lines import MAX_CHARACTERS, SourceLines, excerpt, masked

NAMES = """
KAFKA_SSL_KEYSTORE_PASSWORD KAFKA_SASL_JAAS_CONFIG KAFKA_LISTENER_NAME_X_PLAIN_SASL_JAAS_CONFIG
KAFKA_CFG_SSL_KEYSTORE_KEY CLIENT_SECRET API_TOKEN AWS_ACCESS_KEY_ID ssl.keystore.password
sasl.jaas.config secretKey credentials
"""


def shown(line: str) -> str:
    return masked([line], 1)


class TestExcerpt:
    @pytest.mark.parametrize(
        ("line", "column", "width", "expected"),
        [
            ("a: b", 4, 100, ["  1 | a: b", "    |    ^"]),
            ("a: b", 0, 100, ["  1 | a: b"]),
            ("a: b", 99, 100, ["  1 | a: b", "    |     ^"]),  # behind the end
            ("\ta:\tb", 5, 100, ["  1 | \ta:\tb", "    | \t  \t^"]),
            ("a\x1b[2Jb", 6, 100, ["  1 | a\\u001b[2Jb", f"    | {' ' * 10}^"]),
            ("", 1, 100, ["  1 |", "    | ^"]),
            # a long line is cut around the column
            (
                f"{'a' * 100}X{'b' * 100}", 101, 47,
                [f"  1 | ...{'a' * 20}X{'b' * 19}...", f"    | {' ' * 23}^"],
            ),
            (f"X{'a' * 98}Y", 1, 27, [f"  1 | X{'a' * 19}...", "    | ^"]),
            (f"X{'a' * 98}Y", 100, 27, [f"  1 | ...{'a' * 19}Y", f"    | {' ' * 22}^"]),
            # no caret below a masked value
            ("KAFKA_PASSWORD: hunter2", 1, 100, ["  1 | KAFKA_PASSWORD: ***", "    | ^"]),
            ("KAFKA_PASSWORD: hunter2", 21, 100, ["  1 | KAFKA_PASSWORD: ***"]),
        ],
    )  # fmt: skip
    def test_a_caret_is_below_the_column(
        self, line: str, column: int, width: int, expected: list[str]
    ) -> None:
        assert excerpt([line], Place("f", 1, column), width) == expected

    def test_the_number_of_the_line(self) -> None:
        assert excerpt(["a: b"] * 120, Place("f", 120, 1), 100) == ["  120 | a: b", "      | ^"]
        for line in (0, 3, 99):
            assert excerpt(["a", "b"], Place("f", line, 1), 100) == []

    @given(
        st.lists(st.characters(codec="ascii", exclude_categories=["C"]), min_size=1, max_size=300),
        st.data(),
    )
    def test_the_caret_points_at_its_character(self, chars: list[str], data: st.DataObject) -> None:
        line = "".join(chars).rstrip()
        if masked([line], 1) != line or not line:
            return
        column = data.draw(st.integers(1, len(line)))
        text, caret = excerpt([line], Place("f", 1, column), 60)
        assert len(text) <= 60 + 6
        assert (text + " ")[caret.index("^")] == line[column - 1]


class TestMasked:
    @pytest.mark.parametrize("name", NAMES.split())
    @pytest.mark.parametrize(
        ("form", "expected"),
        [
            ("  {}: hunter2", "  {}: ***"),
            ("  {}: 'hunter2 two'  # why", "  {}: ***"),
            ("  - {}=hunter2", "  - {}=***"),
            ('  - "{}=hunter2"', '  - "{}=***'),
            ('  "{}": "hunter2"', '  "{}": ***'),
            ("{} = hunter2", "{} = ***"),
            ("{{{}: hunter2, A: b}}", "{{{}: ***"),
            ("  {}: &anchor hunter2", "  {}: ***"),
        ],
    )
    def test_the_value_of_a_name_that_looks_secret(
        self, name: str, form: str, expected: str
    ) -> None:
        assert shown(form.format(name)) == expected.format(name)

    @pytest.mark.parametrize(
        "line",
        [
            "      KAFKA_ADVERTISED_LISTENERS: EXTERNAL://kafka.example.com:9092",
            "      KAFKA_LISTENERS: TOKEN://:9092,SECRET://:9093",
            "listeners=PLAINTEXT://:9092",
            '      - "9092:9092"',
            "      KAFKA_PASSWORD:",
            "KAFKA_PASSWORD=",
            "    image: apache/kafka:4.1.1",
            "# a token",
            "",
            "a" * MAX_CHARACTERS,
        ],
    )
    def test_other_lines_stay(self, line: str) -> None:
        assert shown(line) == line
        assert shown("a" * (MAX_CHARACTERS + 1)) == "***", "a line of data is not shown"

    @pytest.mark.parametrize(
        "line",
        [
            "  url: http://me:hunter2@example.com",
            "  -----BEGIN PRIVATE KEY----- hunter2",
            '  username="me" password="hunter2";',
            '  user_alice="hunter2" user_bob="x";',
            '  user_alice="hunter2" password="x";',
            "  - AccountKey=hunter2",
            "  x: ${KAFKA_PASSWORD:-hunter2}",
            "  KAFKA_OPTS: -Djavax.net.ssl.keyStorePassword=hunter2",
        ],
    )
    def test_a_secret_in_a_value_of_any_name(self, line: str) -> None:
        assert "hunter2" not in shown(line)

    @pytest.mark.parametrize(
        "lines",
        [
            ["KAFKA_SASL_JAAS: |", "  hunter2"],
            ["KAFKA_SASL_JAAS: >-", "  one", "", "  hunter2"],
            ["KAFKA_SASL_JAAS: |", "    # hash", "  one:", "    hunter2"],
            ["KAFKA_SSL_KEY: &k |", "  two: hunter2"],
            ["KAFKA_SSL_KEY:", "  hunter2"],
            ["KAFKA_SSL_KEY: # why", "  hunter2"],
            ["- KAFKA_SSL_KEY=one", "  hunter2"],
            ['- "KAFKA_SSL_KEY=', "  hunter2"],
            ["ssl.keystore.key=one\\", "hunter2"],
            ["ssl.keystore.key=one\\", "two\\", "  hunter2"],
            ["ssl.keystore.key=\\", "hunter2"],
            ['"KAFKA_PASSWORD":', '"hunter2"'],
        ],
    )
    def test_a_value_that_goes_on_in_further_lines(self, lines: list[str]) -> None:
        assert masked(lines, len(lines)).strip() == "***"

    @pytest.mark.parametrize(
        "lines",
        [
            ["token-kafka:", "  ports:"],
            ["token-kafka: &k", "  ports:"],
            ["token-kafka:", "  ports:", "    - 9092:9092"],
            ["secrets:", "  - kafka"],
            ["KAFKA_PASSWORD: x", "KAFKA_LISTENERS: y"],
            ["KAFKA_PASSWORD:", "KAFKA_LISTENERS: y"],
            ["- KAFKA_PASSWORD=x", "- KAFKA_LISTENERS=y"],
            ["# KEY: x", "  a: b"],
            ["ssl.keystore.key=a\\", "b", "listeners=y"],
            ["", "x: y"],
        ],
    )
    def test_a_line_that_is_no_part_of_it_stays(self, lines: list[str]) -> None:
        assert masked(lines, len(lines)) == lines[-1]

    @pytest.mark.timeout(20)
    @pytest.mark.parametrize("unit", ["KEY", "&", "a", "a ", " ", ":", "\\", "KEY ", "a://"])
    def test_no_line_above_takes_long(self, unit: str) -> None:
        masked([unit * 300_000, "  a: b"], 2)

    @given(
        st.sampled_from(NAMES.split()),
        st.sampled_from([": ", "=", " = ", ": '"]),
        st.integers(0, 8),
    )
    def test_no_depth_shows_it(self, name: str, sign: str, depth: int) -> None:
        assert "hunter2" not in shown(f"{' ' * depth}{name}{sign}hunter2")

    @given(st.lists(st.text(max_size=30), min_size=1, max_size=6), st.data())
    def test_any_text_is_masked_or_stays(self, lines: list[str], data: st.DataObject) -> None:
        number = data.draw(st.integers(1, len(lines)))
        text = masked(lines, number)
        assert text.endswith("***") or text == lines[number - 1].rstrip()


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"a\r\nb\x0cc\nd", ("a", "b\x0cc", "d")),  # as editors count them
        (b"a\xff\nb", ("a\ufffd", "b")),
    ],
)
def test_lines_of_a_file(content: bytes, lines: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_bytes(content)
    assert SourceLines(tmp_path)("a.yml") == lines
    assert SourceLines(Path("/"))(str(tmp_path / "a.yml")) == lines


def test_a_file_is_read_once_and_an_unreadable_one_has_no_lines(tmp_path: Path) -> None:
    lines = SourceLines(tmp_path)
    (tmp_path / "a.yml").write_text("a")
    first = lines("a.yml")
    (tmp_path / "a.yml").write_text("b")
    assert lines("a.yml") is first
    os.mkfifo(tmp_path / "pipe.yml")
    assert [lines(name) for name in ("nowhere", "pipe.yml", ".", "\0")] == [(), (), (), ()]


@pytest.mark.parametrize(("text", "number", "shown"), [
    ("env: [{name: A_PASSWORD, value: x}, {name: B, value: y}]", 1,
     "env: [{name: A_PASSWORD, value: ***"),
    ("- name: A_PASSWORD\n  value: x", 2, "  value: ***"),
    ("- value: x\n  name: A_PASSWORD", 1, "- value: ***"),
    ("- name: A_PASSWORD\n  value:", 2, "  value:"),
    ("- name: KAFKA_LISTENERS\n  value: x", 2, "  value: x"),
    ("- name: A_PASSWORD\n- value: x\n  name: B", 2, "- value: x"),
    ("- name: B\n  value: x\n- name: A_PASSWORD\n  value: y", 2, "  value: x"),
    ("- name: B\n  value: x\n- name: A_PASSWORD\n  value: y", 4, "  value: ***"),
])  # fmt: skip
def test_values_of_variables_in_a_manifest(text: str, number: int, shown: str) -> None:
    assert masked(text.split("\n"), number) == shown
