"""The picture's geometry: all boxes are inside, and none overlap."""

import pytest

from earshot.listeners.address import Address
from earshot.report import topology as geometry
from earshot.report.topology import topology
from earshot.validation.result import Cause, Cell, ReachedAddress, Vantage
from earshot.validation.terms import Stage, Verdict
from tests.report import samples


@pytest.mark.parametrize("name", samples.ALL)
def test_boxes_lie_inside_and_apart(name: str) -> None:
    picture = topology(samples.ALL[name]())
    places = set()
    for box in picture.boxes:
        assert 0 <= box.x <= geometry.WIDTH - geometry.BOX_WIDTH
        assert geometry.TOP <= box.y <= picture.height - geometry.BOX_HEIGHT
        assert len(box.label) <= geometry.LETTERS and len(box.note) <= geometry.LETTERS
        places.add((box.x, box.y))
    assert len(places) == len(picture.boxes)


def test_a_dead_broker_is_red_and_so_are_its_lines() -> None:
    picture = topology(samples.dead_broker())
    verdicts = {box.label: box.verdict for box in picture.boxes}
    assert verdicts["broker 2"] == Verdict.FAIL
    assert verdicts["broker 1"] == Verdict.PASS
    red = {line.full for line in picture.lines if line.verdict == Verdict.FAIL}
    assert "EXTERNAL to broker 2: 0 of 1 cell passed, 1 failed" in red
    assert "host to EXTERNAL" in red
    assert not any("broker 1" in line for line in red)


def test_an_executor_is_linked_by_what_it_reached() -> None:
    picture = topology(samples.executor_fails())
    verdicts = {line.full: line.verdict for line in picture.lines}
    assert verdicts["executor-1 to EXTERNAL"] == Verdict.FAIL
    assert verdicts["executor-1 to INTERNAL"] == Verdict.PASS
    assert verdicts["driver to EXTERNAL"] == Verdict.PASS


def test_lines_of_an_executor_without_cells_lead_to_listeners_of_the_report() -> None:
    at = Address("localhost", 1)
    reached = tuple(
        ReachedAddress(listener=listener, broker=1, address=at, reached=listener == "B")
        for listener in ("INTERNAL", "EXTERNAL", "B")
    )
    executor = Vantage(name="executor-1", kind="executor", reached=reached)
    broken = Vantage(name="host", verdict=Verdict.FAIL)
    for host, verdict in ((Vantage(name="host"), Verdict.PASS), (broken, Verdict.FAIL)):
        picture = topology(samples.report(samples.healthy_cells(), vantages=[host, executor]))
        lines = {line.full: line.verdict for line in picture.lines if "executor-1" in line.full}
        listeners = ("INTERNAL", "EXTERNAL")
        assert lines == {f"executor-1 to {name}": Verdict.FAIL for name in listeners}
        boxes = {box.label: box.verdict for box in picture.boxes}
        assert (boxes["executor-1"], boxes["host"]) == (Verdict.FAIL, verdict)


def broker_boxes(cells: list[Cell]) -> list[str]:
    boxes = topology(samples.report(cells)).boxes
    return [box.label for box in boxes if box.x == geometry.COLUMNS[2]]


def test_many_brokers_without_a_fault_share_a_box() -> None:
    cause = Cause(kind="refused", observed="refused", expected="an answer", remedy="start it")
    cells = [samples.cell("EXTERNAL", broker) for broker in range(1000)]
    failed = [samples.failed(cell, Stage.TCP, cause) for cell in cells]
    box_limit = geometry.MAX_BOXES
    assert broker_boxes(cells[:box_limit]) == [f"broker {id}" for id in range(box_limit)]
    assert broker_boxes(cells[: box_limit + 1]) == [f"{box_limit + 1} brokers"]
    assert broker_boxes(failed[: box_limit + 1]) == [f"broker {id}" for id in range(box_limit + 1)]
    assert broker_boxes([*cells[:500], failed[500], *cells[501:]]) == ["broker 500", "999 brokers"]


@pytest.mark.parametrize(
    ("name", "expected"), [("a" * 26, "a" * 26), ("a" * 27, "a" * 25 + "…"), ("", "")]
)
def test_a_name_that_does_not_fit_is_cut(name: str, expected: str) -> None:
    vantage = Vantage(name="host", where=name)
    (host, *_) = topology(samples.report(samples.healthy_cells(), vantages=[vantage])).boxes
    assert (host.note, host.full) == (
        expected or "passed",
        f"host ({name}): passed" if name else "host: passed",
    )


def test_nothing_looked_at_gives_an_empty_picture() -> None:
    assert topology(samples.report([], vantages=[])).boxes == ()
