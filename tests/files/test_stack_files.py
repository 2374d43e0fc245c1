"""A stack's own file, or its template's."""

from pathlib import Path

import pytest

from earshot.files.stack_files import own_or_templates


@pytest.mark.parametrize(
    ("stack", "expected"),
    [
        ("local", "local.json"),
        ("local-anything", "local.json"),
        ("local-any-thing", "local.json"),
        ("aws-prod", "aws-prod.json"),
        ("aws-prod-eu", "aws-prod.json"),
        ("aws", None),
        ("localhost", None),
        ("prod-local", None),
    ],
)
def test_the_longest_beginning_that_has_a_file(
    tmp_path: Path, stack: str, expected: str | None
) -> None:
    for name in ("local", "aws-prod"):
        (tmp_path / f"{name}.json").write_text("{}")
    file = own_or_templates(stack, tmp_path, "{}.json")
    assert file == (tmp_path / expected if expected else None)


def test_a_broken_link_is_found_and_not_replaced_by_the_templates_file(tmp_path: Path) -> None:
    (tmp_path / "local.json").write_text("{}")
    (link := tmp_path / "local-mine.json").symlink_to("missing.json")
    assert own_or_templates("local-mine", tmp_path, "{}.json") == link
