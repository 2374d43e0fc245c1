"""What brokers are asked about their cluster's state, and what their answers mean."""

import contextlib
import struct
from collections.abc import Callable
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.validation.cluster_state import ClusterState, Partition, Quorum, cluster_state, quorum
from earshot.validation.deadline import Deadline
from earshot.validation.wire import Exchange, ExchangeError
from tests.doubles.peer import text

T = TypeVar("T")


class ReachableAddress:
    """A connection to a broker that answers every request with ``content``."""

    def __init__(self, content: bytes) -> None:
        self.asked: list[bytes] = []
        self._content, self._waiting = content, b""

    def settimeout(self, seconds: float, /) -> None:
        pass

    def sendall(self, data: bytes, /) -> None:
        self.asked.append(data[4:])
        answer = data[8:12] + self._content
        self._waiting = struct.pack(">i", len(answer)) + answer

    def recv(self, most: int, /) -> bytes:
        part, self._waiting = self._waiting[:most], self._waiting[most:]
        return part


def read(ask: Callable[[Exchange], T], content: bytes) -> T:
    return ask(Exchange(ReachableAddress(content), Deadline(60)))


def many(items: list[bytes]) -> bytes:
    return struct.pack(">i", len(items)) + b"".join(items)


def numbers(values: tuple[int, ...]) -> bytes:
    return many([struct.pack(">i", value) for value in values])


def metadata_answer(state: ClusterState) -> bytes:
    """As a broker writes it: Metadata version 2."""
    port = struct.pack(">i", 9092)
    brokers = [struct.pack(">i", id) + text(f"k{id}") + port + text(None) for id in state.brokers]

    def written(partition: Partition) -> bytes:
        start = struct.pack(">hii", 0, partition.number, partition.leader)
        return start + numbers(partition.replicas) + numbers(partition.in_sync)

    topics: dict[str, list[bytes]] = {}
    for partition in state.partitions:
        topics.setdefault(partition.topic, []).append(written(partition))
    no_error = struct.pack(">h", 0)
    listed = [no_error + text(name) + b"\0" + many(parts) for name, parts in topics.items()]
    return many(brokers) + text(state.cluster_id) + struct.pack(">i", 1) + many(listed)


KNOWN = ClusterState(
    (1, 2, 3),
    (Partition("a", 0, 1, (1, 2), (1, 2)), Partition("a", 1, 2, (2, 3), (2,)),
     Partition("b", 0, -1, (3,), ())),
)  # fmt: skip


def test_the_state_is_asked_and_read() -> None:
    peer = ReachableAddress(metadata_answer(KNOWN))
    assert cluster_state(Exchange(peer, Deadline(60))) == KNOWN
    header = struct.pack(">hhih", 3, 2, 1, 7) + b"earshot"
    assert peer.asked == [header + struct.pack(">i", -1)], "all topics"


def test_what_a_broker_lacks() -> None:
    assert KNOWN.lagging_partitions(1) == []
    assert [str(it) for it in KNOWN.lagging_partitions(3)] == ["a-1", "b-0"]
    assert [str(it) for it in KNOWN.lagging_partitions(3, only_led=True)] == ["a-1"], (
        "b-0 has no leader"
    )


ids = st.integers(0, 2**31 - 1)
several = st.lists(ids, max_size=4).map(tuple)
partitions = st.builds(
    Partition, st.sampled_from(["a", "b", "ü"]), st.integers(0, 99), ids, several, several
)


@given(several, st.lists(partitions, max_size=5))
def test_any_state_is_read_back(brokers: tuple[int, ...], parts: list[Partition]) -> None:
    known = ClusterState(brokers, tuple(sorted(parts, key=lambda it: it.topic)))
    assert read(cluster_state, metadata_answer(known)) == known


@given(st.integers(0, 200), st.binary(max_size=200))
def test_no_answer_is_worse_than_unreadable(cut: int, noise: bytes) -> None:
    whole = metadata_answer(KNOWN)
    for answer in (whole[: min(cut, len(whole) - 1)], noise):
        for ask in (cluster_state, quorum):
            with contextlib.suppress(ExchangeError):
                ask(Exchange(ReachableAddress(answer), Deadline(60)))


