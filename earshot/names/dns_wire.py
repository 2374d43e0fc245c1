"""Encodes DNS questions and decodes common answers.

dnspython decodes other answers, such as a chain of CNAMEs. Source: RFC 1035, section 4.
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
"""The compressed name of a record that belongs to the name in the question."""
_RECURSE = 0x0100
_IS_ANSWER = 0x8000
_TRUNCATED = 0x0200
_CODE = 0x000F
_FAMILIES = {dns.rdatatype.A: (socket.AF_INET, 4), dns.rdatatype.AAAA: (socket.AF_INET6, 16)}
"""Address family and length of an address, by record type."""


def question(name: str, kind: dns.rdatatype.RdataType) -> bytes:
    """A question for records of ``kind``. Raises DNSException if ``name`` is invalid."""
    header = _HEADER.pack(secrets.randbits(16), _RECURSE, 1, 0, 0, 0)
    return header + _name(name) + struct.pack(">2H", kind, dns.rdataclass.IN)


@lru_cache(maxsize=256)  # each name has two questions
def _name(name: str) -> bytes:
    return absolute(name).to_wire() or b""


def absolute(name: str) -> dns.name.Name:
    """``name`` as an absolute name. Raises DNSException if it is invalid."""
    return dns.name.from_text(name)  # relative to the root


def addresses(
    request: bytes, received: bytes, kind: dns.rdatatype.RdataType
) -> Sequence[str] | None:
    """The addresses in the answer ``received``, or None if it cannot be used: it answers another
    question, is truncated, or reports a server failure. Raises `dns.resolver.NXDOMAIN` and
    `NoAnswer`."""
    with contextlib.suppress(struct.error):
        texts = _plain_addresses(request, received, kind)
        if texts is not None:
            return texts
    return _addresses_of_message(request, received)


def _plain_addresses(
    request: bytes, received: bytes, kind: dns.rdatatype.RdataType
) -> Sequence[str] | None:
    """The addresses of an answer without other records; None for other answers."""
    id, flags, questions, answers, _, _ = _HEADER.unpack_from(received)
    expected = (*_HEADER.unpack_from(request)[:1], 1, request[_HEADER.size :])
    is_for_request = (id, questions, received[_HEADER.size : len(request)]) == expected
    code = flags & _CODE
    if not is_for_request or flags & (_IS_ANSWER | _TRUNCATED) != _IS_ANSWER:
        return None
    if not answers and code == dns.rcode.NXDOMAIN:
        raise dns.resolver.NXDOMAIN
    if code != dns.rcode.NOERROR:
        return None
    if not answers:
        raise dns.resolver.NoAnswer
    family, length = _FAMILIES[kind]
    offset, addresses_read = len(request), []
    for _ in range(answers):
        owner, record_kind, network, _, size = _RECORD.unpack_from(received, offset)
        offset += _RECORD.size + length
        shape = (_ASKED_NAME, kind, dns.rdataclass.IN, length)
        if (owner, record_kind, network, size) != shape or offset > len(received):
            return None
        addresses_read.append(socket.inet_ntop(family, received[offset - length : offset]))
    return addresses_read


def _addresses_of_message(request: bytes, received: bytes) -> Sequence[str] | None:
    """The addresses of an answer in any form, decoded by dnspython."""
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
