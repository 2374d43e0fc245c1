"""The addresses in Kafka's answers that are replaced, and the bytes that stay.

The bytes of whole answers are written here by hand from the protocol's description.
"""

import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.listeners.address import Address
from earshot.tunnel.rewriting import (
    API_VERSIONS,
    DESCRIBE_CLUSTER,
    FIND_COORDINATOR,
    METADATA,
    NEWEST,
    REWRITTEN,
    RewriteError,
    rewritten,
)

NUMBER = struct.pack(">i", 7)
REST = b"whatever comes after"
BROKERS = [(1, "kafka-1.private", 9092), (2, "kafka-2.private", 9093)]


def local(address: Address) -> Address:
    return Address("127.0.0.1", address.port + 10_000)


def int32(value: int) -> bytes:
    return struct.pack(">i", value)


def text(value: str | None) -> bytes:
    return (
        struct.pack(">h", -1) if value is None else struct.pack(">h", len(value)) + value.encode()
    )


def compact(value: str | None) -> bytes:
    return b"\0" if value is None else bytes([len(value) + 1]) + value.encode()


def node(id: int, host: str, port: int, write: Callable[[str | None], bytes]) -> bytes:
    return int32(id) + write(host) + int32(port)


def moved_broker(id: int, host: str, port: int) -> tuple[int, str, int]:
    return id, "127.0.0.1", port + 10_000


def metadata(version: int, brokers: list[tuple[int, str, int]]) -> bytes:
    flexible = version >= 9
    write = compact if flexible else text
    nodes = b"".join(
        node(*broker, write)
        + (write("rack") if version >= 1 else b"")
        + (b"\0" if flexible else b"")
        for broker in brokers
    )
    count = bytes([len(brokers) + 1]) if flexible else int32(len(brokers))
    throttle = int32(0) if version >= 3 else b""
    return NUMBER + (b"\0" if flexible else b"") + throttle + count + nodes + REST


def coordinators(version: int, brokers: list[tuple[int, str, int]]) -> bytes:
    flexible = version >= 3
    write = compact if flexible else text
    start = NUMBER + (b"\0" if flexible else b"") + (int32(0) if version >= 1 else b"")
    if version < 4:
        message = write("NONE") if version >= 1 else b""
        return start + b"\0\0" + message + node(*brokers[0], write) + REST
    nodes = b"".join(
        compact(f"group-{broker[0]}") + node(*broker, write) + b"\0\0" + compact(None) + b"\0"
        for broker in brokers
    )
    return start + bytes([len(brokers) + 1]) + nodes + REST


def cluster_description(version: int, brokers: list[tuple[int, str, int]]) -> bytes:
    start = NUMBER + b"\0" + int32(0) + b"\0\0" + compact(None)
    start += b"\1" if version >= 1 else b""
    start += compact("cluster") + int32(1) + bytes([len(brokers) + 1])
    fenced = b"\0" if version >= 2 else b""
    nodes = (node(*broker, compact) + compact(None) + fenced + b"\0" for broker in brokers)
    return start + b"".join(nodes) + REST


@pytest.mark.parametrize(
    ("key", "answer"),
    [
        (METADATA, metadata),
        (FIND_COORDINATOR, coordinators),
        (DESCRIBE_CLUSTER, cluster_description),
    ],
)
def test_every_address_of_every_version_is_replaced(
    key: int, answer: Callable[[int, list[tuple[int, str, int]]], bytes]
) -> None:
    for version in range(NEWEST[key] + 1):
        moved_brokers = [moved_broker(*broker) for broker in BROKERS]
        assert rewritten(key, version, answer(version, BROKERS), local) == answer(
            version, moved_brokers
        )


def test_a_coordinator_that_is_not_there_keeps_no_address() -> None:
    frame = coordinators(2, [(-1, "", -1)])
    assert rewritten(FIND_COORDINATOR, 2, frame, local) == frame


def versions(version: int, *api_ranges: tuple[int, int, int], error: int = 0) -> bytes:
    flexible = version >= 3
    count = bytes([len(api_ranges) + 1]) if flexible else int32(len(api_ranges))
    tags = b"\0" if flexible else b""
    return (
        NUMBER
        + struct.pack(">h", error)
        + count
        + b"".join(struct.pack(">hhh", *api_range) + tags for api_range in api_ranges)
        + REST
    )


@pytest.mark.parametrize("version", range(NEWEST[API_VERSIONS] + 1))
def test_clients_are_offered_what_is_rewritten(version: int) -> None:
    broker_ranges = (
        (0, 3, 13),
        (1, 4, 18),
        (3, 0, 14),
        (17, 0, 1),
        (22, 0, 5),
        (78, 0, 1),
        (99, 0, 0),
    )
    remaining_ranges = ((0, 3, 9), (1, 4, 15), (3, 0, 13), (17, 1, 1), (22, 0, 5))
    broker_answer, expected_answer = (
        versions(version, *broker_ranges),
        versions(version, *remaining_ranges),
    )
    assert rewritten(API_VERSIONS, version, broker_answer, local) == expected_answer


def test_a_request_that_is_too_new_as_a_whole_is_not_offered() -> None:
    assert rewritten(API_VERSIONS, 3, versions(3, (1, 16, 18)), local) == versions(3)


def test_a_broker_answers_in_version_0_where_it_does_not_know_the_clients_version() -> None:
    frame = versions(0, (18, 0, 3), error=35)
    assert rewritten(API_VERSIONS, 4, frame, local) == frame


@pytest.mark.parametrize(("key", "version", "frame", "reason"), [
    (METADATA, 99, metadata(12, BROKERS), "version 99 of request 3"),
    (METADATA, 0, NUMBER + int32(2**31 - 1), "entries in"),
    *((key, version, frame, "more than 200,000 fields") for key, version, frame in (
        (METADATA, 0, NUMBER + int32(10**6) + bytes(10**7)),
        (METADATA, 9, NUMBER + b"\x80\x80\x80\x01" + bytes(10**7)),
        (API_VERSIONS, 0, NUMBER + b"\0\0" + int32(10**6) + bytes(6 * 10**6)),
    )),
    (METADATA, 0, metadata(0, [(1, "a" * 30_000, 9092)]), r"a host of 30,000 characters$"),
])  # fmt: skip
def test_an_answer_that_cannot_be_rewritten_is_refused(
    key: int, version: int, frame: bytes, reason: str
) -> None:
    with pytest.raises(RewriteError, match=reason):
        rewritten(key, version, frame, local)


@given(st.sampled_from(sorted(REWRITTEN)), st.integers(0, 13), st.binary(max_size=200))
def test_any_bytes_are_rewritten_or_refused(key: int, version: int, frame: bytes) -> None:
    try:
        rewritten(key, min(version, NEWEST[key]), frame, local)
    except RewriteError as refusal:
        assert str(refusal)


@given(st.data())
def test_an_answer_that_ends_early_is_refused(data: st.DataObject) -> None:
    version = data.draw(st.integers(0, NEWEST[METADATA]))
    frame = metadata(version, BROKERS).removesuffix(REST)
    with pytest.raises(RewriteError):
        rewritten(METADATA, version, frame[: data.draw(st.integers(0, len(frame) - 1))], local)
