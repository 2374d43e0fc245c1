"""Conflicts of binds: computed, and compared with this machine's kernel."""

import os
import socket
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.sockets import (
    Bound,
    ClientConnection,
    Holder,
    ListeningSocket,
    clash,
    conflict,
    connected,
    connections,
    free,
    from_proc,
    kept,
    listening,
    of_java,
    outgoing_ports,
)
from tests.e2e.ports import free_ports

HOSTS = ("127.0.0.1", "127.0.0.2", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "::ffff:0.0.0.0")
BOUNDS = st.builds(Bound, st.sampled_from(HOSTS), st.just(9092), st.booleans())
ALL = st.builds(
    Bound,
    st.sampled_from(HOSTS) | st.ip_addresses().map(str),
    st.integers(9092, 9093),
    st.none() | st.booleans(),
)


def listening_at(bound: Bound) -> socket.socket:
    """A socket that listens as ``bound`` says, on a port outside the range of ephemeral ports."""
    family = socket.AF_INET6 if ":" in bound.host else socket.AF_INET
    listening = socket.socket(family)
    if family == socket.AF_INET6:
        mapped = bound.host.startswith("::ffff:")
        only = bound.ipv6_only and not mapped
        listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(bool(only)))
    (port,) = free_ports(1)
    listening.bind((bound.host, port))
    listening.listen()
    return listening


@given(BOUNDS, BOUNDS)
def test_the_kernel_agrees(wanted: Bound, running: Bound) -> None:
    with listening_at(running) as listening:
        port = listening.getsockname()[1]
        wanted = Bound(wanted.host, port, wanted.ipv6_only)
        assert conflict(wanted, Bound(running.host, port, running.ipv6_only)) is not free(wanted)


def test_a_port_is_free_though_a_connection_to_it_has_just_ended() -> None:
    """Linux keeps it in TIME_WAIT for a minute, but a JVM can bind it."""
    (port,) = free_ports(1)
    with (
        socket.create_server(("127.0.0.1", port)) as server,  # may be bound again, as a JVM's
        socket.create_connection(("127.0.0.1", port)) as client,
    ):
        server.accept()[0].close()  # the side that closes first waits
        assert client.recv(1) == b""
    assert free(Bound("127.0.0.1", port))


@given(ALL, ALL)
def test_a_conflict_has_no_direction_and_is_about_one_port(first: Bound, second: Bound) -> None:
    assert conflict(first, second) is conflict(second, first)
    assert conflict(first, first) is True, "a socket conflicts with itself"
    assert conflict(first, Bound(second.host, first.port + 1, second.ipv6_only)) is False


@given(ALL, ALL)
def test_what_is_not_known_is_decided_by_ipv6_only_alone(first: Bound, second: Bound) -> None:
    verdict = conflict(first, second)
    settled = {
        conflict(Bound(first.host, first.port, a), Bound(second.host, second.port, b))
        for a in ([first.ipv6_only] if first.ipv6_only is not None else [False, True])
        for b in ([second.ipv6_only] if second.ipv6_only is not None else [False, True])
    }
    assert settled == ({False, True} if verdict is None else {verdict})


@pytest.mark.parametrize("only", [False, True])
def test_where_it_is_not_known_the_kernel_decides(only: bool) -> None:
    with listening_at(Bound("::", 0, ipv6_only=only)) as listening:
        port = listening.getsockname()[1]
        wanted, elsewhere = Bound("127.0.0.1", port), Bound("127.0.0.1", port + 1)
        assert clash(wanted, Bound("::", port)) is not only
        assert clash(wanted, Bound("::", port, ipv6_only=only)) is not only
        assert clash(elsewhere, Bound("::", port)) is False


