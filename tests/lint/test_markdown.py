"""The Markdown, beyond its goldens: nothing in it acts."""

from hypothesis import given
from hypothesis import strategies as st

from earshot.lint.markdown import markdown
from earshot.lint.model import FileReport, Mistake
from tests.lint import samples
from tests.lint.samples import ERROR, IGNORED, WARNING, outcome


def lines(*mistakes: Mistake) -> list[str]:
    return markdown(outcome(FileReport("compose.yml", "Compose file", mistakes))).splitlines()


def test_the_mark_of_an_error_is_a_cross() -> None:
    """The other marks are in the goldens."""
    assert lines(ERROR)[0][2] == "\N{CROSS MARK}"


def test_a_file_with_ignored_mistakes_has_no_table() -> None:
    assert lines(IGNORED)[2:] == [
        "## compose.yml (Compose file)",
        "",
        "- 8 KL006 ignored: a proxy publishes it",
    ]


@given(st.text(max_size=40))
def test_no_text_breaks_its_row(text: str) -> None:
    finding = samples.finding(observed=text)
    rows = [line for line in lines(Mistake(finding, ERROR.place), WARNING) if line[:1] == "|"]
    assert len(rows) == 4
    for row in rows:
        assert row.replace("\\\\", "").replace("\\|", "").count("|") == 8
