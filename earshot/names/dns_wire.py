"""Questions and answers of DNS as they go over the wire, as far as nearly all of them go.

What has another shape, such as a chain of CNAMEs, is read by dnspython, or asked again by it.
Source: RFC 1035, section 4.
"""

import contextlib
import secrets
import socket
import struct
from collections.abc import Sequence
from functools import lru_cache

import dns.exception
import dns.message
import dns.name
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.resolver

_HEADER = struct.Struct(">6H")
_RECORD = struct.Struct(">HHHIH")
_ASKED_NAME = 0xC000 | _HEADER.size
"""Where an answer says that a record is of the name that was asked for."""
_RECURSE = 0x0100
_IS_ANSWER = 0x8000
_TRUNCATED = 0x0200
_CODE = 0x000F
_FAMILIES = {dns.rdatatype.A: (socket.AF_INET, 4), dns.rdatatype.AAAA: (socket.AF_INET6, 16)}
"""With the length of an address."""


def question(name: str, kind: dns.rdatatype.RdataType) -> bytes:
    """A question for records of ``kind``; raises DNSException where there can be no such name."""
    header = _HEADER.pack(secrets.randbits(16), _RECURSE, 1, 0, 0, 0)
    return header + _name(name) + struct.pack(">2H", kind, dns.rdataclass.IN)


@lru_cache(maxsize=256)  # each name is asked for two families
def _name(name: str) -> bytes:
    return absolute(name).to_wire() or b""


def absolute(name: str) -> dns.name.Name:
    """``name``, which may end in a dot; raises DNSException where there can be no such name."""
    return dns.name.from_text(name)  # below the root in any case


def addresses(
    request: bytes, received: bytes, kind: dns.rdatatype.RdataType
) -> Sequence[str] | None:
    """The addresses in the answer ``received``, or None where it cannot be used: where it answers
    another question, is cut off, or says that the server failed. Raises `dns.resolver.NXDOMAIN`
    and `NoAnswer`."""
    with contextlib.suppress(struct.error):
        texts = _usual(request, received, kind)
        if texts is not None:
            return texts
    return _any(request, received)


def _usual(request: bytes, received: bytes, kind: dns.rdatatype.RdataType) -> Sequence[str] | None:
    """The addresses of an answer that holds nothing else; None for one of another shape."""
    id, flags, questions, answers, _, _ = _HEADER.unpack_from(received)
    expected = (*_HEADER.unpack_from(request)[:1], 1, request[_HEADER.size :])
    belongs = (id, questions, received[_HEADER.size : len(request)]) == expected
    code = flags & _CODE
    if not belongs or flags & (_IS_ANSWER | _TRUNCATED) != _IS_ANSWER:
        return None
    if not answers and code == dns.rcode.NXDOMAIN:
        raise dns.resolver.NXDOMAIN
    if code != dns.rcode.NOERROR:
        return None
    if not answers:
        raise dns.resolver.NoAnswer
    family, length = _FAMILIES[kind]
    at, addresses_read = len(request), []
    for _ in range(answers):
        owner, record_kind, network, _, size = _RECORD.unpack_from(received, at)
        at += _RECORD.size + length
        shape = (_ASKED_NAME, kind, dns.rdataclass.IN, length)
        if (owner, record_kind, network, size) != shape or at > len(received):
            return None
        addresses_read.append(socket.inet_ntop(family, received[at - length : at]))
    return addresses_read


def _any(request: bytes, received: bytes) -> Sequence[str] | None:
    try:
        answer = dns.message.from_wire(received, raise_on_truncation=True)
        is_response = dns.message.from_wire(request).is_response(answer)
        if not (is_response and isinstance(answer, dns.message.QueryMessage)):
            return None
        code = answer.rcode()
        rrset = answer.resolve_chaining().answer if code == dns.rcode.NOERROR else None
    except dns.exception.DNSException:
        return None
    if code == dns.rcode.NXDOMAIN:
        raise dns.resolver.NXDOMAIN
    if code != dns.rcode.NOERROR:
        return None
    if rrset is None:
        raise dns.resolver.NoAnswer
    return [str(record) for record in rrset]
