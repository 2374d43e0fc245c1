from typing import Any

import pytest

from earshot.listeners.model import ClusterPlan, Listener, Node
from earshot.listeners.terms import Role, Scope, UnknownHost
from earshot.names.evidence import Declaration, Evidence, EvidenceKey, EvidenceKind, gather
from earshot.names.lookup import Diagnosis, Lookup
from earshot.names.policy import ResolverPolicy, read_policy
from tests.doubles.resolvers import Table, TableAsked

KEY = ("EXTERNAL", Scope.EXTERNAL, "kafka-1.example.com")
DECLARED = {KEY: Declaration("record kafka-1 in zone Z1", ("203.0.113.1",))}


def plan(*hosts: str | UnknownHost, scopes: tuple[Scope, ...] = (Scope.EXTERNAL,)) -> ClusterPlan:
    """One broker per host, each with a listener EXTERNAL."""

    def node(id: int, host: str | UnknownHost) -> Node:
        listener = Listener(name="EXTERNAL", scopes=scopes, bind_port=9094, host=host, port=9094)
        return Node(id=id, roles=(Role.BROKER,), listeners=(listener,))

    return ClusterPlan(
        kafka_version="4.1.1",
        inter_broker="EXTERNAL",
        controller="CONTROLLER",
        replication_factor=1,
        min_insync_replicas=1,
        nodes=tuple(node(id, host) for id, host in enumerate(hosts, 1)),
    )


def external(host: str, asked: TableAsked, **policy: Any) -> Evidence:
    """The evidence for an EXTERNAL listener at ``host``."""
    evidence = gather(plan(host), ResolverPolicy(**policy), "aws", None, asked)
    return evidence["EXTERNAL", Scope.EXTERNAL, host]


def evidence(
    answer: tuple[str, ...] | Diagnosis,
    declared: dict[EvidenceKey, Declaration] | None = None,
    **others: tuple[str, ...] | Diagnosis,
) -> Evidence:
    """For kafka-1, where the external resolver says ``answer`` (and ``others`` of other names)."""
    asked = TableAsked({"192.0.2.53": {KEY[2]: answer, **others}}, ("192.0.2.53",))
    return gather(plan(KEY[2], *others), ResolverPolicy(), "aws", declared, asked)[KEY]


SILENCE = "192.0.2.53 did not answer for any name"


@pytest.mark.parametrize(("answer", "declared", "others", "kind", "addresses", "why"), [
    (("203.0.113.7",), DECLARED, {}, EvidenceKind.LIVE, ("203.0.113.7",),
     "looked up just now at 192.0.2.53"),
    (Diagnosis.NXDOMAIN, DECLARED, {}, EvidenceKind.NONE, (), "192.0.2.53 does not resolve it"),
    (Diagnosis.TIMEOUT, DECLARED, {}, EvidenceKind.DECLARED, ("203.0.113.1",),
     f"record kafka-1 in zone Z1; not looked up: {SILENCE}"),
    # a resolver that answers for other names can be reached
    (Diagnosis.TIMEOUT, DECLARED, {"other": ("203.0.113.2",)}, EvidenceKind.NONE, (),
     "192.0.2.53 does not resolve it"),
    (Diagnosis.TIMEOUT, None, {}, EvidenceKind.NONE, (),
     f"{SILENCE}, and nothing declares the name"),
])  # fmt: skip
def test_a_declaration_counts_where_its_resolver_cannot_be_reached_and_there_alone(
    answer: tuple[str, ...] | Diagnosis,
    declared: dict[EvidenceKey, Declaration] | None,
    others: dict[str, tuple[str, ...] | Diagnosis],
    kind: EvidenceKind,
    addresses: tuple[str, ...],
    why: str,
) -> None:
    found = evidence(answer, declared, **others)
    assert (found.kind, found.addresses, found.why) == (kind, addresses, why)
    if answer is Diagnosis.NXDOMAIN:
        assert found.lookup is not None and found.lookup.diagnosis is answer


@pytest.mark.parametrize("host", ["kafka.example.invalid", "KAFKA.Invalid"])
def test_an_answer_for_a_name_that_cannot_exist_is_no_evidence(host: str) -> None:
    asked = TableAsked({"192.0.2.53": {host.lower(): ("198.51.100.7",)}}, ("192.0.2.53",))
    found = external(host, asked)
    assert (found.kind, found.addresses) == (EvidenceKind.NONE, ())
    assert found.lookup is not None and found.lookup.diagnosis is Diagnosis.NXDOMAIN
    assert found.lookup.detail == (
        "no name below .invalid exists, and the server answers 198.51.100.7: it invents addresses"
    )


@pytest.mark.parametrize("placement", ["aws", "docker", "elsewhere"])
def test_an_answer_of_a_server_that_answers_everything_is_no_evidence(placement: str) -> None:
    portal = ("198.51.100.7",)
    host, short = "kafka.nobody.example", "kafka"
    table: Table = {host: portal, short: portal, f"{short}.lan": portal}
    asked = TableAsked({"192.0.2.53": table}, ("192.0.2.53",), ("lan",))
    asked.resolvers["192.0.2.53"].invented = lambda name: portal
    found = gather(plan(host, short), ResolverPolicy(), placement, None, asked)
    assert {evidence.kind for evidence in found.values()} == {EvidenceKind.NONE}
    assert {evidence.hint for evidence in found.values()} == {""}


