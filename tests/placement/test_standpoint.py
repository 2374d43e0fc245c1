"""The place from which each scope is validated, and the document with the places."""

from pathlib import Path

import pytest

from earshot.errors import EarshotError
from earshot.listeners.terms import Scope
from earshot.placement.standpoint import (
    HOST_NETWORK,
    OWN_NETWORK,
    CandidateEngine,
    Kind,
    Standpoint,
    docker_standpoints,
    read_standpoints,
    to_json,
)
from tests.remote.contracts import docker_contract

HERE = CandidateEngine(engine="unix:///var/run/docker.sock")
AWAY = CandidateEngine(engine="tcp://192.0.2.7:2376", cert_path="/certificates")


def test_processes_of_this_machine_are_validated_by_this_process() -> None:
    found = docker_standpoints(docker_contract(), [HERE], "dev", "base:1", ["192.0.2.53"])
    assert [item.name for item in found] == ["internal", "host", "external"]
    inner, host, outer = found
    assert (host.kind, host.engines, host.dns) == (Kind.HERE, (), ())
    assert (inner.kind, inner.network, inner.engines) == (Kind.CONTAINER, "dev", (HERE,))
    assert (outer.kind, outer.network, outer.base) == (Kind.CONTAINER, OWN_NETWORK, "base:1")
    assert inner.dns == outer.dns == ("192.0.2.53",)


def test_processes_of_another_machine_are_stood_for_by_a_container_on_it() -> None:
    found = docker_standpoints(docker_contract(Scope.HOST), [AWAY], "dev")
    assert found == (
        Standpoint(
            name="host",
            scope=Scope.HOST,
            kind=Kind.CONTAINER,
            engines=(AWAY,),
            network=HOST_NETWORK,
        ),
    )


def test_every_engine_is_a_candidate() -> None:
    (found,) = docker_standpoints(docker_contract(Scope.INTERNAL), [AWAY, HERE], "dev")
    assert found.engines == (AWAY, HERE)


def test_reads_what_it_writes(tmp_path: Path) -> None:
    found = docker_standpoints(docker_contract(), [HERE, AWAY], "dev", dns=["192.0.2.53"])
    file = tmp_path / "vantages.json"
    file.write_text(to_json(found))
    assert read_standpoints(file) == found


@pytest.mark.parametrize(
    ("text", "observed"),
    [
        ("{", "vantages.json"),
        ('{"standpoints": [{"name": "host", "scope": "moon"}]}', "scope"),
        ('{"standpoints": [{"name": "Host!", "scope": "host"}]}', "name"),
        ('{"version": 2, "standpoints": []}', "version"),
    ],
)
def test_rubbish_is_named(text: str, observed: str, tmp_path: Path) -> None:
    file = tmp_path / "vantages.json"
    file.write_text(text)
    with pytest.raises(EarshotError, match=observed):
        read_standpoints(file)


def test_what_is_no_json_is_said_to_be_none(tmp_path: Path) -> None:
    file = tmp_path / "vantages.json"
    file.write_text("password: secret")
    with pytest.raises(EarshotError) as error:
        read_standpoints(file)
    assert error.value.line == (
        f"file {file}: is not JSON (Invalid JSON: expected value at line 1 column 1); "
        "allowed: a JSON file of vantages, as a stack on Docker hosts writes it"
    )


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(EarshotError, match="cannot be read"):
        read_standpoints(tmp_path / "none.json")