@pytest.mark.parametrize(
    ("host", "bound"),
    [
        ("0.0.0.0", Bound("::", 1, ipv6_only=False)),
        ("::", Bound("::", 1, ipv6_only=False)),
        ("127.0.0.1", Bound("127.0.0.1", 1)),
        ("::1", Bound("::1", 1)),
        ("localhost", Bound("127.0.0.1", 1)),
    ],
)
def test_a_jvm_opens_a_wildcard_for_both_families(host: str, bound: Bound) -> None:
    assert of_java(host, 1) == bound


def test_a_name_without_an_address_cannot_be_bound() -> None:
    with pytest.raises(OSError):
        of_java("missing.invalid", 1)


def test_only_a_name_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolved(host: str, port: int, **wanted: object) -> list[object]:
        assert host == "six.example.com"
        return [(socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("2001:db8::1", port, 0, 0))]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    assert of_java("six.example.com", 1) == Bound("2001:db8::1", 1)
    assert of_java("127.0.0.1", 1) == Bound("127.0.0.1", 1)


def test_a_machine_without_ipv6_has_one_wildcard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "has_ipv6", False)
    assert of_java("::", 1) == Bound("0.0.0.0", 1)


def test_a_socket_of_another_user_has_no_process_name() -> None:
    assert (
        str(ListeningSocket(Bound("::", 9092)))
        == "port 9092 is in use by a process of another user"
    )


def test_only_what_listens_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    address = SimpleNamespace(ip="127.0.0.1", port=9092)
    sockets = [
        SimpleNamespace(status=status, laddr=laddr, pid=None)
        for status in (psutil.CONN_LISTEN, psutil.CONN_ESTABLISHED)
        for laddr in (address, ())
    ]
    monkeypatch.setattr(psutil, "net_connections", lambda kind: sockets)
    assert listening() == [ListeningSocket(Bound("127.0.0.1", 9092))]


def test_a_listening_socket_is_listed_with_its_process() -> None:
    with listening_at(Bound("::ffff:127.0.0.1", 0, ipv6_only=False)) as mine:
        port = mine.getsockname()[1]
        (socket_of_port,) = (entry for entry in listening() if entry.bound.port == port)
        assert socket_of_port.pid == os.getpid()
        assert conflict(of_java("127.0.0.1", port), socket_of_port.bound)
        assert f"port {port} is in use by pid {os.getpid()} (" in str(socket_of_port)


def test_a_port_may_be_kept_by_a_socket_that_does_not_listen() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        wanted = Bound(*silent.getsockname())
        assert kept(wanted) == Holder(
            f"port {wanted.port} is in use by a socket that does not listen"
        )
    assert kept(wanted) is None


