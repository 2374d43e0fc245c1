"""From an aws spec to names, groups and user data, with names known and not known yet."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from earshot.checks.plan import check_planned
from earshot.config.aws import AwsSpec
from earshot.errors import EarshotError
from earshot.facts.cluster import ClusterFacts
from earshot.listeners.properties import read_properties
from earshot.listeners.terms import Scope, UnknownHost
from earshot.names.aws import VpcDns, private_name, public_name
from earshot.names.evidence import gather
from earshot.names.policy import ResolverPolicy, SystemResolvers
from earshot.placement import aws
from earshot.placement.aws import (
    AwsPlan,
    ProvisionedNames,
    node_user_data,
    parameters_of,
    plan_aws,
    report_parameter,
    unknown_names,
)
from earshot.placement.aws_secrets import SecretVersions
from earshot.rules.evaluate import evaluate
from earshot.rules.rule import FindingState
from earshot.user_data.cloud_config import LIMIT
from tests.certificates.handed_over import FILES, hand_over
from tests.config.aws_documents import ONE_LISTENER, OWN_ZONE, REGION, TWO_LISTENERS, read_aws
from tests.user_data.properties import properties_in

OFF = VpcDns(support=True, hostnames=False)
OWN_ID = "5L6g3nShT-eMCtK-X86swQ"


def given(spec: AwsSpec) -> dict[int, ProvisionedNames]:
    """What AWS would give the nodes of ``spec``."""
    found = {}
    for turn, id in enumerate(spec.node_ids, 10):
        private, public = f"10.0.0.{turn}", f"198.51.100.{turn}"
        names = (private_name(private, REGION), public_name(public, REGION))
        if spec.zone is not None:
            own = spec.zone.broker(id) if id in spec.ids else spec.zone.controller(id)
            names = (own, own)
        has = spec.is_public(id)
        found[id] = ProvisionedNames(
            names[0], private, names[1] if has else None, public if has else None
        )
    return found


def planned(**rest: Any) -> tuple[AwsSpec, AwsPlan]:
    spec = read_aws(**rest)
    return spec, plan_aws(spec, given(spec))


def test_two_listeners_advertise_private_and_public_names() -> None:
    _, made = planned(**TWO_LISTENERS)
    assert [str(item) for item in made.plan.node(1).listeners] == [
        "INTERNAL://ip-10-0-0-10.eu-central-1.compute.internal:19092",
        "EXTERNAL://ec2-198-51-100-10.eu-central-1.compute.amazonaws.com:9092",
        "CONTROLLER://ip-10-0-0-10.eu-central-1.compute.internal:29092",
    ]


def test_a_broker_says_which_zone_it_stands_in() -> None:
    """Kafka spreads replicas over the racks that brokers have: its documentation, `broker.rack`."""
    spec, made = planned(brokers=4, controllers={"mode": "separate"})
    racks = {node.id: node.rack for node in made.plan.nodes if node.rack}
    assert racks == {id: spec.zone_of[id] for id in spec.ids}
    for node in made.plan.nodes:
        text = properties_in(
            node_user_data(made, spec, "mine", node.id, OWN_ID, "vol-00000001", "/p")
        )
        assert ("broker.rack" in text) == node.is_broker
        assert not node.is_broker or f"\nbroker.rack={spec.zone_of[node.id]}\n" in text
        assert "replica.selector" not in text, "clients read from whom they did before"


def test_one_listener_advertises_the_public_name_to_both_scopes() -> None:
    _, made = planned(**ONE_LISTENER)
    (client, _) = made.plan.node(1).listeners
    assert str(client).startswith("PLAINTEXT://ec2-198-51-100-10.")
    host = str(client.host)
    inside = made.declared["PLAINTEXT", Scope.INTERNAL, host]
    beyond = made.declared["PLAINTEXT", Scope.EXTERNAL, host]
    assert (inside.addresses, beyond.addresses) == (("10.0.0.10",), ("198.51.100.10",))


def test_own_names_lead_to_each_scopes_address() -> None:
    _, made = planned(controllers={"mode": "separate"}, **TWO_LISTENERS, **OWN_ZONE)
    assert [str(item) for item in made.plan.node(2).listeners] == [
        "INTERNAL://broker-2.kafka.example.com:19092",
        "EXTERNAL://broker-2.kafka.example.com:9092",
    ]
    host = "broker-2.kafka.example.com"
    assert made.declared["INTERNAL", Scope.INTERNAL, host].addresses == ("10.0.0.11",)
    beyond = made.declared["EXTERNAL", Scope.EXTERNAL, host]
    assert beyond.addresses == ("198.51.100.11",)
    assert beyond.why == "record broker-2.kafka.example.com in zone Z0123456789ABC"
    (quorum,) = made.plan.node(10_001).listeners
    assert str(quorum) == "CONTROLLER://controller-10001.kafka.example.com:29092"


def test_before_anything_is_there_only_the_hosts_are_missing() -> None:
    spec = read_aws(**TWO_LISTENERS)
    empty = plan_aws(spec)
    full = plan_aws(spec, given(spec))
    assert [str(item) for item in empty.plan.node(1).listeners][:2] == [
        "INTERNAL://(the network interface of broker-1: not known yet):19092",
        "EXTERNAL://(the Elastic IP of broker-1: not known yet):9092",
    ]
    blank = UnknownHost(what="x")
    for node, known in zip(empty.plan.nodes, full.plan.nodes, strict=True):
        pairs = zip(node.listeners, known.listeners, strict=True)
        assert all(
            a.model_copy(update={"host": blank}) == b.model_copy(update={"host": blank})
            for a, b in pairs
        )
    assert empty.groups == full.groups
    assert empty.declared == {}
    assert empty.addresses == {1: (), 2: (), 3: ()}


def test_groups_admit_the_clients_of_the_listeners() -> None:
    _, made = planned(**TWO_LISTENERS)
    assert [[str(rule) for rule in group.ingress] for group in made.groups] == [
        ["19092 from group brokers", "19092 from 10.0.0.0/16", "9092 from 203.0.113.0/24"],
        ["29092 from group brokers"],
    ]


class SilentResolvers(SystemResolvers):
    """No DNS server can be asked from here."""

    def configured(self) -> tuple[str, ...]:
        return ()


def checked(spec: AwsSpec, made: AwsPlan) -> list[tuple[str, FindingState]]:
    facts = replace(
        ClusterFacts.of(made.plan, "aws"),
        addresses=made.addresses,
        evidence=gather(made.plan, ResolverPolicy(), "aws", made.declared, SilentResolvers()),
        instances=made.instances,
        clients=made.clients,
    )
    return sorted({(finding.rule, finding.state) for finding in evaluate(facts)})


@pytest.mark.parametrize(
    "settings",
    [
        {},
        ONE_LISTENER,
        TWO_LISTENERS,
        {**TWO_LISTENERS, **OWN_ZONE},
        {"controllers": {"mode": "separate"}, **TWO_LISTENERS},
    ],
)
def test_what_is_computed_passes_every_rule(settings: dict[str, Any]) -> None:
    assert checked(*planned(**settings)) == []


def test_what_is_not_known_yet_is_neither_good_nor_bad() -> None:
    spec = read_aws(**TWO_LISTENERS)
    found = checked(spec, plan_aws(spec))
    assert found and {state for _, state in found} == {FindingState.UNKNOWN}


def test_a_private_name_for_external_clients_is_found() -> None:
    private = private_name("10.0.0.10", REGION)
    listeners = [
        TWO_LISTENERS["listeners"][0],
        {**TWO_LISTENERS["listeners"][1], "advertised": {"1": private}},
    ]
    found = checked(*planned(**{**TWO_LISTENERS, "listeners": listeners}))
    assert ("KL011", FindingState.VIOLATED) in found


def test_a_vpc_without_names_declares_nothing() -> None:
    spec = read_aws(**TWO_LISTENERS)
    made = plan_aws(spec, given(spec), OFF)
    assert ("KL011", FindingState.VIOLATED) in checked(spec, made)


def test_an_empty_name_is_laid_at_the_vpcs_door() -> None:
    spec = read_aws(brokers=1)
    with pytest.raises(EarshotError, match="AWS assigned none; enableDnsHostnames of the VPC: off"):
        plan_aws(spec, {1: ProvisionedNames("", "10.0.0.10")}, OFF)


def test_user_data_say_what_the_plan_says() -> None:
    spec, made = planned(secrets={"key.pem": "/kafka/{id}/key"}, **TWO_LISTENERS)
    text = node_user_data(
        made, spec, "mine", 2, OWN_ID, "vol-0123456789abcdef0", report_parameter("mine", "b")
    )
    properties = properties_in(text)
    assert "EXTERNAL://ec2-198-51-100-11.eu-central-1" in properties
    assert "/earshot/mine/b" in text and "/kafka/2/key" in text
    assert "vol0123456789abcdef0" in text


def test_a_node_that_starts_again_fetches_the_secrets_that_it_had() -> None:
    """By the number of a parameter's version: an update may have written others for the next."""
    security = {"users": [{"name": "app"}]}
    listeners = [{"name": "INTERNAL", "port": 19092, "scopes": ["internal"], "protocol": "SSL"}]
    spec, made = planned(security=security, listeners=listeners)
    versions = SecretVersions("abc", {"node-1": 3, "trusted": 2})
    text = node_user_data(made, spec, "mine", 1, OWN_ID, "vol-00000001", "/p", versions)
    words = text.split()
    assert "/earshot/mine/security/node-1:3" in words
    assert "/earshot/mine/security/trusted:2" in words
    assert "/earshot/mine/security/users" in words, "what becomes of users is always the last"
    assert "secrets of version abc" in text


