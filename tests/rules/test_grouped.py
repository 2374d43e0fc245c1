"""What has one cause is one block of a few lines, at three brokers and at a hundred."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from earshot.listeners.terms import Role, Scope
from earshot.names.evidence import Evidence, EvidenceKind
from earshot.names.lookup import Diagnosis, Lookup
from earshot.rules.evaluate import RULES
from earshot.rules.grouped import grouped, shape
from earshot.rules.rule import WAITING, Finding, FindingState, LineToWrite, Severity

RULE = next(rule for rule in RULES if rule.id == "KL011")


def finding(
    id: int | None = 1, observed: str = "kafka.invalid does not resolve", **more: Any
) -> Finding:
    given = {"listener": "EXTERNAL", "scope": Scope.EXTERNAL, "remedy": "make the record", **more}
    return RULE.finding(observed, given.pop("expected", "a name"), node=id, **given)


def texts(findings: Sequence[Finding]) -> list[str]:
    return [str(group) for group in grouped(findings)]


def test_one_finding_reads_as_ever() -> None:
    assert texts([finding()]) == [str(finding())]


def test_the_same_name_at_three_brokers_is_one_finding() -> None:
    assert texts([finding(1), finding(2), finding(3)]) == [
        (
            "brokers 1 to 3, listener EXTERNAL (scope external): "
            "kafka.invalid does not resolve [KL011]\n"
            "  expected: a name\n"
            "  fix: make the record\n"
            f"  source: {RULE.source}"
        )
    ]


def test_a_hundred_brokers_with_names_of_their_own_fit_a_screen() -> None:
    found = [
        finding(
            id, f"k-{id}.invalid: nxdomain", host=f"k-{id}.invalid", remedy=f"make k-{id}.invalid"
        )
        for id in range(1, 101)
    ]
    assert texts(found) == [
        (
            "brokers 1 to 100, listener EXTERNAL (scope external): "
            "100 findings that are alike [KL011]\n"
            "  broker 1: k-1.invalid: nxdomain\n"
            "  broker 2: k-2.invalid: nxdomain\n"
            "  broker 3: k-3.invalid: nxdomain\n"
            "  and 97 more\n"
            "  expected: a name\n"
            "  fix: make k-1.invalid (broker 1; the others alike)\n"
            f"  source: {RULE.source}"
        )
    ]


def test_names_without_numbers_are_alike_too() -> None:
    found = [finding(1, "alpha.invalid: no", host="alpha.invalid"),
             finding(2, "beta.invalid: no", host="beta.invalid")]  # fmt: skip
    (text,) = texts(found)
    assert text == (
        "brokers 1, 2, listener EXTERNAL (scope external): 2 findings that are alike [KL011]\n"
        "  broker 1: alpha.invalid: no\n"
        "  broker 2: beta.invalid: no\n"
        "  expected: a name\n"
        "  fix: make the record\n"
        "  source: https://kafka.apache.org/documentation/#brokerconfigs_advertised.listeners"
    )


def test_several_at_the_same_brokers_need_not_say_whose() -> None:
    found = [finding(id, f"voter {n} is no name") for id in (1, 2) for n in (7, 8)]
    (text,) = texts(found)
    assert text.splitlines()[:3] == [
        "brokers 1, 2, listener EXTERNAL (scope external): 2 findings that are alike [KL011]",
        "  voter 7 is no name",
        "  voter 8 is no name",
    ]


def test_containers_and_controllers_are_named() -> None:
    found = [
        *(finding(id, container=f"kafka{id}") for id in (1, 2, 3, 4, 6)),
        finding(10001, role=Role.CONTROLLER, container="c1"),
    ]
    (group,) = grouped(found)
    assert group.subject == (
        "containers kafka1, kafka2, kafka3 and 3 more, brokers 1 to 4, 6, controller 10001, "
        "listener EXTERNAL (scope external)"
    )


def test_a_finding_of_the_whole_cluster() -> None:
    (group,) = grouped([finding(None, listener=None, scope=None)])
    assert group.subject == "cluster"


def asked(resolver: str, diagnosis: Diagnosis = Diagnosis.NXDOMAIN) -> Evidence:
    return Evidence(EvidenceKind.NONE, Lookup("k", resolver, diagnosis), "")


def test_no_broker_is_left_out_of_the_first_line() -> None:
    ids = [1, 3, 5, *range(7, 101), 200]
    (group,) = grouped(map(finding, ids))
    assert group.subject == "brokers 1, 3, 5, 7 to 100, 200, listener EXTERNAL (scope external)"


def test_a_name_that_two_dns_servers_lack_is_two_findings() -> None:
    found = [
        finding(id, f"k does not resolve at {at}: nxdomain", host="k", evidence=asked(at))
        for id, at in ((1, "192.0.2.53"), (2, "192.0.2.54"), (3, "192.0.2.53"))
    ]
    assert [[it.node for it in group.findings] for group in grouped(found)] == [[1, 3], [2]]


def test_what_is_of_no_node_has_no_name_before_it() -> None:
    (text,) = texts([finding(1, "3 are there"), finding(None, "4 are there")])
    assert text.splitlines()[1:3] == ["  broker 1: 3 are there", "  4 are there"]


def test_what_differs_in_more_than_names_stays_apart() -> None:
    found = [
        finding(1),
        finding(2, "kafka.invalid answers with loopback"),
        finding(3, listener="INTERNAL"),
        finding(4, state=FindingState.UNKNOWN),
        finding(5, severity=Severity.WARNING),
        finding(6, remedy="wait"),
        finding(7, expected="another name"),
        finding(8, scope=Scope.INTERNAL),
        finding(9, evidence=asked("192.0.2.53", Diagnosis.TIMEOUT)),
        finding(10, evidence=asked("192.0.2.53")),
        replace(finding(11), rule="KL012"),
    ]
    assert len(grouped(found)) == len(found)


def test_texts_that_differ_in_the_names_of_host_and_container_are_alike() -> None:
    found = [
        finding(
            id,
            f"{name} of c-{name} is not there",
            host=name,
            container=f"c-{name}",
            expected=f"what c-{name} has",
            remedy=f"fix {name}",
        )
        for id, name in ((1, "alpha"), (2, "beta"))
    ]
    assert texts(found) == [
        (
            "containers c-alpha, c-beta, brokers 1, 2, listener EXTERNAL (scope external): "
            "2 findings that are alike [KL011]\n"
            "  broker 1: alpha of c-alpha is not there\n"
            "  broker 2: beta of c-beta is not there\n"
            "  expected: what c-alpha has (broker 1; the others alike)\n"
            "  fix: fix alpha (broker 1; the others alike)\n"
            f"  source: {RULE.source}"
        )
    ]


def test_the_first_of_the_whole_cluster_is_called_so() -> None:
    found = [
        finding(None, f"{n} are there", listener=None, scope=None, remedy=f"make {n}")
        for n in (3, 4, 5, 6)
    ]
    assert texts(found) == [
        (
            "cluster: 4 findings that are alike [KL011]\n"
            "  3 are there\n"
            "  4 are there\n"
            "  5 are there\n"
            "  and 1 more\n"
            "  expected: a name\n"
            "  fix: make 3 (the first; the others alike)\n"
            f"  source: {RULE.source}"
        )
    ]


def test_as_many_texts_as_are_shown_leave_no_more() -> None:
    found = [finding(1, f"{n} are there") for n in (3, 4, 5)]
    (text,) = texts(found)
    assert text.splitlines()[1:5] == [
        "  3 are there",
        "  4 are there",
        "  5 are there",
        "  expected: a name",
    ]


def test_of_names_that_hold_each_other_the_longest_is_taken_out() -> None:
    assert shape("b1 and b1.example of 10.0.0.7", ["b1", "b1.example", ""]) == "% and % of #.#.#.#"


@given(st.lists(st.builds(finding, st.integers(1, 5), st.sampled_from(["a 1", "a 2", "b 1"]))))
def test_nothing_is_lost_and_the_first_comes_first(found: list[Finding]) -> None:
    groups = grouped(found)
    assert sorted(map(id, found)) == sorted(id(it) for group in groups for it in group.findings)
    assert [group.first for group in groups] == sorted(
        (group.first for group in groups),
        key=lambda it: next(i for i, f in enumerate(found) if f is it),
    )
    assert all(len(str(group).splitlines()) <= 8 for group in groups)


def in_containers(*names: str, lines: Sequence[LineToWrite] = ()) -> list[Finding]:
    """One each, with a line for itself, or all with the same ``lines``."""
    return [
        replace(
            finding(None, "advertises localhost", container=name),
            lines=tuple(lines) or (LineToWrite(name, "KAFKA_LISTENERS", f"A://{name}:9092"),),
        )
        for name in names
    ]


def test_brokers_that_each_need_a_line_of_their_own_are_one_group() -> None:
    assert len(grouped(in_containers("kafka1", "kafka2", "kafka3"))) == 1


def test_findings_that_the_same_lines_cure_are_one_group() -> None:
    names = ("kafka1", "kafka2", "kafka3")
    lines = [item.lines[0] for item in in_containers(*names)]
    (group,) = grouped(in_containers(*names, lines=lines))
    assert str(group).splitlines()[2] == (
        "  fix: make the record; write kafka1: KAFKA_LISTENERS: A://kafka1:9092; "
        "kafka2: KAFKA_LISTENERS: A://kafka2:9092; kafka3: KAFKA_LISTENERS: A://kafka3:9092"
    )


def test_findings_that_other_lines_cure_are_two_groups() -> None:
    lines = [item.lines[0] for item in in_containers("kafka1", "kafka2", "kafka3")]
    one, other = in_containers("kafka1", lines=lines), in_containers("kafka2", lines=lines[:2])
    assert len(grouped([*one, *other])) == 2


def test_that_hosts_are_not_known_yet_is_said_once() -> None:
    waiting: dict[str, Any] = {"state": FindingState.UNKNOWN, "remedy": WAITING}
    named = finding(1, "its host is not known yet", **waiting)
    whole = [
        replace(finding(None, "hosts are not known yet", listener=None, **waiting), rule=rule)
        for rule in ("KL003", "KL012")
    ]
    assert [it.first.rule for it in grouped([whole[0], named, whole[1]])] == ["KL011"]
    assert [it.first.rule for it in grouped(whole)] == ["KL003"]
