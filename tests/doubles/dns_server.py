"""A DNS server of the run that answers from a table, refuses, or keeps silent."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from dnslib import AAAA, PTR, QTYPE, RCODE, RR, A, DNSRecord
from dnslib.server import BaseResolver, DNSLogger, DNSServer

NO_RECORD: tuple[str, ...] = ()
"""The name exists and has no address."""
TRUNCATED = "TRUNCATED"
"""The answer is cut short before its first record, over TCP as well."""


class _Table(BaseResolver):  # type: ignore[misc]  # dnslib has no types
    def __init__(self, table: Mapping[str, tuple[str, ...] | str]) -> None:
        self.table = table

    def resolve(self, request: DNSRecord, handler: object) -> DNSRecord:
        reply = request.reply()
        name = str(request.q.qname).rstrip(".").lower()
        try:
            answer = self.table[name]  # a defaultdict answers for every name
        except KeyError:
            answer = "NXDOMAIN"
        if answer == TRUNCATED:
            reply.header.tc = 1
            return reply
        if isinstance(answer, str):
            reply.header.rcode = getattr(RCODE, answer)
            return reply
        family = QTYPE[request.q.qtype]
        for text in answer:
            data = _data(name, text)
            if type(data).__name__ == family:
                reply.add_answer(RR(request.q.qname, request.q.qtype, rdata=data, ttl=1))
        return reply


def _data(name: str, text: str) -> A | AAAA | PTR:
    if name.endswith(".in-addr.arpa"):
        return PTR(text)
    return AAAA(text) if ":" in text else A(text)


@contextmanager
def dns_server(
    table: Mapping[str, tuple[str, ...] | str], address: str = "127.0.0.1", port: int = 0
) -> Iterator[str]:
    """Yields `ip:port` of a server: per name its addresses, or the name of a DNS error.

    A name below in-addr.arpa has names. ``table`` may change while it runs; port 0 is a free one.
    """
    with _running(table, address, port, tcp=False) as bound_port:
        yield f"{address}:{bound_port}"


@contextmanager
def dns_server_with_tcp(table: Mapping[str, tuple[str, ...] | str]) -> Iterator[str]:
    """Like `dns_server`, but it answers over TCP as well."""
    address = "127.0.0.1"
    with (
        _running(table, address, 0, tcp=True) as port,
        _running(table, address, port, tcp=False),
    ):
        yield f"{address}:{port}"


@contextmanager
def _running(
    table: Mapping[str, tuple[str, ...] | str], address: str, port: int, *, tcp: bool
) -> Iterator[int]:
    """Yields the port of a server."""
    quiet = DNSLogger(logf=lambda line: None)
    server = DNSServer(_Table(table), address=address, port=port, tcp=tcp, logger=quiet)
    thread = threading.Thread(target=server.server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield int(server.server.server_address[1])
    finally:
        server.server.shutdown()
        server.server.server_close()
        thread.join()
