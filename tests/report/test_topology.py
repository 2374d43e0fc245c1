"""The picture's geometry: everything inside, nothing on top of anything else."""

import pytest

from earshot.listeners.address import Address
from earshot.report import topology as geometry
from earshot.report.topology import topology
from earshot.validation.result import Cause, ReachedAddress, Vantage
from earshot.validation.terms import Stage, Verdict
from tests.report import samples


@pytest.mark.parametrize("name", samples.ALL)
def test_boxes_lie_inside_and_apart(name: str) -> None:
    picture = topology(samples.ALL[name]())
    taken = set()
    for box in picture.boxes:
        assert 0 <= box.x <= geometry.WIDTH - geometry.BOX_WIDTH
        assert geometry.TOP <= box.y <= picture.height - geometry.BOX_HEIGHT
        assert len(box.label) <= geometry.LETTERS and len(box.note) <= geometry.LETTERS
        taken.add((box.x, box.y))
    assert len(taken) == len(picture.boxes)


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


def test_a_vantage_that_is_broken_is_red_whatever_it_saw() -> None:
    broken = Vantage(name="host", verdict=Verdict.FAIL)
    picture = topology(samples.report(samples.healthy_cells(), vantages=[broken]))
    assert {box.label: box.verdict for box in picture.boxes}["host"] == Verdict.FAIL


def test_what_an_executor_reached_is_drawn_where_there_is_such_a_listener() -> None:
    reached = [
        ReachedAddress(
            listener=listener, broker=1, address=Address("localhost", 1), reached=listener == "B"
        )
        for listener in ("INTERNAL", "EXTERNAL", "B")
    ]
    executor = Vantage(name="executor-1", kind="executor", reached=tuple(reached))
    host = Vantage(name="host")
    picture = topology(samples.report(samples.healthy_cells(), vantages=[host, executor]))
    lines = {line.full: line.verdict for line in picture.lines if "executor-1" in line.full}
    assert lines == {"executor-1 to INTERNAL": Verdict.FAIL, "executor-1 to EXTERNAL": Verdict.FAIL}
    boxes = {box.label: box.verdict for box in picture.boxes}
    assert boxes["executor-1"] == Verdict.FAIL and boxes["host"] == Verdict.PASS


def test_brokers_share_a_box_where_there_are_too_many() -> None:
    def brokers(count: int, *, failed: bool = False) -> list[str]:
        cells = [samples.cell("EXTERNAL", broker) for broker in range(count)]
        if failed:
            cause = Cause(kind="refused", observed="", expected="", remedy="")
            cells = [samples.failed(cell, Stage.TCP, cause) for cell in cells]
        boxes = topology(samples.report(cells)).boxes
        return [box.label for box in boxes if box.x == geometry.COLUMNS[2]]

    assert brokers(geometry.MAX_BOXES) == [f"broker {id}" for id in range(geometry.MAX_BOXES)]
    assert brokers(geometry.MAX_BOXES + 1) == [f"{geometry.MAX_BOXES + 1} brokers"]
    alone = [f"broker {id}" for id in range(geometry.MAX_BOXES + 1)]
    assert brokers(geometry.MAX_BOXES + 1, failed=True) == alone


@pytest.mark.parametrize(
    ("name", "shown"), [("a" * 26, "a" * 26), ("a" * 27, "a" * 25 + "…"), ("", "")]
)
def test_a_name_that_does_not_fit_is_cut(name: str, shown: str) -> None:
    vantage = Vantage(name="host", where=name)
    (host, *_) = topology(samples.report(samples.healthy_cells(), vantages=[vantage])).boxes
    assert (host.note, host.full) == (
        shown or "passed",
        f"host ({name}): passed" if name else "host: passed",
    )


def test_of_many_brokers_those_without_a_fault_share_a_box() -> None:
    cells = [samples.cell("EXTERNAL", broker) for broker in range(1, 1001)]
    cause = Cause(kind="refused", observed="refused", expected="an answer", remedy="start it")
    cells[499] = samples.failed(cells[499], Stage.TCP, cause)
    picture = topology(samples.report(cells))
    brokers = [box.label for box in picture.boxes if box.x == geometry.COLUMNS[2]]
    assert brokers == ["broker 500", "999 brokers"]


def test_nothing_looked_at_gives_an_empty_picture() -> None:
    assert topology(samples.report([], vantages=[])).boxes == ()
