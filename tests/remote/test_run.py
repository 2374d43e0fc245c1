"""The report of a run, merged from the reports of its vantages, some of which may be missing."""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from earshot.doctor.draft import Draft
from earshot.doctor.targets import targets_of
from earshot.errors import EarshotError
from earshot.listeners.terms import Scope
from earshot.placement.standpoint import Kind, Standpoint, docker_standpoints
from earshot.remote import bucket, container, run
from earshot.remote import instance as remote
from earshot.remote.run import unfinished, validate_from
from earshot.spark.run import ValidationOptions
from earshot.validation.contract import Contract
from earshot.validation.deadline import Deadline
from earshot.validation.result import Report, Vantage
from earshot.validation.terms import Verdict
from tests.remote.contracts import docker_contract
from tests.report import samples

DOWN = EarshotError("Docker engine at unix:///none", observed="does not answer")
PLACES = docker_standpoints(docker_contract(), [], "dev")
OPTIONS = ValidationOptions(deadline=60)


def seen_from(name: str, contract: Contract, verdict: Verdict) -> Report:
    (listener,) = contract.listeners
    model = samples.cell("INTERNAL", 1, name)
    cell = model.model_copy(update={"listener": listener.name, "verdict": verdict})
    return samples.report(
        [cell], kind="validation", run=name, cluster="dev", vantages=[Vantage(name=name)]
    )


@dataclass
class World:
    """A double of validations here and in containers, and of the containers' engines."""

    verdicts: dict[str, Verdict] = field(default_factory=dict)
    """The verdict of each vantage; PASS by default."""
    grounds: dict[str, EarshotError] = field(default_factory=dict)
    errors: dict[str, BaseException] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    begun: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    """Events of the validation from the place `waits`."""

    def here(
        self, contract: Contract, options: ValidationOptions, say: run.Say, draft: Draft
    ) -> Report:
        say("doctor")
        draft.targets = targets_of(contract)
        assert 0 < options.deadline <= OPTIONS.deadline
        return self._see(options.vantage, contract)

    @contextlib.contextmanager
    def session(self, standpoint: Standpoint, cluster: str, say: run.Say) -> Iterator[str]:
        if error := self.grounds.get(standpoint.name):
            raise error
        self.log.append(f"open {standpoint.name}")
        try:
            yield standpoint.name
        finally:
            self.log.append(f"close {standpoint.name}")

    def there(
        self, name: str, contract: Contract, options: ValidationOptions, end: Deadline, say: run.Say
    ) -> Report:
        if name == "waits":
            self.begun.set()
            assert end.stop.wait(60)
            self.ended.set()
        return self._see(name, contract)

    def _see(self, name: str, contract: Contract) -> Report:
        if error := self.errors.get(name):
            raise error
        return seen_from(name, contract, self.verdicts.get(name, Verdict.PASS))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()
    monkeypatch.setattr(run, "validate", world.here)
    monkeypatch.setattr(container, "docker_session", world.session)
    monkeypatch.setattr(container, "validate_on", world.there)
    return world


def cells(report: Report) -> dict[str, tuple[str, Verdict]]:
    return {cell.vantage: (cell.listener, cell.verdict) for cell in report.cells}


def test_each_scope_is_validated_from_its_own_vantage(world: World) -> None:
    events: list[str] = []
    report = validate_from(PLACES, docker_contract(), OPTIONS, events.append)
    assert [*cells(report).items()] == [
        ("internal", ("BOB", Verdict.PASS)),
        ("host", ("FRED", Verdict.PASS)),
        ("external", ("ALICE", Verdict.PASS)),
    ]
    run_id = "internal+host+external"
    assert (report.run, report.exit_code, report.kind) == (run_id, 0, "validation")
    assert events == ["host: doctor"]
    assert world.log == ["open internal", "open external", "close external", "close internal"]


def test_a_scope_has_several_vantages(world: World) -> None:
    jobs_place = Standpoint(name="jobs", scope=Scope.INTERNAL, kind=Kind.NOT_RUN, reason="not run")
    report = validate_from((*PLACES, jobs_place), docker_contract(), OPTIONS)
    assert cells(report)["internal"] == ("BOB", Verdict.PASS)
    assert cells(report)["jobs"] == ("BOB", Verdict.SKIP)
    assert report.exit_code == 3, "what was not run is not proved"
    jobs_report = validate_from((*PLACES, jobs_place), docker_contract(), OPTIONS, only=["jobs"])
    assert {verdict for _, verdict in cells(jobs_report).values()} == {Verdict.SKIP}
    unfinished_report = unfinished((*PLACES, jobs_place), docker_contract(), {}, "interrupted")
    assert {"internal", "jobs"} <= cells(unfinished_report).keys()


def test_a_failure_at_one_vantage_fails_the_run(world: World) -> None:
    world.verdicts["external"] = Verdict.FAIL
    assert validate_from(PLACES, docker_contract(), OPTIONS).exit_code == 1


