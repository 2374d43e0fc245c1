"""Changes of a stack on AWS: those that are allowed, and the refusals of others."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from earshot_pulumi.aws import preflight
from earshot_pulumi.aws.changes import HeldStack, problems
from earshot_pulumi.aws.preflight import ChangePreflightKind
from earshot_pulumi.properties import read, write
from earshot_pulumi.unknown_inputs import Markers

from earshot.errors import EarshotError
from earshot.user_data.boot import NodeState
from tests.components.aws import registered as aws
from tests.components.aws.registered import Answers, registered
from tests.components.aws.test_readiness_reports import ONE, report
from tests.components.called import Called
from tests.config.aws_documents import INTERNAL, REGION, ZONES, read_aws

SEPARATE = {"controllers": {"mode": "separate"}}
KEPT = "vol-0123456789abcdef0"


VOTERS = "the quorum has the voters 1, 2, 3 and"
VOTERS_STAY = ["a static quorum cannot change them", "`controllers.count: 3`", "`pulumi destroy`"]
CONTROLLERS_STAY = [
    "the controllers would move from PLAINTEXT on port 29092 to ",
    "Keep `controllers.port` and `controllers.protocol`",
]


def held_stack(**settings: Any) -> HeldStack:
    return HeldStack.of("mine", read_aws(**settings))


def refusals(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    return list(problems(held_stack(**old), held_stack(**new)))


def refusal(old: dict[str, Any], new: dict[str, Any]) -> str:
    (text,) = refusals(old, new)
    return text


BOTH = [INTERNAL, {**INTERNAL, "name": "BROKERS", "port": 19093}]
RENAMED = {"listeners": [{**INTERNAL, "name": "BROKERS"}]}
PINS = {1: ZONES[0], 2: ZONES[1], 3: ZONES[0]}
LARGE, SMALL = {"volume": {"size_gib": 200}}, {"volume": {"size_gib": 50}}
GIVEN = {"volumes": {1: KEPT, 2: f"{KEPT[:-1]}1", 3: f"{KEPT[:-1]}2"}}
TWO_ZONES, THREE_ZONES = ({"vpc": {"zones": ZONES[:count]}} for count in (2, 3))


@pytest.mark.parametrize(("old", "new"), [
    ({}, {}),
    ({}, {"brokers": 5, "heap": "2g", "kafka_version": "4.2.0"}),
    ({"kafka_version": "4.1.1"}, {"kafka_version": "4.1.0"}),
    ({"volumes": {1: KEPT}}, {"volumes": {1: KEPT}}),
    ({"volumes": {1: KEPT}}, {"volumes": {1: "vol-0123456789abcdef1"}}),
    ({}, {"volumes": {1: KEPT}}),
    ({}, {"pinned": {1: ZONES[2], 2: ZONES[1], 3: ZONES[2]}, "volumes": {1: KEPT}}),
    ({}, {"controllers": {"name": "QUORUM"}}),
    ({"brokers": 1}, {"brokers": 1, **RENAMED}),
    ({}, {"listeners": BOTH, "inter_broker": "INTERNAL"}),
    ({"listeners": BOTH, "inter_broker": "INTERNAL"},
     {"listeners": BOTH, "inter_broker": "BROKERS"}),
    ({"listeners": BOTH, "inter_broker": "BROKERS"}, {"listeners": BOTH[1:]}),
    ({"brokers": 5}, {"brokers": 3, "drained": [4, 5]}),
    ({"brokers": 3, "drained": [4, 5]}, {"brokers": 3}),
    ({}, LARGE),
    ({**LARGE, **GIVEN}, {**SMALL, **GIVEN}),  # the volumes are not the stack's
    (TWO_ZONES, {**THREE_ZONES, "pinned": PINS}),
])  # fmt: skip
def test_changes_that_data_and_running_nodes_survive(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    assert refusals(old, new) == []


@pytest.mark.parametrize(
    ("old", "new", "texts"),
    [
        ({}, {"controllers": {"count": 1}}, [f"{VOTERS} would get 1: ", *VOTERS_STAY]),
        ({}, SEPARATE, [f"{VOTERS} would get 10001, 10002, 10003: ", *VOTERS_STAY]),
        ({}, {"controllers": {"port": 29093}}, CONTROLLERS_STAY),
        ({}, {"controllers": {"protocol": "SSL"}}, CONTROLLERS_STAY),
        ({}, RENAMED, [
            ("the listener through which nodes reach the brokers "
             "would change from INTERNAL (PLAINTEXT) to BROKERS (PLAINTEXT)"),
            ("Run the same command once with the current listeners, so that they are "
             "recorded, and then with these"),
        ]),
        ({"brokers": 5}, {"brokers": 3}, [
            "broker 4, 5 would be removed",
            "bin/kafka-reassign-partitions.sh --bootstrap-server HOST:19092 ",
            '--broker-list "1,2,3" --generate',
            '--describe --broker-list "4,5"',
            "write `drained: [4, 5]`",
            "keep the broker",
        ]),
        ({"brokers": 5}, {"brokers": 3, "drained": [5]},
         ["broker 4 would be removed", "write `drained: [4, 5]`", "keep the broker"]),
        (LARGE, SMALL, [
            ("the data volume of node 1, 2, 3 would shrink (of node 1 from 200 to 50 GiB), which "
             "EBS cannot do. Keep `size_gib: 200`"),
        ]),
        (TWO_ZONES, THREE_ZONES, [
            ("nodes would move to another zone, where their data volumes "
             f"cannot follow: node 3 from {ZONES[0]} to {ZONES[2]}."),
            f"`pinned: {{1: {ZONES[0]}, 2: {ZONES[1]}, 3: {ZONES[0]}}}`",
            "`volumes: {3: vol-…}`",
        ]),
        ({"volumes": {2: KEPT}}, {},
         [f"node 2 has its data on {KEPT}", f"`volumes: {{2: {KEPT}}}`"]),
        ({"data": "delete"}, {"data": "keep", "volumes": {1: KEPT}},
         [(f"node 1 would get {KEPT}, and its own volume would be deleted. "
           "Set `data: keep` and apply that first")]),
    ],
)  # fmt: skip
def test_changes_that_would_lose_data_or_stop_nodes(
    old: dict[str, Any], new: dict[str, Any], texts: list[str]
) -> None:
    """The refusal has ``texts`` in their order: the first at its beginning, the last at its end."""
    text = refusal(old, new)
    assert re.fullmatch(".*".join(map(re.escape, texts)), text, re.DOTALL), text
    assert ("`controllers.mode: combined`" in text) == (new == SEPARATE)


@pytest.mark.parametrize(
    ("written", "version", "refused"),
    [
        ("4.1.1", "4.0.1", True),
        ("4.1.1", "4.1.0", False),
        ("4.0.1", "4.0.1", False),
        ("", "3.9.1", False),
    ],
)
def test_data_goes_forward_only(written: str, version: str, refused: bool) -> None:
    old = held_stack(kafka_version="4.1.1")
    new = replace(held_stack(kafka_version=version), written=written)
    text = f"Kafka {version} is older than {written}, which has written the data"
    assert [text in problem for problem in problems(old, new)] == [True] * refused


@pytest.mark.parametrize(
    "change",
    [
        {"place": "public"},
        {"vpc": {"zones": ZONES, "cidr": "10.1.0.0/16"}},
        {"vpc": {"zones": ZONES, "id": "vpc-0123abcd",
                 "private_subnets": {it: f"subnet-0000000{it[-1]}" for it in ZONES}}},
    ],
)  # fmt: skip
def test_nodes_stay_in_their_subnets(change: dict[str, Any]) -> None:
    text = refusal({}, change)
    assert text.startswith("node 1, 2, 3 would move to another subnet (node 1 from 10.0.16.0/20 to")
    assert "Keep `place`, and `vpc` with its `id`, `cidr` and subnets" in text
    old = replace(held_stack(), subnets={})
    assert list(problems(old, held_stack(**change))) == [], "an earlier release has none"


def test_the_size_of_volumes_of_an_earlier_release_is_unknown() -> None:
    old = replace(held_stack(**LARGE), sizes={})
    assert list(problems(old, held_stack(**SMALL))) == []


def test_a_subnet_that_a_preview_does_not_know_is_no_other_subnet() -> None:
    paths = [f"vpc.private_subnets.{zone}" for zone in ZONES]
    unknown = dict(enumerate(map(Markers(paths).text, paths), start=1))
    assert list(problems(held_stack(), replace(held_stack(), subnets=unknown))) == []


def test_nodes_follow_their_volumes_to_other_zones_one_by_one() -> None:
    volumes = {1: KEPT, 2: f"{KEPT[:-1]}1"}
    pins = {1: ZONES[1], 2: ZONES[0], 3: ZONES[2]}
    text = refusal({}, {"pinned": pins, "volumes": volumes})
    assert text.startswith("node 1, 2 would move to other zones at the same time, and get other")
    assert f"node 1 first: `pinned: {{1: {ZONES[1]}, 2: {ZONES[1]}, 3: {ZONES[2]}}}`" in text
    step = {"pinned": {**pins, 2: ZONES[1]}, "volumes": {1: KEPT}}
    assert refusals({}, step) == []
    assert refusals(step, {"pinned": pins, "volumes": volumes}) == []


def test_all_problems_are_in_one_refusal() -> None:
    new = replace(held_stack(brokers=1, kafka_version="3.9.1"), written="4.1.1")
    assert len(list(problems(held_stack(brokers=4), new))) == 3


@pytest.fixture(autouse=True)
def without_other_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_archive_problems", "_settings_problems"):
        monkeypatch.setattr(preflight, name, lambda *_: [])


def props(**settings: Any) -> dict[str, Any]:
    """As a provider receives them: every number is a float."""
    return dict(json.loads(json.dumps(write(held_stack(**settings))), parse_int=float))


def test_the_last_settings_are_in_the_resource() -> None:
    provider = Called(ChangePreflightKind())
    settings = {"brokers": 4, "drained": [5], "volumes": {1: KEPT}, **SEPARATE}
    assert read(HeldStack, props(**settings)) == held_stack(**settings)
    assert provider.check({}, props(brokers=4)).failures == []
    written = {"written": "4.1.1"}
    created = provider.create(props(brokers=4) | written)
    assert provider.check(created.outs or {}, props(brokers=5)).failures == []
    (failure,) = provider.check(created.outs or {}, props(brokers=3)).failures
    assert failure.startswith("\n- broker 4 would be removed")
    updated = provider.update(props(brokers=4), props(brokers=3, drained=[4]) | written)
    assert provider.check(updated.outs or {}, props(brokers=3)).failures == []


@pytest.mark.parametrize(
    ("reports", "written"),
    [
        ([], ""),
        (["nothing yet"], ""),
        ([report(ONE, NodeState.FAILED)], ""),
        (["nothing yet", report(ONE)], "4.2.0"),
    ],
)
def test_a_version_has_written_the_data_when_a_node_has_served(
    reports: list[str], written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = {f"/earshot/mine/broker-{id}": text for id, text in enumerate(reports, 1)}
    monkeypatch.setattr(preflight, "reader", lambda _config, _region: lambda _names: answer)
    first = props(kafka_version="4.2.0") | {"region": REGION, "reports": list(answer)}
    reported = {key: first[key] for key in ("region", "reports")}
    checked = Called(ChangePreflightKind()).check(first, props(kafka_version="4.1.1") | reported)
    assert checked.inputs["written"] == written
    assert bool(checked.failures) is bool(written)
    later = Called(ChangePreflightKind()).check(checked.inputs, props(kafka_version="4.3.0"))
    if written:
        assert later.inputs["written"] == written, "what has formatted the data stays"


def test_that_a_node_has_served_meanwhile_is_no_change() -> None:
    provider, olds = Called(ChangePreflightKind()), props() | {"region": REGION, "written": ""}
    assert not provider.differs(olds, olds | {"written": "4.1.1"})
    assert provider.differs(olds, olds | {"written": "4.1.1", "drained": [4]})


def test_if_the_writer_of_the_data_is_unknown_nothing_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unreachable(_config: object, _region: str) -> None:
        raise EarshotError("SSM", observed="cannot be read")

    monkeypatch.setattr(preflight, "reader", unreachable)
    first = props() | {"region": REGION, "reports": ["/earshot/mine/broker-1"]}
    assert Called(ChangePreflightKind()).check(first, props(kafka_version="4.0.0")).failures == []
    assert (
        capsys.readouterr().out == "whether a node has served is not known: SSM: cannot be read\n"
    )


def test_nothing_that_holds_data_is_touched_before() -> None:
    for answers in (Answers(), Answers(preview=True)):
        engine = registered(read_aws(**SEPARATE), answers)
        first = engine.one(aws.PREFLIGHT)
        assert first.is_below(engine.one(aws.GATE))
        for kind in (aws.INSTANCE, aws.VOLUME):
            assert len(engine.of(kind)) == 6
            assert all(resource.depends_on(first) for resource in engine.of(kind).values())
        assert read(HeldStack, first.inputs) == held_stack(**SEPARATE)
        names = [*(f"broker-{id}" for id in (1, 2, 3)), *(f"controller-1000{n}" for n in (1, 2, 3))]
        assert first.inputs["reports"] == [f"/earshot/mine/{name}" for name in names]
