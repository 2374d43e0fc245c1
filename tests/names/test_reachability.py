from __future__ import annotations

from pathlib import Path

import pytest

from earshot.listeners.terms import Scope
from earshot.names.kinds import NameKind
from earshot.names.reachability import TABLE, Expected, outlook, vantage_of
from earshot.placements import VantageKind

GOLDEN = Path(__file__).parent / "vantages.txt"


def test_the_table_is_the_golden_one() -> None:
    lines = ["kind: " + ", ".join(vantage.name for vantage in VantageKind)]
    for kind in NameKind:
        cells = (f"{item.resolves}/{item.reaches}" for item in TABLE[kind].outlooks.values())
        lines.append(f"{kind.name}: {', '.join(cells)}")
    assert "\n".join(lines) + "\n" == GOLDEN.read_text()


def test_every_kind_has_a_row_with_its_source() -> None:
    assert list(TABLE) == list(NameKind)
    for row in TABLE.values():
        assert list(row.outlooks) == list(VantageKind)
        assert row.note and row.source.startswith("https://")


@pytest.mark.parametrize("kind", NameKind)
@pytest.mark.parametrize("vantage", VantageKind)
def test_what_does_not_resolve_is_not_reached(kind: NameKind, vantage: VantageKind) -> None:
    found = outlook(kind, vantage)
    assert found.resolves is not Expected.ITSELF
    if found.resolves is Expected.NO:
        assert found.reaches is Expected.NO
    if kind.name.endswith("_ADDRESS"):
        assert found.resolves is Expected.YES


@pytest.mark.parametrize(
    ("kind", "vantage", "resolves", "reaches"),
    [
        # measured with Docker on Linux
        (NameKind.LOCALHOST, VantageKind.SAME_NETWORK, "yes", "itself"),
        (NameKind.CONTAINER_ID, VantageKind.SAME_NETWORK, "yes", "yes"),
        (NameKind.CONTAINER_ID, VantageKind.THIS_MACHINE, "no", "no"),
        (NameKind.SINGLE_LABEL, VantageKind.OTHER_NETWORK, "no", "no"),
        # from the documentation of AWS
        (NameKind.EC2_PRIVATE, VantageKind.OUTSIDE, "no", "no"),
        (NameKind.EC2_PUBLIC, VantageKind.SAME_VPC, "yes", "yes"),
    ],
)
def test_outlook(kind: NameKind, vantage: VantageKind, resolves: str, reaches: str) -> None:
    found = outlook(kind, vantage)
    assert (found.resolves, found.reaches) == (resolves, reaches)


@pytest.mark.parametrize(
    ("scope", "placement", "vantage"),
    [
        (Scope.EXTERNAL, "local", VantageKind.OUTSIDE),
        (Scope.HOST, "aws", VantageKind.THIS_MACHINE),
        (Scope.INTERNAL, "local", VantageKind.THIS_MACHINE),
        (Scope.CONTROLLER, "docker", VantageKind.SAME_NETWORK),
        (Scope.INTERNAL, "aws", VantageKind.SAME_VPC),
        (Scope.INTERNAL, "elsewhere", VantageKind.OUTSIDE),
    ],
)
def test_where_the_clients_of_a_scope_stand(
    scope: Scope, placement: str, vantage: VantageKind
) -> None:
    assert vantage_of(scope, placement) is vantage