def test_a_vantage_without_an_engine_is_inconclusive(world: World) -> None:
    world.grounds["external"] = DOWN
    report = validate_from(PLACES, docker_contract(), OPTIONS)
    assert cells(report)["external"] == ("ALICE", Verdict.INCONCLUSIVE)
    assert cells(report)["internal"] == ("BOB", Verdict.PASS)
    (vantage,) = (vantage for vantage in report.vantages if vantage.name == "external")
    assert (vantage.verdict, vantage.kind) == (Verdict.INCONCLUSIVE, "container")
    assert vantage.reason == report.cells[-1].reason
    assert "unix:///none: does not answer" in vantage.reason
    assert (report.exit_code, report.run) == (3, "internal+host")


def test_a_container_that_ends_without_a_report_is_inconclusive(world: World) -> None:
    world.errors["internal"] = EarshotError(
        "the container", observed="ended with status 137:\n    killed"
    )
    report = validate_from(PLACES, docker_contract(), OPTIONS)
    assert cells(report)["internal"] == ("BOB", Verdict.INCONCLUSIVE)
    expected_reason = (
        "it is not known what is seen from there: the container: ended with status 137"
    )
    assert report.cells[0].reason == expected_reason
    assert report.vantages[0].reason == f"{expected_reason}:\n    killed"
    assert report.exit_code == 3


def test_vantages_that_were_not_asked_for_are_skipped(world: World) -> None:
    report = validate_from(PLACES, docker_contract(), OPTIONS, only=["host", "external"])
    assert cells(report)["internal"] == ("BOB", Verdict.SKIP)
    assert report.cells[0].reason == "not asked for: --only host --only external"
    assert world.log[0] == "open external"
    assert report.exit_code == 3


@pytest.mark.parametrize("names", [{"ALICE"}, {"HOST", "ALICE", "BOB"}], ids=["one", "all"])
def test_a_listener_without_a_scope_is_inconclusive(world: World, names: set[str]) -> None:
    """No vantage is for it; a run that left it out could pass."""
    full_contract = docker_contract()
    listeners = tuple(
        listener.model_copy(update={"scopes": ()}) if listener.name in names else listener
        for listener in full_contract.listeners
    )
    contract = full_contract.model_copy(update={"listeners": listeners})
    report = validate_from(PLACES, contract, OPTIONS)
    assert {cell.listener for cell in report.cells} == {
        cell.name for cell in full_contract.listeners
    }
    undecided = [cell for cell in report.cells if cell.vantage == "unknown"]
    assert {cell.verdict for cell in undecided} == {Verdict.INCONCLUSIVE}
    assert {cell.listener for cell in undecided} == names & {
        cell.name for cell in full_contract.listeners
    }
    assert "add `scopes`" in undecided[0].reason
    assert report.exit_code == 3
    unfinished_report = unfinished(PLACES, contract, {}, "interrupted")
    assert {cell.listener for cell in unfinished_report.cells} == {
        cell.name for cell in full_contract.listeners
    }


def test_a_scope_without_a_standpoint_is_inconclusive(world: World) -> None:
    report = validate_from(PLACES[:2], docker_contract(), OPTIONS)
    assert cells(report)["external"] == ("ALICE", Verdict.INCONCLUSIVE)
    assert "no standpoint is known" in report.cells[-1].reason
    assert report.exit_code == 3


def test_a_scope_without_listeners_needs_no_vantage(world: World) -> None:
    report = validate_from(PLACES, docker_contract(Scope.HOST), OPTIONS)
    assert list(cells(report)) == ["host"] and world.log == []
    assert report.exit_code == 0


def test_a_vantage_that_does_not_exist_is_a_mistake(world: World) -> None:
    with pytest.raises(EarshotError, match="--only moon") as caught:
        validate_from(PLACES, docker_contract(), OPTIONS, only=["moon"])
    assert caught.value.allowed == "internal, host, external"
    assert world.log == []


def test_what_keeps_this_process_from_validating_is_raised(world: World) -> None:
    world.errors["host"] = EarshotError("Java", observed="none was found")
    with pytest.raises(EarshotError, match="Java"):
        validate_from(PLACES, docker_contract(), OPTIONS)
    assert world.log[-1] == "close internal"


