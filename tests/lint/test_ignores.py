"""What is ignored, by comments and by options."""

from collections.abc import Sequence
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.errors import EarshotError
from earshot.lint.ignores import NO_REASON, rules_named, with_comments, with_rules
from earshot.lint.model import FileReport, Mistake
from earshot.rules.evaluate import RULES
from tests.lint.samples import mistake
from tests.raised import raised

TODAY = date(2026, 12, 1)
IDS = [rule.id for rule in RULES]
KNOWN = ", ".join(IDS)


def linted(*mistakes: Mistake, unchecked: tuple[str, ...] = ()) -> FileReport:
    return FileReport("compose.yml", "Compose file", mistakes, unchecked)


def reason(lines: Sequence[str], line: int, rule: str = "KL006", file: str = "compose.yml") -> str:
    """Why a mistake on ``line`` is ignored."""
    report = FileReport(file, "a file", (mistake(rule, line, file=file),))
    return with_comments(report, lambda _: lines, TODAY).mistakes[0].ignored


class TestComments:
    @pytest.mark.parametrize(
        ("line", "expected"),
        [
            ("a: b # earshot: ignore=KL006 a proxy publishes it", "a proxy publishes it"),
            ("a: b # earshot: ignore=KL006", NO_REASON),
            ("a: b # earshot: ignore=KL006   ", NO_REASON),
            ("a: b #earshot:ignore=KL006 why", "why"),
            ("a: b # earshot: ignore= kl006 why", "why"),
            ("a: b # earshot: ignore=KL014,KL006 why", "why"),
            ("a: b # earshot: ignore=KL014 , KL006 why so", "why so"),
            ("a: b # they said # earshot: ignore=KL006 why", "why"),
            ("\ta: b\t#\tearshot:\tignore=KL006\twhy", "why"),
            ("a: b # earshot: ignore=KL014 why", ""),
            ("a: b# earshot: ignore=KL006 why", ""),
            ("a: b # ignore=KL006 why", ""),
            ("a: b # earshot: KL006 why", ""),
            ("a: b", ""),
        ],
    )
    def test_on_the_line_itself(self, line: str, expected: str) -> None:
        assert reason([line], 1) == expected

    @pytest.mark.parametrize(
        ("comment", "ignored", "expired"),
        [
            ("until=2026-12-01 why", "why (until 2026-12-01)", ""),
            ("until=2026-11-30 why", "", "was ignored until 2026-11-30: why"),
            ("until=2026-11-30", "", f"was ignored until 2026-11-30: {NO_REASON}"),
            ("why until=2026-11-30", "why until=2026-11-30", ""),
        ],
    )
    def test_until_a_day(self, comment: str, ignored: str, expired: str) -> None:
        lines = [f"a: b # earshot: ignore=KL006 {comment}"]
        report = with_comments(linted(mistake("KL006", 1)), lambda _: lines, TODAY)
        assert (report.mistakes[0].ignored, report.mistakes[0].expired) == (ignored, expired)

    @pytest.mark.parametrize("day", ["", "soon", "2027-02-30", "20270131", "2027-01-31,"])
    def test_an_invalid_day_is_refused(self, day: str) -> None:
        with pytest.raises(EarshotError, match="is not a day"):
            reason([f"a: b # earshot: ignore=KL006 until={day} why"], 1)

    @pytest.mark.parametrize(
        ("text", "line", "expected"),
        [
            ("  # earshot: ignore=KL006 why\na: b", 2, "why"),
            # several right above
            ("# earshot: ignore=KL006 why\n# another\n# earshot: ignore=KL014\na: b", 4, "why"),
            ("# earshot: ignore=KL014 why\n# another\n# earshot: ignore=KL006\na: b", 4, NO_REASON),
            # not from further above
            ("# earshot: ignore=KL006 why\n\na: b", 3, ""),
            ("# earshot: ignore=KL006 why\nc: d\na: b", 3, ""),
            # a comment beside a value belongs to its line only
            ("a: b # earshot: ignore=KL006 why\nc: d", 1, "why"),
            ("a: b # earshot: ignore=KL006 why\nc: d", 2, ""),
            *(("a: b # earshot: ignore=KL006 why", line, "") for line in (0, 2, 99)),
            # the nearer one of two
            ("# earshot: ignore=KL006 far\na: b # earshot: ignore=KL006 near", 2, "near"),
        ],
    )
    def test_on_other_lines(self, text: str, line: int, expected: str) -> None:
        assert reason(text.split("\n"), line) == expected

    def test_of_properties_only_above(self) -> None:
        lines = ["# earshot: ignore=KL006 why", "a=b", "c=d # earshot: ignore=KL006 why"]
        assert reason(lines, 2, file="server.properties") == "why"
        assert reason(lines, 3, file="server.properties") == ""  # it is part of the value

    def test_a_mistake_in_another_file_has_its_comments_there(self) -> None:
        files = {"compose.yml": ["x"], "k.env": ["A=b # earshot: ignore=KL003 why"]}
        report = with_comments(
            linted(mistake(line=1), mistake(line=1, file="k.env")), lambda file: files[file], TODAY
        )
        assert [entry.ignored for entry in report.mistakes] == ["", "why"]

    def test_an_earlier_reason_stays(self) -> None:
        once = with_comments(
            linted(mistake(line=1)), lambda _: ["# earshot: ignore=KL003 a"], TODAY
        )
        lines = ["x # earshot: ignore=KL003 b"]
        assert with_comments(once, lambda _: lines, TODAY).mistakes[0].ignored == "a"

    def test_an_unknown_id_is_an_error_with_its_line(self) -> None:
        lines = ["a: b", "c: d # earshot: ignore=KL006,KL999 why"]
        assert str(raised(EarshotError, with_comments, linted(), lambda _: lines, TODAY)) == (
            "compose.yml, line 2, # earshot: ignore=KL006,KL999: there is no rule KL999\n"
            f"  allowed: {KNOWN}"
        )

    @given(st.lists(st.text(max_size=20).map(lambda text: text.replace("earshot", "")), max_size=9))
    def test_other_text_ignores_nothing(self, lines: list[str]) -> None:
        report = linted(*(mistake(line=line) for line in range(10)))
        assert with_comments(report, lambda _: lines, TODAY) == report

    @given(
        st.lists(st.sampled_from(IDS), min_size=1, max_size=4, unique=True),
        st.from_regex(r"[a-z][a-z ,.:#]{0,20}[a-z]", fullmatch=True),
    )
    def test_each_id_gets_the_reason(self, ids: list[str], why: str) -> None:
        lines = [f"# earshot: ignore={','.join(ids)} {why}", "a: b"]
        assert {rule: reason(lines, 2, rule) for rule in IDS} == {
            rule: why if rule in ids else "" for rule in IDS
        }


