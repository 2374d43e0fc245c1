"""Who reaches the brokers of a plan in containers."""

from __future__ import annotations

from typing import Any

from earshot.checks.reach import Reach, reach
from earshot.config.docker import DockerSpec
from earshot.config.document import read_spec
from earshot.placement.docker import plan_docker
from earshot.topology.ways import Answer

INSIDE, MACHINE = "containers on earshot-mine", "the Docker host"


def rows(**document: Any) -> dict[tuple[str, str], Reach]:
    spec = read_spec({"placement": "docker", **document}, "test")
    assert isinstance(spec, DockerSpec)
    return {(it.place, it.listener): it for it in reach(plan_docker(spec, "mine"))}


def test_each_place_has_a_listener_and_no_other() -> None:
    found = rows()
    answers = {key: row.answer for key, row in found.items()}
    assert answers == {
        (INSIDE, "INTERNAL"): Answer.YES,
        (INSIDE, "HOST"): Answer.NO,
        (MACHINE, "INTERNAL"): Answer.NO,
        (MACHINE, "HOST"): Answer.YES,
        (INSIDE, "EXTERNAL"): Answer.NO,
        (MACHINE, "EXTERNAL"): Answer.YES,
    }
    assert list(map(str, found[MACHINE, "HOST"].addresses)) == [
        "localhost:9092", "localhost:9093", "localhost:9094"
    ]  # fmt: skip
    assert "Docker gives on its networks only" in found[MACHINE, "INTERNAL"].because


def test_several_hosts_have_no_rows() -> None:
    hosts = [{"name": "a"}, {"name": "b", "engine": "ssh://b", "external": "b.example.com"}]
    hosts[0]["external"] = "a.example.com"
    assert rows(hosts=hosts) == {}


def test_a_name_of_the_host_is_not_known_to_be_this_machine() -> None:
    found = rows(hosts=[{"external": "kafka.example.com"}])
    for place in (INSIDE, MACHINE):
        row = found[place, "EXTERNAL"]
        assert row.answer is Answer.UNKNOWN
        assert row.because == "whether kafka.example.com is this machine"
