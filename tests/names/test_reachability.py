from pathlib import Path

import pytest

from earshot.listeners.terms import Scope
from earshot.names.kinds import NameKind
from earshot.names.reachability import TABLE, Expectation, location_of, outlook
from earshot.placement_registry import ClientLocation

GOLDEN = Path(__file__).parent / "vantages.txt"


def test_the_table_is_the_golden_one() -> None:
    lines = ["kind: " + ", ".join(location.name for location in ClientLocation)]
    for kind in NameKind:
        cells = (f"{item.resolves}/{item.reaches}" for item in TABLE[kind].outlooks.values())
        lines.append(f"{kind.name}: {', '.join(cells)}")
    assert "\n".join(lines) + "\n" == GOLDEN.read_text()


def test_every_kind_has_a_row_with_its_source() -> None:
    assert list(TABLE) == list(NameKind)
    for row in TABLE.values():
        assert list(row.outlooks) == list(ClientLocation)
        assert row.note and row.source.startswith("https://")


@pytest.mark.parametrize("kind", NameKind)
@pytest.mark.parametrize("location", ClientLocation)
def test_what_does_not_resolve_is_not_reached(kind: NameKind, location: ClientLocation) -> None:
    found = outlook(kind, location)
    assert found.resolves is not Expectation.ITSELF
    if found.resolves is Expectation.NO:
        assert found.reaches is Expectation.NO
    if kind.name.endswith("_ADDRESS"):
        assert found.resolves is Expectation.YES


@pytest.mark.parametrize(
    ("kind", "location", "resolves", "reaches"),
    [
        # measured with Docker on Linux
        (NameKind.LOCALHOST, ClientLocation.SAME_NETWORK, "yes", "itself"),
        (NameKind.CONTAINER_ID, ClientLocation.SAME_NETWORK, "yes", "yes"),
        (NameKind.CONTAINER_ID, ClientLocation.THIS_MACHINE, "no", "no"),
        (NameKind.SINGLE_LABEL, ClientLocation.OTHER_NETWORK, "no", "no"),
        # from the documentation of AWS
        (NameKind.EC2_PRIVATE, ClientLocation.OUTSIDE, "no", "no"),
        (NameKind.EC2_PUBLIC, ClientLocation.SAME_VPC, "yes", "yes"),
    ],
)
def test_outlook(kind: NameKind, location: ClientLocation, resolves: str, reaches: str) -> None:
    found = outlook(kind, location)
    assert (found.resolves, found.reaches) == (resolves, reaches)


@pytest.mark.parametrize(
    ("scope", "placement", "location"),
    [
        (Scope.EXTERNAL, "local", ClientLocation.OUTSIDE),
        (Scope.HOST, "aws", ClientLocation.THIS_MACHINE),
        (Scope.INTERNAL, "local", ClientLocation.THIS_MACHINE),
        (Scope.CONTROLLER, "docker", ClientLocation.SAME_NETWORK),
        (Scope.INTERNAL, "aws", ClientLocation.SAME_VPC),
        (Scope.INTERNAL, "elsewhere", ClientLocation.OUTSIDE),
    ],
)
def test_the_location_of_a_scope(scope: Scope, placement: str, location: ClientLocation) -> None:
    assert location_of(scope, placement) is location