def test_what_is_not_known_of_a_topic_is_empty() -> None:
    """Null arrays and texts are of the length -1."""
    answer = struct.pack(">i", -1) + text(None) + struct.pack(">i", 1) + struct.pack(">i", -1)
    assert read(cluster_state, answer) == ClusterState((), ())


def compact(items: list[bytes]) -> bytes:
    return bytes([len(items) + 1]) + b"".join(items)


def replica(id: int, when: int, tags: bytes = b"\0") -> bytes:
    return struct.pack(">iqqq", id, 9, -1, when) + tags


def quorum_answer(
    leader: int, voters: dict[int, int], error: int = 0, many_voters: bytes = b""
) -> bytes:
    """As a controller writes it: DescribeQuorum version 1."""
    replicas = many_voters or compact([replica(id, when) for id, when in voters.items()])
    partition = struct.pack(">ihiiq", 0, error, leader, 7, 9) + replicas + compact([]) + b"\0"
    topic = b"\x02x" + compact([partition]) + b"\0"
    return b"\0" + struct.pack(">h", 0) + compact([topic]) + b"\0"


def test_the_quorum_is_asked_and_read() -> None:
    voters = {1: 10_000, 2: 9_400, 3: -1}
    peer = ReachableAddress(quorum_answer(1, voters))
    found = quorum(Exchange(peer, Deadline(60)))
    assert found == Quorum(1, voters)
    assert (found.lag(1), found.lag(2), found.lag(3), found.lag(4)) == (0, 600, None, None)
    topic = b"__cluster_metadata"
    header = struct.pack(">hhih", 55, 1, 1, 7) + b"earshot\0"
    named = b"\x02" + bytes([len(topic) + 1]) + topic + b"\x02" + struct.pack(">i", 0)
    assert peer.asked == [header + named + b"\0\0\0"]


def test_the_quorum_s_leader_is_never_behind_itself() -> None:
    assert Quorum(1, {1: 5, 2: 9}).lag(2) == 0, "a clock that was set"
    assert Quorum(1, {1: 0, 2: 0}).lag(2) == 0
    assert Quorum(1, {1: -1, 2: 7}).lag(2) is None
    assert Quorum(3, {1: 7}).lag(1) is None


def test_tags_of_later_versions_are_skipped() -> None:
    tags = b"\x02\x07\x03abc\x81\x01\x00"  # two: 7 with three bytes, 129 with none
    replicas = compact([replica(1, 5, tags)]) + compact([replica(4, 5, tags)])
    partition = struct.pack(">ihiiq", 0, 0, 1, 7, 9) + replicas + tags
    other = struct.pack(">ihiiq", 1, 0, 2, 7, 9) + compact([]) + compact([]) + tags
    topic = b"\x02x" + compact([partition, other]) + tags
    answer = tags + struct.pack(">h", 0) + compact([topic]) + tags
    assert read(quorum, answer) == Quorum(1, {1: 5})


def test_an_answer_of_many_voters_is_read() -> None:
    voters = {id: id for id in range(1, 150)}
    count = len(voters) + 1  # more than one byte counts
    listed = bytes([count & 0x7F | 0x80, count >> 7])
    listed += b"".join(replica(id, when) for id, when in voters.items())
    assert read(quorum, quorum_answer(1, {}, many_voters=listed)) == Quorum(1, voters)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"\0" + struct.pack(">h", 41), "Kafka's error 41"),
        (b"\0" + struct.pack(">h", 0) + compact([]), "the quorum is not in the answer"),
        (b"\0" + struct.pack(">h", 0) + b"\0", "the quorum is not in the answer"),
        (b"\0" + struct.pack(">h", 0) + compact([b"\0" + b"\1" + b"\0"]), "not in the answer"),
        (quorum_answer(1, {}, error=6), "Kafka's error 6"),
        (quorum_answer(1, {1: 1})[:-9], "it ends after"),
        (b"\x80" * 100_000, "a number of more than five bytes"),
        (b"", "it ends after 4 bytes"),
    ],
)
def test_a_quorum_that_is_not_told_is_no_answer(answer: bytes, said: str) -> None:
    with pytest.raises(ExchangeError, match=said):
        read(quorum, answer)