def test_an_interrupt_ends_containers_first(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = Standpoint(name="waits", scope=Scope.EXTERNAL, kind=Kind.CONTAINER)

    def interrupted(*_: object) -> Report:
        assert world.begun.wait(60)
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "validate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        validate_from([PLACES[1], waiting], docker_contract(Scope.HOST, Scope.EXTERNAL), OPTIONS)
    assert world.ended.is_set()
    assert world.log == ["open waits", "close waits"]


def test_what_is_known_of_an_interrupted_validation_is_a_report(world: World) -> None:
    """The vantage that is done, the one under way, and the one that had no turn."""
    contract, known_reports = docker_contract(Scope.HOST, Scope.EXTERNAL), run.KnownReports()
    validate_from(PLACES, contract, OPTIONS, known_reports=known_reports)
    del known_reports["external"]
    unfinished_report = run.unfinished(PLACES, contract, known_reports, "terminated")
    assert {cell.vantage: cell.verdict for cell in unfinished_report.cells} == {
        "host": Verdict.PASS,
        "external": Verdict.INCONCLUSIVE,
    }
    world.errors["host"] = KeyboardInterrupt()
    known_reports.clear()
    with pytest.raises(KeyboardInterrupt):
        validate_from(PLACES, contract, OPTIONS, known_reports=known_reports)
    started_report = run.unfinished(PLACES, contract, known_reports, "terminated")
    host_cells = [cell for cell in started_report.cells if cell.vantage == "host"]
    assert {(cell.verdict, cell.reason) for cell in host_cells} == {
        (Verdict.INCONCLUSIVE, "terminated")
    }


def test_an_interrupt_skips_other_places(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    asked_places: list[str] = []

    def there(
        name: str, contract: Contract, options: ValidationOptions, end: Deadline, say: run.Say
    ) -> Report:
        asked_places.append(name)
        assert end.stop.wait(30)
        return seen_from(name, contract, Verdict.PASS)

    monkeypatch.setattr(run, "AT_ONCE", 1)
    monkeypatch.setattr(container, "validate_on", there)
    other_place = Standpoint(name="other", scope=Scope.EXTERNAL, kind=Kind.CONTAINER)
    world.errors["host"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        validate_from([other_place, *PLACES[:2]], docker_contract(), OPTIONS)
    assert len(asked_places) <= 1


NOWHERE = Standpoint(
    name="internal", scope=Scope.INTERNAL, kind=Kind.NOT_RUN, reason="not run: no validator"
)
AFAR = Standpoint(name="internal", scope=Scope.INTERNAL, kind=Kind.INSTANCE, bucket="b")


def test_at_a_place_that_is_not_run_everything_is_skipped_with_the_reason(world: World) -> None:
    places = [NOWHERE, *PLACES[1:]]
    report = validate_from(places, docker_contract(), OPTIONS)
    assert cells(report)["internal"] == ("BOB", Verdict.SKIP)
    assert report.cells[0].reason == "not run: no validator"
    assert (report.vantages[0].verdict, report.exit_code) == (Verdict.SKIP, 3)
    assert cells(report)["external"] == ("ALICE", Verdict.PASS)
    report = validate_from(places, docker_contract(), OPTIONS, only=("internal",))
    assert (report.run, report.exit_code) == ("none", 3), "without a validation"


def test_listeners_that_a_place_leaves_out_are_skipped_beside_the_others(world: World) -> None:
    external_scopes = (Scope.EXTERNAL,)
    contract = docker_contract(Scope.INTERNAL, Scope.EXTERNAL)
    listeners = tuple(
        listener.model_copy(update={"scopes": external_scopes}) for listener in contract.listeners
    )
    place = Standpoint(name="external", scope=Scope.EXTERNAL, without={"BOB": "it takes SSL"})
    report = validate_from([place], contract.model_copy(update={"listeners": listeners}), OPTIONS)
    result_by_listener = {cell.listener: (cell.verdict, cell.reason) for cell in report.cells}
    assert result_by_listener["BOB"] == (Verdict.SKIP, "it takes SSL")
    assert result_by_listener["ALICE"][0] is Verdict.PASS
    assert report.exit_code == 3


def test_a_place_that_leaves_everything_out_is_not_stood_on(world: World) -> None:
    world.errors["host"] = AssertionError("nobody was to stand there")
    place = Standpoint(name="host", scope=Scope.HOST, without={"FRED": "later"})
    report = validate_from([place], docker_contract(Scope.HOST), OPTIONS)
    assert cells(report) == {"host": ("FRED", Verdict.SKIP)}


def test_remote_validators_in_parallel(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(post: object, place: Standpoint, contract: Contract, *_: object) -> Report:
        return world._see(place.name, contract)

    monkeypatch.setattr(remote, "ask", ask)
    monkeypatch.setattr(bucket, "Bucket", lambda name, region: None)
    report = validate_from([AFAR, *PLACES[1:]], docker_contract(), OPTIONS)
    assert cells(report)["internal"] == ("BOB", Verdict.PASS) and report.exit_code == 0

    world.errors["internal"] = EarshotError("the validator i-1", observed="did not answer")
    report = validate_from([AFAR, *PLACES[1:]], docker_contract(), OPTIONS)
    assert cells(report)["internal"] == ("BOB", Verdict.INCONCLUSIVE)
    assert "the validator i-1: did not answer" in report.cells[0].reason
    assert (report.vantages[0].kind, report.exit_code) == ("remote", 3)
