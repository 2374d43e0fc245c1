"""The picture of the rooms: drawn from the code, without what a longer way implies."""

from __future__ import annotations

from toolchain.architecture import essential, mermaid, picture, room
from toolchain.paths import ROOT


def test_a_module_is_in_its_room() -> None:
    assert room("earshot.rules.kl004_unique_address") == "rules"
    assert room("earshot.sockets") == "sockets"
    assert room("earshot_pulumi.local.process") == "earshot_pulumi"
    assert room("earshot") == "earshot"


def test_an_arrow_that_a_longer_way_implies_is_left_out() -> None:
    found = {("a", "b"), ("b", "c"), ("a", "c"), ("a", "d")}
    assert essential(found) == {("a", "b"), ("b", "c"), ("a", "d")}
    assert essential({("a", "b")}) == {("a", "b")}


def test_a_circle_is_drawn_and_has_an_end() -> None:
    circle = {("a", "b"), ("b", "a")}
    assert essential(circle) == circle


def test_a_diagram_has_a_line_per_arrow_in_order() -> None:
    assert mermaid({("b", "c"), ("a", "b")}) == (
        "```mermaid\nflowchart TD\n    a --> b\n    b --> c\n```\n"
    )


def test_the_page_shows_the_rooms_as_they_are() -> None:
    assert picture() in (ROOT / "docs" / "architecture.md").read_text()
