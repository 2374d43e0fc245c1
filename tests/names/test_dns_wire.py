"""Answers of DNS servers, byte by byte, beside what dnspython reads in them."""

from collections.abc import Sequence

import dns.exception
import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.resolver
import dns.rrset
import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.names.dns_wire import addresses, question

A, AAAA = dns.rdatatype.A, dns.rdatatype.AAAA
ASKED = question("kafka.example.com", A)
FOUR = ("kafka.example.com. 60 IN A 192.0.2.1", "kafka.example.com. 60 IN A 192.0.2.2")
OWNER = "kafka.example.com."


def answer(*records: str, asked: bytes = ASKED, code: str = "NOERROR", flags: int = 0) -> bytes:
    """What a server says to ``asked``."""
    made = dns.message.make_response(dns.message.from_wire(asked))
    made.set_rcode(dns.rcode.from_text(code))
    made.flags |= flags
    for record in records:
        made.answer.append(dns.rrset.from_text(*_parts(record)))
    return made.to_wire()


def _parts(record: str) -> tuple[str, int, str, str, str]:
    name, ttl, network, kind, value = record.split()
    return name, int(ttl), network, kind, value


def test_a_question_is_what_dnspython_reads() -> None:
    for kind in (A, AAAA):
        read = dns.message.from_wire(question("Kafka-1.Example.com", kind))
        (asked,) = read.question
        assert (str(asked.name), asked.rdtype) == ("Kafka-1.Example.com.", kind)
        assert read.flags == dns.flags.RD


def test_each_question_has_an_id_of_its_own() -> None:
    assert len({question("kafka.example.com", A)[:2] for _ in range(50)}) > 40


@pytest.mark.parametrize("name", ["a..b", "x" * 64, ".a"])
def test_what_can_be_no_name_cannot_be_asked(name: str) -> None:
    with pytest.raises(dns.exception.DNSException):
        question(name, A)


@pytest.mark.parametrize(("records", "found"), [
    (FOUR, ["192.0.2.1", "192.0.2.2"]),
    ((f"{OWNER} 60 IN CNAME b.example.com.", "b.example.com. 60 IN A 192.0.2.7"), ["192.0.2.7"]),
    ((*FOUR[:1], "other.example.com. 60 IN A 192.0.2.9"), ["192.0.2.1"]),
], ids=["of the name", "of another name that stands for it", "of another name"])  # fmt: skip
def test_the_addresses_of_a_name(records: Sequence[str], found: list[str]) -> None:
    assert list(addresses(ASKED, answer(*records), A) or ()) == found


def test_addresses_of_the_other_family() -> None:
    asked = question("kafka.example.com", AAAA)
    reported = answer(f"{OWNER} 60 IN AAAA 2001:db8::1", asked=asked)
    assert list(addresses(asked, reported, AAAA) or ()) == ["2001:db8::1"]


@pytest.mark.parametrize(
    ("reported", "error"),
    [
        (answer(code="NXDOMAIN"), dns.resolver.NXDOMAIN),
        (answer(f"{OWNER} 60 IN CNAME b.example.com.", code="NXDOMAIN"), dns.resolver.NXDOMAIN),
        (answer(), dns.resolver.NoAnswer),
        (answer(f"{OWNER} 60 IN CNAME b.example.com."), dns.resolver.NoAnswer),
        (answer(f"{OWNER} 60 IN AAAA 2001:db8::1"), dns.resolver.NoAnswer),
    ],
    ids=["no name", "no name beyond another", "nothing", "another name alone", "of IPv6 alone"],
)
def test_no_addresses(reported: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        addresses(ASKED, reported, A)


@pytest.mark.parametrize(
    "reported",
    [
        b"",
        ASKED,
        answer(*FOUR)[:-1],
        answer(*FOUR, flags=dns.flags.TC),
        answer(*FOUR, code="SERVFAIL"),
        answer(code="REFUSED"),
        bytes((ASKED[0] ^ 1,)) + answer(*FOUR)[1:],
        answer(asked=question("other.example.com", A)),
        ASKED[:2] + answer(asked=question("other.example.com", A))[2:],
        ASKED[:2] + answer(asked=question("kafka.example.com", AAAA))[2:],
    ],
    ids=["nothing", "a question", "too short", "cut off", "a failure", "refused", "another id",
         "another question", "another name", "another family"],
)  # fmt: skip
def test_what_is_no_answer_to_the_question(reported: bytes) -> None:
    assert addresses(ASKED, reported, A) is None


@given(st.binary(max_size=60), st.integers(0, len(answer(*FOUR))))
def test_any_bytes_are_addresses_or_nothing(more: bytes, at: int) -> None:
    reported = answer(*FOUR)
    for damaged in (more, reported[:at] + more, reported[:at] + more + reported[at + len(more) :]):
        try:
            found = addresses(ASKED, damaged, A)
        except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
            continue
        assert found is None or all(item.count(".") == 3 for item in found)