def test_clients_of_listeners_that_leave_are_counted_where_there_is_room() -> None:
    def text(leaving: tuple[str, ...], filling: int = 1) -> str:
        spec, made = planned(extra={"filling": "x" * filling}, **TWO_LISTENERS)
        name = report_parameter("mine", "b")
        return node_user_data(
            made, spec, "mine", 2, OWN_ID, "vol-0123456789abcdef0", name, leaving=leaving
        )

    plain, counting = text(()), text(("EXTERNAL", "OTHER"))
    assert "for item in EXTERNAL:9092; do" in counting and "sport = :" not in plain
    assert "for item in INTERNAL:19092 EXTERNAL:9092; do" in text(("INTERNAL", "EXTERNAL"))
    plain, counting = text((), 2300), text(("EXTERNAL",), 2300)  # both without comments
    most = LIMIT - len(counting) + 2300
    assert len(text(("EXTERNAL",), most)) == LIMIT
    assert text(("EXTERNAL",), most + 1) == text((), most + 1)
    with pytest.raises(EarshotError, match=f"{LIMIT + 1} bytes"):
        text(("EXTERNAL",), LIMIT - len(plain) + 2301)


@pytest.mark.parametrize(
    "settings",
    [
        {"ready_seconds": 1200},
        {"validation": {"records": 5, "deadline": 301}},
        {"remove": "anyway"},
        {"data": "delete"},
        {"deletion_protection": True},
        {"prove": "later"},
        {"in_turn": False},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_what_concerns_only_updates_is_not_in_user_data(settings: dict[str, Any]) -> None:
    """Other user data replace the instance."""

    def text(**rest: Any) -> str:
        spec, made = planned(**TWO_LISTENERS, **rest)
        name = report_parameter("mine", "b")
        return node_user_data(made, spec, "mine", 2, OWN_ID, "vol-0123456789abcdef0", name)

    assert text(**settings) == text()


def test_user_data_need_every_name() -> None:
    spec = read_aws(brokers=1)
    made = plan_aws(spec, unknown_names(spec))
    with pytest.raises(EarshotError, match="not known yet"):
        node_user_data(made, spec, "mine", 1, OWN_ID, "vol-0123456789abcdef0", "/p")


def test_what_a_user_should_know_is_told() -> None:
    clients = {"anywhere": True}
    _, made = planned(brokers=6, **{**ONE_LISTENER, "clients": clients})
    assert [note.partition(":")[0] for note in made.notes] == [
        "6 Elastic IPs are needed in eu-central-1; AWS's default quota is 5",
        "clients.anywhere",
        "PLAINTEXT",
    ]


def test_both_names_of_a_node_are_looked_at() -> None:
    spec = read_aws(brokers=1, **TWO_LISTENERS)
    whole = given(spec)[1]
    for what, given_names in (
        ("private", replace(whole, private_name="")),
        ("public", replace(whole, public_name="")),
    ):
        for dns, why in ((None, ""), (OFF, "; enableDnsHostnames of the VPC: off")):
            with pytest.raises(EarshotError) as caught:
                plan_aws(spec, {1: given_names}, dns)
            assert str(caught.value) == (
                f"broker-1: its {what} DNS name: AWS assigned none{why}\n"
                "  allowed: a name, which needs enableDnsSupport and enableDnsHostnames of the "
                "VPC\n"
                "  fix: set both attributes on the VPC, or use `naming: zone`"
            )


@pytest.mark.parametrize(("settings", "own"), [({}, False), (OWN_ZONE, True)])
def test_what_is_foreseen_of_each_node(settings: dict[str, Any], own: bool) -> None:
    spec = read_aws(brokers=1, controllers={"mode": "separate", "count": 1}, **TWO_LISTENERS,
                    **settings)  # fmt: skip
    found = unknown_names(spec)

    def markers(name: str) -> list[str]:
        interface, elastic = f"the network interface of {name}", f"the Elastic IP of {name}"
        record = f"the record of {name}"
        return [
            f"{record} in the private zone" if own else interface,
            interface,
            f"{record} in the public zone" if own else elastic,
            elastic,
        ]

    public = [item.what for item in vars(found[1]).values() if isinstance(item, UnknownHost)]
    assert public == markers("broker-1")
    private = found[10_001]
    assert (private.public_name, private.public_address) == (None, None)
    assert [str(private.private_name), str(private.private_address)] == [
        f"({text}: not known yet)" for text in markers("controller-10001")[:2]
    ]


@pytest.mark.parametrize(
    ("settings", "notes"),
    [
        ({"brokers": 5, **TWO_LISTENERS}, []),
        ({"brokers": 4, "nat": "one", **TWO_LISTENERS}, []),
        ({"nat": "per-zone", **TWO_LISTENERS}, [6]),
        ({"brokers": 6, **TWO_LISTENERS}, [6]),
        ({"brokers": 6}, []),
    ],
)
def test_how_many_elastic_ips_are_told(settings: dict[str, Any], notes: list[int]) -> None:
    _, made = planned(**settings)
    assert list(made.notes) == [
        f"{count} Elastic IPs are needed in eu-central-1; AWS's default quota is 5"
        for count in notes
    ]


def test_a_validator_has_a_group_without_ingress() -> None:
    _, made = planned(validator=True)
    assert [(group.name, group.ingress) for group in made.groups][-1] == ("validator", ())
    assert len(made.groups) == 3
    assert made.addresses[1] == ("10.0.0.10",)


def test_a_private_zone_declares_nothing_where_the_vpc_s_dns_is_off() -> None:
    spec = read_aws(**TWO_LISTENERS, **OWN_ZONE)
    made = plan_aws(spec, given(spec), OFF)
    assert {scope for _, scope, _ in made.declared} == {Scope.EXTERNAL}
    whole = plan_aws(spec, given(spec))
    host = "broker-1.kafka.example.com"
    inside = whole.declared["INTERNAL", Scope.INTERNAL, host]
    assert inside.why == f"record {host} in the private zone kafka.example.com of the VPC"


@pytest.mark.parametrize("settings", [{}, OWN_ZONE])
def test_an_unknown_name_is_not_declared(settings: dict[str, Any]) -> None:
    spec = read_aws(brokers=1, **settings)
    half = replace(given(spec)[1], private_name=UnknownHost(what="a record"))
    made = plan_aws(spec, {1: half})
    assert made.declared == {} and made.addresses == {1: ("10.0.0.10",)}


def test_certificates_of_others_are_read_beside_the_project(tmp_path: Path) -> None:
    hosts = {id: f"broker-{id}.kafka.example.com" for id in (1, 2)}
    hand_over(tmp_path / "certs", {id: [host] for id, host in hosts.items()})
    spec = read_aws(brokers=2, security={"tls": {"from": FILES}}, **OWN_ZONE)
    before = aws.planned(spec, "mine", tmp_path / ".earshot" / "stacks" / "mine")
    ends = (datetime.now(UTC) - timedelta(minutes=5) + timedelta(days=90)).date()
    assert before.notes[-1] == f"certificates of others: that of node 1 expires first, on {ends}"
    assert {finding.rule for finding in check_planned(spec, before, ResolverPolicy()).findings} >= {
        "KL011"
    }
    root = tmp_path / ".earshot" / "stacks" / "mine" / "kafka"
    made = plan_aws(spec, given(spec), root=root)
    assert made.plan.security is not None
    assert made.plan.security.principals == ("CN=b1,O=Example", "CN=b2,O=Example")
    assert check_planned(spec, made, ResolverPolicy()).findings == ()
    for id in (1, 2):
        text = node_user_data(made, spec, "mine", id, OWN_ID, "vol-00000001", "/p")
        values = read_properties(properties_in(text)).values
        assert values["super.users"] == "User:CN=b1,O=Example;User:CN=b2,O=Example"
        assert values["ssl.truststore.location"] == "/run/kafka/secrets/trusted.pem"
        assert set(parameters_of(spec, "mine", id)) >= {f"node-{id}.pem", "trusted.pem"}
    hand_over(tmp_path / "certs", {2: [hosts[1]]})
    made = plan_aws(spec, given(spec), root=root)
    found = check_planned(spec, made, ResolverPolicy()).findings
    assert [(finding.rule, finding.node, finding.observed) for finding in found] == [
        ("KL010", 2, f"advertises {hosts[2]}, and its certificate is for {hosts[1]}")
    ]