def test_a_name_that_cannot_exist_in_dns_may_be_in_the_hosts_file() -> None:
    asked = TableAsked({"system": {"kafka.invalid": ("127.0.0.1",)}})
    key = ("EXTERNAL", Scope.HOST, "kafka.invalid")
    hosts = plan(key[2], scopes=(Scope.HOST,))
    assert gather(hosts, ResolverPolicy(), "local", None, asked)[key].kind is EvidenceKind.LIVE


def test_a_name_for_another_network_is_declared_whatever_answers_here() -> None:
    elsewhere = {KEY: Declaration("the private zone of each consumer", elsewhere=True)}
    for answer in (("203.0.113.7",), Diagnosis.NXDOMAIN):
        found = evidence(answer, elsewhere)
        assert (found.kind, found.lookup, found.addresses) == (EvidenceKind.DECLARED, None, ())
        assert found.why == (
            "the private zone of each consumer; not looked up: no resolver of scope external can "
            "be asked from here"
        )


def test_an_address_among_the_hosts_does_not_make_a_resolver_reachable() -> None:
    asked = TableAsked({"192.0.2.53": {KEY[2]: Diagnosis.TIMEOUT}}, ("192.0.2.53",))
    found = gather(plan(KEY[2], "203.0.113.2"), ResolverPolicy(), "aws", DECLARED, asked)
    assert found[KEY].kind is EvidenceKind.DECLARED
    assert found["EXTERNAL", Scope.EXTERNAL, "203.0.113.2"].kind is EvidenceKind.LIVE


def test_without_a_resolver_only_a_declaration_counts() -> None:
    names = plan("kafka-1", "kafka-2", scopes=(Scope.INTERNAL,))
    key = ("EXTERNAL", Scope.INTERNAL, "kafka-1")
    declared = {key: Declaration("alias kafka-1 on network kafka")}
    asked = TableAsked({})
    found = gather(names, ResolverPolicy(), "docker", declared, asked)
    assert found[key].kind is EvidenceKind.DECLARED
    assert found[key].why == (
        "alias kafka-1 on network kafka; "
        "not looked up: no resolver of scope internal can be asked from here"
    )
    other = found["EXTERNAL", Scope.INTERNAL, "kafka-2"]
    assert (other.kind, other.lookup) == (EvidenceKind.NONE, None)
    assert not any(resolver.asked for resolver in asked.resolvers.values())


def test_each_name_is_looked_up_once_per_resolver() -> None:
    asked = TableAsked({"192.0.2.53": {}, "system": {}}, ("192.0.2.53",))
    names = plan("a.example.com", "b.example.com", "A.example.com", scopes=tuple(Scope)[1:])
    assert len(gather(names, ResolverPolicy(), "local", None, asked)) == 9
    for resolver in asked.resolvers.values():
        assert resolver.asked == {"a.example.com": 1, "b.example.com": 1}


def test_every_scope_of_a_listener_has_its_own_evidence() -> None:
    host = "k.example.com"
    tables: dict[str, Table] = {
        "192.0.2.53": {host: ("203.0.113.1",)},
        "10.0.0.2": {host: ("10.0.0.1",)},
    }
    policy = ResolverPolicy(
        resolvers={Scope.EXTERNAL: ("192.0.2.53",), Scope.INTERNAL: ("10.0.0.2",)}
    )
    names = plan(host, scopes=(Scope.INTERNAL, Scope.EXTERNAL))
    evidence = gather(names, policy, "aws", None, TableAsked(tables))
    assert {scope: found.addresses for (_, scope, _), found in evidence.items()} == {
        Scope.INTERNAL: ("10.0.0.1",),
        Scope.EXTERNAL: ("203.0.113.1",),
    }


def test_a_hosts_file_of_this_machine_is_no_evidence_for_others() -> None:
    asked = TableAsked({"system": {"kafka": ("192.0.2.10",)}, "192.0.2.53": {}}, ("192.0.2.53",))
    names = plan("kafka", scopes=(Scope.HOST, Scope.EXTERNAL))
    found = gather(names, ResolverPolicy(), "local", None, asked)
    assert found["EXTERNAL", Scope.HOST, "kafka"].kind is EvidenceKind.LIVE
    assert found["EXTERNAL", Scope.EXTERNAL, "kafka"].kind is EvidenceKind.NONE


OFFICE, VPN = "192.0.2.53", "10.8.0.1"


def split(office: Table, vpn: Table, host: str = KEY[2], search: tuple[str, ...] = ()) -> Evidence:
    """For ``host``, where this machine is configured with the servers of two networks."""
    return external(host, TableAsked({OFFICE: office, VPN: vpn}, (OFFICE, VPN), search))