class TestOptions:
    @pytest.mark.parametrize(
        ("texts", "rules"),
        [
            (["KL006,KL014"], {"KL006", "KL014"}),
            (["KL006", "KL014"], {"KL006", "KL014"}),
            (["kl006 , KL014", "KL006"], {"KL006", "KL014"}),
            ([], set()),
        ],
    )
    def test_ids_are_joined_or_repeated(self, texts: list[str], rules: set[str]) -> None:
        assert rules_named(texts, "--select") == rules

    @pytest.mark.parametrize(
        ("text", "unknown"),
        [("KL999", "KL999"), ("KL006,nope,abc", "ABC, NOPE"), ("", "''"), ("KL006,", "''")],
    )
    def test_unknown_ids_are_named_with_the_known(self, text: str, unknown: str) -> None:
        error = raised(EarshotError, rules_named, [text], "--ignore")
        assert str(error) == f"--ignore: there is no rule {unknown}\n  allowed: {KNOWN}"

    def test_unchecked_rules_are_those_that_count(self) -> None:
        report = linted(unchecked=("KL011: one", "KL012: other", "KLUE: text", "text"))
        assert with_rules(report, (), ()) == report
        assert with_rules(report, {"KL012"}, ()).unchecked == ("KL012: other", "KLUE: text", "text")
        assert with_rules(report, (), {"KL012"}).unchecked == ("KL011: one", "KLUE: text", "text")

    @given(st.sets(st.sampled_from(IDS)), st.sets(st.sampled_from(IDS)))
    def test_selected_rules_count_unless_they_are_ignored(
        self, select: set[str], ignore: set[str]
    ) -> None:
        mistakes = [mistake(id) for id in IDS]
        counted = [item for item in mistakes if item.finding.rule in (select or set(IDS)) - ignore]
        assert with_rules(linted(*mistakes), select, ignore).mistakes == tuple(counted)
