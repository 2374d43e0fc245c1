"""Changes of users, replayed by Kafka's own classes as at a broker's start."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from earshot.jvm.jars import KAFKA_VERSION, kafka_broker_jars
from tests.listeners.oracle import VERSIONS, java_with

pytestmark = [pytest.mark.e2e]

SHA_512 = 2
RELEASES = [
    pytest.param(release, marks=[] if release == KAFKA_VERSION else [pytest.mark.combination])
    for release in VERSIONS
]


@pytest.fixture(scope="module", params=RELEASES)
def kafka(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The JVM of a release."""
    with java_with(kafka_broker_jars(request.param)) as gateway:
        yield gateway.jvm.org.apache.kafka


def users_after(kafka: Any, *changes: tuple[str, str]) -> set[str]:
    """The users that a broker knows, which has replayed ``changes`` from the beginning."""
    delta = kafka.image.ScramDelta(kafka.image.ScramImage.EMPTY)
    records = kafka.common.metadata
    for action, name in changes:
        if action == "delete":
            record = records.RemoveUserScramCredentialRecord()
        else:
            record = records.UserScramCredentialRecord().setIterations(4096)
            for set_field in (record.setSalt, record.setStoredKey, record.setServerKey):
                set_field(b"x")
        delta.replay(record.setName(name).setMechanism(SHA_512))
    mechanisms = delta.apply().mechanisms()
    # as arrays: where Spark has run in this process, Py4J's iterators do not end any more
    kinds = [mechanisms.get(kind) for kind in mechanisms.keySet().toArray()]
    return {name for kind in kinds for name in kind.keySet().toArray()}


def test_all_users_stay_known_where_one_is_overwritten(kafka: Any) -> None:
    chance = random.Random(25)
    for _ in range(50):
        old_user, new_user = (f"u{chance.randrange(10**6)}" for _ in range(2))
        changes = [("set", "validator"), ("set", old_user), ("set", old_user), ("set", new_user)]
        assert users_after(kafka, *changes) == {"validator", old_user, new_user}


def test_no_user_stays_known_where_one_is_deleted(kafka: Any) -> None:
    """KAFKA-20774. If this fails, the release has the fix: docs/users.md lists the others."""
    changes = [("set", "validator"), ("set", "app"), ("delete", "app"), ("set", "app3")]
    assert users_after(kafka, *changes) == set()