def test_a_name_that_only_the_second_network_knows_is_live() -> None:
    found = split({}, {KEY[2]: ("10.8.0.7",)})
    assert (found.kind, found.addresses) == (EvidenceKind.LIVE, ("10.8.0.7",))
    assert found.why == (
        "looked up just now at 192.0.2.53, 10.8.0.1, "
        "not resolved at all of them: 192.0.2.53: nxdomain"
    )


@pytest.mark.parametrize("failure", [Diagnosis.TIMEOUT, Diagnosis.SERVER_FAILURE])
def test_one_network_that_fails_takes_nothing_from_another(failure: Diagnosis) -> None:
    failing, knowing = {KEY[2]: failure}, {KEY[2]: ("10.8.0.7",)}
    assert split(failing, knowing).kind is EvidenceKind.LIVE
    assert split(knowing, failing).kind is EvidenceKind.LIVE


def test_a_name_that_neither_network_knows_does_not_exist() -> None:
    found = split({}, {})
    assert found.kind is EvidenceKind.NONE
    assert found.lookup is not None and found.lookup.diagnosis is Diagnosis.NXDOMAIN


def test_a_search_domain_of_this_machine_is_no_evidence_for_others() -> None:
    found = split({}, {"kafka.vpn.example": ("10.8.0.7",)}, "kafka", ("a.example", "vpn.example"))
    assert found.kind is EvidenceKind.NONE
    assert found.hint == (
        "kafka.vpn.example does resolve, but only this machine is known to append vpn.example"
    )
    assert split({}, {}, "kafka", ("a.example",)).hint == ""


def test_search_domains_say_nothing_of_servers_that_were_given() -> None:
    asked = TableAsked({VPN: {"kafka.vpn.example": ("10.8.0.7",)}}, (), ("vpn.example",))
    evidence = external("kafka", asked, resolvers={Scope.EXTERNAL: (VPN,)})
    assert (evidence.kind, evidence.hint) == (EvidenceKind.NONE, "")
    assert asked.resolvers[VPN].asked == {"kafka": 1}


def test_waived_names_are_not_looked_up() -> None:
    asked = TableAsked({"192.0.2.53": {}}, ("192.0.2.53",))
    policy = read_policy({"waived": {"KAFKA-1.example.com": "partner's DNS"}})
    found = gather(plan(KEY[2]), policy, "aws", DECLARED, asked)[KEY]
    assert (found.kind, found.why) == (EvidenceKind.NONE, "not looked up, waived: partner's DNS")
    assert not asked.resolvers["192.0.2.53"].asked


def test_hosts_that_are_not_known_yet_are_left_out() -> None:
    assert gather(plan(UnknownHost(what="Elastic IP")), ResolverPolicy(), "aws") == {}


def test_an_address_needs_no_resolver() -> None:
    evidence = external("203.0.113.1", TableAsked({}))
    assert (evidence.kind, evidence.addresses) == (EvidenceKind.LIVE, ("203.0.113.1",))


def test_no_evidence_shows_no_addresses() -> None:
    lookup = Lookup("k", "r", Diagnosis.OK, ("10.0.0.1",))
    assert Evidence(EvidenceKind.NONE, lookup, "", ("10.0.0.2",)).addresses == ()


def test_a_search_domain_is_asked_for_only_what_it_could_make_a_name() -> None:
    def hint(host: str, answer: Table, search: tuple[str, ...], **policy: Any) -> str:
        table = {"short.a.example": ("192.0.2.1",), **answer}
        return external(host, TableAsked({OFFICE: table}, (OFFICE,), search), **policy).hint

    said = "short.a.example does resolve, but only this machine is known to append a.example"
    assert hint("short", {}, ("a.example",)) == said
    assert hint("short", {"short": Diagnosis.NO_ANSWER}, ("b.example", "a.example")) == said
    assert hint("SHORT", {}, ("a.example",)) == said.replace("short", "SHORT")
    assert hint("short", {}, ()) == hint("short", {}, ("b.example",)) == ""
    answers: tuple[Diagnosis | tuple[str, ...], ...]
    answers = (Diagnosis.SERVER_FAILURE, Diagnosis.TIMEOUT, ("192.0.2.9",))
    for answer in answers:
        assert hint("short", {"short": answer}, ("a.example",)) == ""
    assert hint("short", {}, ("a.example",), waived={"short": "a reason"}) == ""
    two = {"short.b.example": ("192.0.2.2",)}
    assert hint("short", two, ("a.example", "b.example")) == said, "the first that it finds"


def test_a_name_with_dots_is_given_no_search_domain() -> None:
    asked = TableAsked({OFFICE: {"a.b.c.example": ("192.0.2.1",)}}, (OFFICE,), ("c.example",))
    assert external("a.b", asked).hint == ""
    assert asked.resolvers[OFFICE].asked == {"a.b": 1}


def test_without_a_resolver_no_search_domain_is_tried() -> None:
    evidence = external("short", TableAsked({}, (), ("a.example",)))
    why = "no resolver of scope external can be asked from here, and nothing declares the name"
    assert (evidence.kind, evidence.why, evidence.hint) == (EvidenceKind.NONE, why, "")
