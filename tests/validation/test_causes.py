"""The table of causes: golden texts, and a row for whatever may fail."""

import re
from pathlib import Path

import pytest

from earshot.doctor.replication import KIND
from earshot.listeners.address import Address
from earshot.listeners.terms import Scope
from earshot.names.kinds import NameKind
from earshot.validation.causes import ANY, TABLE, CauseRow, FailedStage, broker_text, explain
from earshot.validation.terms import Stage
from tests.goldens import is_golden

GOLDEN = Path(__file__).parent / "goldens" / "causes.txt"
RUNBOOK = Path(__file__).parents[2] / "docs" / "runbook.md"
HOSTS = {
    NameKind.SINGLE_LABEL: "kafka0",
    NameKind.EC2_PRIVATE: "ip-172-31-18-160.us-west-2.compute.internal",
    NameKind.FQDN: "kafka-1.example.com",
    NameKind.LOCALHOST: "localhost",
    NameKind.PRIVATE_ADDRESS: "10.0.1.7",
}


def reported(row: CauseRow) -> str:
    """A block of text for the case that ``row`` is for."""
    host = HOSTS[row.names[0] if row.names else NameKind.FQDN]
    error = "something-else" if row.error == ANY else row.error
    trouble = FailedStage(row.stage, error, "(observed)")
    broker = -1 if row.for_user_address else 2
    cause = explain(trouble, "EXTERNAL", broker, Address(host, 9094), row.scopes)
    return "\n".join(
        [
            f"{row.stage} {row.error} {host} {'+'.join(row.scopes) or '-'}"
            + (", given by the user" if row.for_user_address else ""),
            f"  kind: {cause.kind}",
            f"  expected: {cause.expected}",
            f"  remedy: {cause.remedy}",
        ]
    )


def test_golden() -> None:
    is_golden("\n".join(map(reported, TABLE)) + "\n", GOLDEN)


@pytest.mark.parametrize("stage", [stage for stage in Stage if stage is not Stage.METADATA])
def test_every_stage_has_a_row_for_any_error(stage: Stage) -> None:
    cause = explain(FailedStage(stage, "never-seen", "x"), "L", 1, Address("h.example.org", 1))
    assert cause.kind and cause.expected and cause.remedy and cause.observed == "x"


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.stage}-{row.error}-{row.kind}")
def test_rows_are_reachable_and_their_kinds_searchable(row: CauseRow) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", row.kind)
    trouble = FailedStage(row.stage, row.error, "")
    name = row.names[0] if row.names else NameKind.PUBLIC_ADDRESS
    scopes = row.scopes or (Scope.INTERNAL,)
    assert (
        next(item for item in TABLE if item.fits(trouble, name, scopes, row.for_user_address))
        is row
    )


EVERYWHERE = tuple(Scope)
CONTAINERS = {NameKind.SINGLE_LABEL, NameKind.CONTAINER_ID, NameKind.DOCKER_HOST}
VPC = {NameKind.EC2_PRIVATE, NameKind.EC2_RESOURCE}


@pytest.mark.parametrize(("stage", "error", "scopes", "begins", "names"), [
    (Stage.RESOLVE, "nxdomain", EVERYWHERE, "connect from that network", CONTAINERS),
    (Stage.RESOLVE, "nxdomain", EVERYWHERE, "connect from inside that VPC", VPC),
    (Stage.RESOLVE, "nxdomain", (Scope.EXTERNAL,), "create a public DNS", {NameKind.FQDN}),
    (Stage.RESOLVE, "nxdomain", (Scope.HOST,), "create a public DNS", set()),
    (Stage.TCP, "refused", EVERYWHERE, "start {broker}; if it runs in a container",
     {NameKind.LOCALHOST, NameKind.LOOPBACK_ADDRESS, NameKind.ANY_ADDRESS}),
    *((Stage.TCP, "timeout", (scope,), "connect from inside the broker's network",
       {NameKind.PRIVATE_ADDRESS, *VPC} if scope in (Scope.EXTERNAL, Scope.HOST) else set())
      for scope in Scope),
    (Stage.RESOLVE, "nxdomain", EVERYWHERE, "correct the bootstrap address", set()),
    (Stage.TCP, "refused", EVERYWHERE, "correct the bootstrap address", set()),
])  # fmt: skip
def test_a_remedy_is_for_some_kinds_of_names(
    stage: Stage, error: str, scopes: tuple[Scope, ...], begins: str, names: set[NameKind]
) -> None:
    trouble = FailedStage(stage, error, "")
    rows = {
        name: next(row for row in TABLE if row.fits(trouble, name, scopes)) for name in NameKind
    }
    assert {name for name, row in rows.items() if row.remedy.startswith(begins)} == names


def test_a_broker_that_never_said_its_id_is_the_one_there() -> None:
    assert [broker_text(id) for id in (-1, 0, 1)] == ["the broker there", "broker 0", "broker 1"]


def test_facts_may_say_better_what_was_expected() -> None:
    trouble = FailedStage(Stage.METADATA, "foreign", "cluster B", "cluster A")
    assert explain(trouble, "L", 1, Address("h", 1)).expected == "cluster A"


def test_an_external_listener_with_a_private_name_gets_its_own_remedy() -> None:
    trouble = FailedStage(Stage.RESOLVE, "nxdomain", "")
    host = HOSTS[NameKind.EC2_PRIVATE]
    cause = explain(trouble, "EXTERNAL", 1, Address(host, 9094), (Scope.EXTERNAL,))
    assert cause.kind == "unresolvable" and "inside that VPC" in cause.remedy


def test_the_runbook_names_causes_that_there_are() -> None:
    section = RUNBOOK.read_text().split("| Error of the client |")[1].split("\n\n")[0]
    cells = [line.split(" | ")[1] for line in section.splitlines()[2:]]
    found = {kind for cell in cells for kind in re.findall(r"`([a-z-]+)`", cell)}
    assert len(found) > 10
    assert found <= {row.kind for row in TABLE} | {KIND}
