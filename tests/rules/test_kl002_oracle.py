"""KL002, and the grammar in which earshot writes settings, against Kafka itself."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earshot.rules.kl002_kafka import objections
from tests.listeners.grammar_of_settings import grammar_problems
from tests.listeners.oracle import VERSIONS, Oracle
from tests.rules.vectors import ADVERTISED, BASES, BROKER, CONTROLLER, GRAMMAR, VECTORS, Vector

ids = [f"{index}-{vector.name}" for index, vector in enumerate(VECTORS)]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("vector", VECTORS, ids=ids)
def test_our_verdict(vector: Vector, version: str) -> None:
    grammar = grammar_problems(vector.values)
    found = list(objections(vector.values, version))
    if vector.ours == GRAMMAR:
        assert grammar
    elif vector.ours == "KL002":
        assert found and not grammar
    else:
        assert (grammar, found) == ([], [])


@pytest.mark.e2e
@pytest.mark.timeout(900)
@pytest.mark.parametrize("vector", VECTORS, ids=ids)
def test_kafka_s_verdict(oracle: Oracle, vector: Vector) -> None:
    refusal = oracle.refusal(vector.values)
    assert ("x" if refusal else ".") == vector.kafka[VERSIONS.index(oracle.version)], refusal
    refused = [item for item in objections(vector.values, oracle.version) if item.refused]
    if refusal:
        assert grammar_problems(vector.values) or refused, refusal
    else:
        assert not refused


# every value that some vector gives a setting, and None to take it away
POOL: dict[str, list[str | None]] = {}
for vector in VECTORS:
    for key, text in {**vector.values, **vector.change}.items():
        POOL.setdefault(key, [None])
        if text not in POOL[key]:
            POOL[key].append(text)
CLIPPED = [
    lambda text, at: text[:at] + text[at + 1 :],
    lambda text, at: text[:at] + text[at : at + 1] * 2 + text[at + 1 :],
    lambda text, at: text[:at] + "," + text[at:],
    lambda text, at: text[:at] + " " + text[at:],
    lambda text, at: text[at:] + text[:at],
    lambda text, at: text[:at] + text[at:].lower(),
]


@st.composite
def broken(draw: st.DrawFn) -> dict[str, str]:
    """A sound node with some settings exchanged, taken away or damaged in one character."""
    values: dict[str, str | None] = dict(BASES[draw(st.sampled_from("BXC"))])
    for key in draw(st.lists(st.sampled_from(sorted(POOL)), max_size=4, unique=True)):
        values[key] = draw(st.sampled_from(POOL[key]))
    found = {key: text for key, text in values.items() if text is not None}
    if draw(st.booleans()):
        key = draw(st.sampled_from(sorted(found)))
        at = draw(st.integers(0, len(found[key])))
        found[key] = draw(st.sampled_from(CLIPPED))(found[key], at)
    return found


@pytest.mark.e2e
@pytest.mark.timeout(900)
@settings(max_examples=400, deadline=None)
@given(values=broken())
def test_nothing_that_kafka_refuses_passes_silently(oracle: Oracle, values: dict[str, str]) -> None:
    refusal = oracle.refusal(values)
    grammar = grammar_problems(values)
    found = list(objections(values, oracle.version))
    refused = [item for item in found if item.refused]
    if refusal:
        # reported whatever the version makes of it: no role at all, a voter at 0.0.0.0
        hedged = [item for item in found if item.check in ("R1c", "R4a")]
        assert grammar or refused or hedged, refusal
    elif not grammar:
        assert not refused


@pytest.mark.e2e
@pytest.mark.timeout(900)
def test_what_a_controller_would_hand_out(oracle: Oracle) -> None:
    two = {
        "controller.listener.names": "CONTROLLER,CONTROLLER2",
        "listeners": "CONTROLLER://127.0.0.1:9093,CONTROLLER2://127.0.0.1:9095",
        "advertised.listeners": "CONTROLLER://lb.example.org:9000",
    }
    for change, expected in (
        ({"advertised.listeners": two["advertised.listeners"]}, [("lb.example.org", 9000)]),
        ({"advertised.listeners": "PLAINTEXT://b:9092"}, [("127.0.0.1", 9093)]),
        (two, [("lb.example.org", 9000), ("127.0.0.1", 9095)]),
    ):
        found = oracle.handed_out(CONTROLLER | change, "Controller")
        assert [(host, port) for _, host, port in found] == expected
    wildcard = {"listeners": "CONTROLLER://:9093", "controller.quorum.voters": "9@127.0.0.1:9999"}
    # why C10 objects: Kafka 4.2.1 and later take the voters' entry, earlier ones the bare port
    ((_, host, port),) = oracle.handed_out(CONTROLLER | wildcard, "Controller")
    assert (host or "", port) == (
        ("127.0.0.1", 9999) if oracle.version.startswith("4.3") else ("", 9093)
    )


@pytest.mark.e2e
@pytest.mark.timeout(900)
def test_a_broker_ignores_the_controllers_listener_that_it_advertises(oracle: Oracle) -> None:
    change = {"advertised.listeners": ADVERTISED + ",CONTROLLER://c9:9093"}
    names = [name for name, _, _ in oracle.handed_out(BROKER | change, "Broker")]
    assert names == ["INTERNAL", "EXTERNAL"]
