"""Which listening sockets of a host are in the way of a port that is to be published."""

import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from earshot_pulumi.docker import host_ports, throwaway

from earshot import sockets
from earshot.sockets import Bound
from earshot.topology.container import PublishedPort
from tests.raised import raised

ELSEWHERE = SimpleNamespace(engine="tcp://elsewhere:2376", cert_path=None)
HERE = SimpleNamespace(engine="unix:///run/docker.sock", cert_path=None)
HEADER = "  sl  local_address rem_address   st\n"
ANYWHERE = PublishedPort(9092, 9092, "0.0.0.0")
LOOPBACK = PublishedPort(9092, 9092, "127.0.0.1")
ON_LOOPBACK = "   0: 0100007F:2384 00000000:0000 0A\n"
ON_ANY_IPV6 = f"   0: {'0' * 32}:2384 {'0' * 32}:0000 0A\n"
CONNECTED = "   1: 0100007F:2384 0100007F:C350 01\n"


def holders_of(
    monkeypatch: pytest.MonkeyPatch,
    reported: str,
    port: PublishedPort = ANYWHERE,
    published: tuple[PublishedPort, ...] = (),
) -> list[str]:
    """Who holds ``port``, if a container on the host's network prints ``reported``."""
    commands: list[Any] = []

    def ask(_client: object, _image: str, command: list[str], *, network: str) -> str:
        commands.append((command[-1], network))
        return HEADER + reported

    monkeypatch.setattr(throwaway, "ask", ask)
    holders = host_ports.holders(None, ELSEWHERE, "sha256:1", [port], published)
    assert commands == [("9092", "host")]
    return [str(holder) for holder in holders.values()]


@pytest.mark.parametrize(
    ("reported", "port", "taken"),
    [
        ("", ANYWHERE, False),
        (CONNECTED, ANYWHERE, False),
        (ON_LOOPBACK, ANYWHERE, True),
        (ON_LOOPBACK, LOOPBACK, True),
        (ON_LOOPBACK, PublishedPort(9092, 9092, "192.0.2.1"), False),
        (ON_ANY_IPV6, LOOPBACK, False),
        (f"{ON_ANY_IPV6}### IPv4 9092\n", LOOPBACK, True),
    ],
)
def test_sockets_are_compared_as_the_kernel_does(
    monkeypatch: pytest.MonkeyPatch, reported: str, port: PublishedPort, taken: bool
) -> None:
    process = ["a process there (`ss -ltnp sport = :9092` names it)"]
    assert holders_of(monkeypatch, reported, port) == process * taken


def test_what_docker_holds_for_a_container_is_no_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    assert holders_of(monkeypatch, ON_LOOPBACK, LOOPBACK, (LOOPBACK,)) == []
    everywhere = PublishedPort(9092, 9092, "")
    assert holders_of(monkeypatch, f"{ON_ANY_IPV6}### IPv4 9092\n", ANYWHERE, (everywhere,)) == []
    assert (
        len(holders_of(monkeypatch, ON_LOOPBACK, ANYWHERE, (PublishedPort(9092, 9092, "::1"),)))
        == 1
    )


@pytest.mark.parametrize(
    ("pid", "name", "holder"),
    [(7, "nginx", "pid 7 (nginx)"), (None, "", "a process of another user")],
)
def test_this_machine_tells_whose_the_port_is(
    monkeypatch: pytest.MonkeyPatch, pid: int | None, name: str, holder: str
) -> None:
    monkeypatch.setattr(host_ports, "shares_network", lambda _: True)
    open_sockets = [sockets.ListeningSocket(Bound("127.0.0.1", 9092), pid, name)]
    monkeypatch.setattr(sockets, "listening", lambda: open_sockets)
    reported = host_ports.holders(None, HERE, None, [LOOPBACK], [])
    assert [str(socket) for socket in reported.values()] == [holder]


def test_a_socket_on_another_port_or_address_is_not_dockers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for published in (
        PublishedPort(9093, 9093, "127.0.0.1"),
        PublishedPort(9092, 9092, "192.0.2.1"),
        PublishedPort(9092, 9092, "127.0.0.1", "udp"),
        PublishedPort(9092, 9092, "0.0.0.0"),
    ):
        assert len(holders_of(monkeypatch, ON_LOOPBACK, LOOPBACK, (published,))) == 1
    on_any = "   0: 00000000:2384 00000000:0000 0A\n"
    assert holders_of(monkeypatch, on_any, LOOPBACK, (ANYWHERE,)) == []
    assert len(holders_of(monkeypatch, on_any, LOOPBACK, (LOOPBACK,))) == 1


def test_every_port_is_asked_for_once_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def ask(_client: object, image: str, command: list[str], *, network: str) -> str:
        commands.append([image, *command[:2], *command[3:], network])
        return HEADER + ON_LOOPBACK + "   2: 00000000:2385 00000000:0000 0A\n"

    monkeypatch.setattr(throwaway, "ask", ask)
    second, free = PublishedPort(9093, 9093, ""), PublishedPort(9094, 9094, "")
    reported = host_ports.holders(
        None, ELSEWHERE, "sha256:1", [free, second, LOOPBACK, ANYWHERE], []
    )
    assert commands == [["sha256:1", "bash", "-c", "ports", "9092", "9093", "9094", "host"]]
    assert {port: str(it) for port, it in reported.items()} == {
        second: "a process there (`ss -ltnp sport = :9093` names it)",
        LOOPBACK: "a process there (`ss -ltnp sport = :9092` names it)",
        ANYWHERE: "a process there (`ss -ltnp sport = :9092` names it)",
    }


def test_whether_an_ipv6_socket_takes_ipv4_matters_to_it_alone() -> None:
    answering = host_ports._with_ipv4(Bound("::", 9092), {9092})
    assert (answering.ipv6_only, answering.port) == (False, 9092)
    assert host_ports._with_ipv4(Bound("::", 9092), {9093}).ipv6_only is True
    for other in (Bound("127.0.0.1", 9092), Bound("::1", 9092), Bound("0.0.0.0", 9092)):
        assert host_ports._with_ipv4(other, set()) == other


@pytest.mark.parametrize("host", [ELSEWHERE, HERE], ids=["another host", "another namespace"])
def test_an_engine_elsewhere_is_asked_in_a_container(
    monkeypatch: pytest.MonkeyPatch, host: SimpleNamespace
) -> None:
    monkeypatch.setattr(host_ports, "shares_network", lambda _: False)
    error = raised(throwaway.CommandFailed, host_ports.holders, None, host, None, [LOOPBACK], [])
    assert error.object == "its ports"
    assert error.observed == "the engine has no image yet in which they could be listed"


def test_a_socket_s_server_tells_whether_it_shares_the_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a b.sock"
    address = f"unix://{quote(str(path))}"
    assert host_ports.shares_network(address) is False, "there is none"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        assert host_ports.shares_network(address) is True

        def refused(*_: object) -> bool:
            raise PermissionError

        monkeypatch.setattr(Path, "samefile", refused)
        assert host_ports.shares_network(address) is True
        monkeypatch.setattr(Path, "samefile", lambda *_: False)
        assert host_ports.shares_network(address) is False
    monkeypatch.delattr(socket, "SO_PEERCRED")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "other"))
        server.listen()
        assert host_ports.shares_network(f"unix://{tmp_path}/other") is False