def test_a_connection_that_has_just_ended_keeps_its_port_for_a_while() -> None:
    """The port of a client comes from the kernel, and has no SO_REUSEADDR."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        accepted, _ = server.accept()
        port = client.getsockname()[1]
        client.shutdown(socket.SHUT_RDWR)  # it ends first, so that its side waits
        accepted.recv(1)
        accepted.close()
        client.close()
    holder = kept(Bound("0.0.0.0", port))
    assert holder is not None and holder.passing
    assert str(holder) == (
        f"port {port} is held by a connection from this machine that has just ended"
    )


@pytest.mark.parametrize(
    ("range_of_ports", "reserved", "inside", "outside"),
    [
        ("32768\t60999\n", "\n", (32768, 39092, 60999), (9092, 32767, 61000)),
        ("1024 65535", "9092,39000-39100\n", (9093, 38999, 39101), (1023, 9092, 39000, 39100)),
    ],
)
def test_the_ports_of_own_connections_are_the_kernels(
    tmp_path: Path,
    range_of_ports: str,
    reserved: str,
    inside: tuple[int, ...],
    outside: tuple[int, ...],
) -> None:
    (tmp_path / "ip_local_port_range").write_text(range_of_ports)
    (tmp_path / "ip_local_reserved_ports").write_text(reserved)
    ports = outgoing_ports(tmp_path)
    assert ports is not None and str(ports) == "-".join(range_of_ports.split())
    assert all(port in ports for port in inside) and not any(port in ports for port in outside)


def test_the_ports_of_own_connections_may_be_unknown(tmp_path: Path) -> None:
    assert outgoing_ports(tmp_path) is None
    (tmp_path / "ip_local_port_range").write_text("many\n")
    assert outgoing_ports(tmp_path) is None


def test_where_not_all_may_be_listed_those_of_this_user_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def denied(_kind: str) -> None:
        raise psutil.AccessDenied  # as on macOS, to whoever is not root

    monkeypatch.setattr(psutil, "net_connections", denied)
    with listening_at(Bound("127.0.0.1", 0)) as mine:
        port = mine.getsockname()[1]
        (socket_of_port,) = (entry for entry in listening() if entry.bound.port == port)
        assert socket_of_port.pid == os.getpid()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
def test_who_is_connected_is_listed_with_its_process(host: str) -> None:
    with listening_at(Bound(host, 0, ipv6_only=False)) as mine:
        port, pid = mine.getsockname()[1], os.getpid()
        assert connected(pid, [port]) == []
        with socket.create_connection((host, port)), mine.accept()[0]:
            (client,) = connected(pid, [port])
            assert (client.port, client.host, client.pid) == (
                port,
                host.removeprefix("::ffff:"),
                pid,
            )
            assert client.origin == f"{client.host} (pid {pid}, {client.name})"
            assert connected(pid, [port + 1]) == [] == connected(1, [port])
        assert connected(pid, [port]) == []


def test_of_another_machines_client_the_address_is_known() -> None:
    assert ClientConnection(9092, "192.0.2.7").origin == "192.0.2.7"


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1"])
def test_the_kernels_own_table_is_read(host: str) -> None:
    with listening_at(Bound(host, 0, ipv6_only=False)) as mine:
        port = mine.getsockname()[1]
        text = "".join(Path(f"/proc/net/{name}").read_text() for name in ("tcp", "tcp6"))
        (bound,) = (entry for entry in from_proc(text) if entry.port == port)
        assert conflict(bound, Bound(host, port, ipv6_only=False))
        assert bound.ipv6_only is None


TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2384 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0 0 1 1 0 100 0 0 10 0
   1: 0100007F:2385 0100007F:D431 01 00000000:00000000 00:00000000 00000000  0 0 2 1 0 100 0 0 10 0
  sl  local_address                         remote_address                        st
   0: 0000000000000000FFFF00000100007F:2386 00000000000000000000000000000000:0000 0A 0:0 0:0 0
   1: 00000000000000000000000001000000:2387 00000000000000000000000000000000:0000 0A 0:0 0:0 0
   2: 00000000000000000000000000000000:2388 00000000000000000000000000000000:0000 0A 0:0 0:0 0
   3: nonsense:2389 0:0 0A
   4: 0100007F:2390 0A
   5: 0100007F:2391 0:0 0A

"""


def test_only_what_listens_is_taken_from_the_table() -> None:
    assert list(from_proc(TABLE)) == [
        Bound("127.0.0.1", 9092),
        Bound("127.0.0.1", 9094),
        Bound("::1", 9095),
        Bound("::", 9096),
        Bound("127.0.0.1", 9105),
    ]


def test_connections_are_taken_from_the_table_with_both_ends() -> None:
    ends = [(own.port, peer) for own, peer in connections(TABLE + "   6: 0:0 0 01\n")]
    assert ends == [(9093, Bound("127.0.0.1", 54321))]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_connection_is_in_the_kernels_own_table(host: str) -> None:
    with (
        listening_at(Bound(host, 0)) as mine,
        socket.create_connection((host, mine.getsockname()[1])) as client,
    ):
        own, peer = (Bound(*end[:2]) for end in (client.getsockname(), client.getpeername()))
        text = "".join(Path(f"/proc/net/{name}").read_text() for name in ("tcp", "tcp6"))
        assert {(own, peer), (peer, own)} <= set(connections(text))
