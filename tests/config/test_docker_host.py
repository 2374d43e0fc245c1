"""`hosts` of placement docker: engines, their certificates, names, and hosts that are created."""

from typing import Any

import pytest

from earshot.errors import SpecError
from earshot.listeners.problems import shown
from tests.config.test_docker import TWO, read, refused


@pytest.mark.parametrize("zones", [True, 5, 1.5])
def test_zones_of_hosts_that_are_no_map_are_one_message(zones: object) -> None:
    with pytest.raises(SpecError, match=r"hosts: aws\.host_zones: found .*; allowed: a map"):
        read(hosts={"aws": {"host_zones": zones}})


@pytest.mark.parametrize(
    "engine", ["unix:///var/run/docker.sock", "ssh://ops@host-a", "ssh://h:2222", "tcp://h:2376"]
)
def test_engines(engine: str) -> None:
    assert read(hosts=[{"engine": engine}]).hosts[0].engine == engine


@pytest.mark.parametrize(
    ("engine", "good"),
    [
        ("unix:///s", True),
        ("unix:///", False),
        ("unix://host/socket", False),
        ("unix:socket", False),
        ("unix:///a b", False),
        ("unix:///a\u2028b", False),
        ("ssh://host/", True),
        ("ssh://host/path", False),
        ("ssh://", False),
        ("tcp://host:1/", True),
        ("tcp://host:1/path", False),
        ("tcp://:2376", False),
        ("tcp://host:70000", False),
        ("http://host:2376", False),
        ("", False),
    ],
)
def test_which_engines_there_are(engine: str, good: bool) -> None:
    hosts = [{"engine": engine}]
    if good:
        assert read(hosts=hosts).hosts[0].engine == engine
    else:
        assert refused(hosts=hosts) == [
            (
                f"hosts[0].engine: found {shown(engine)}; "
                "allowed: unix:///SOCKET, ssh://[USER@]HOST[:PORT] or tcp://HOST:PORT"
            )
        ]


def test_certificates_are_for_engines_at_tcp() -> None:
    over_tls = {"engine": "tcp://host:2376", "cert_path": "/certs"}
    assert read(hosts=[over_tls]).hosts[0].cert_path == "/certs"
    assert refused(hosts=[over_tls | {"engine": "ssh://host"}]) == [
        (
            "hosts[0]: cert_path: found '/certs' for the engine 'ssh://host'; "
            "allowed: with an engine at tcp://HOST:PORT"
        )
    ]


def test_other_hosts_use_the_internal_name_before_the_external_one() -> None:
    hosts = [TWO[0] | {"internal": "a.local"}, TWO[1]]
    assert [host.between_hosts for host in read(hosts=hosts).hosts] == ["a.local", "b.example"]


@pytest.mark.parametrize("hosts", [[{"name": f"h{n}", "external": "x"} for n in range(100)]])
def test_as_many_hosts_as_allowed(hosts: list[dict[str, Any]]) -> None:
    assert len(read(hosts=hosts).hosts) == 100
