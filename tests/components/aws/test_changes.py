"""What a stack on AWS may become, given what it was."""

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from earshot_pulumi.aws import preflight
from earshot_pulumi.aws.changes import HeldStack, problems
from earshot_pulumi.aws.preflight import ChangePreflightKind
from earshot_pulumi.unknown_inputs import Markers

from earshot.errors import EarshotError
from earshot.user_data.boot import NodeReport, NodeState
from tests.components.aws import registered as aws
from tests.components.aws.registered import Answers, registered
from tests.components.called import Called
from tests.config.aws_documents import INTERNAL, REGION, ZONES, read_aws

SEPARATE = {"controllers": {"mode": "separate"}}
KEPT = "vol-0123456789abcdef0"


def held_stack(**settings: Any) -> HeldStack:
    return HeldStack.of("mine", read_aws(**settings))


def refusals(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return list(problems(held_stack(**before), held_stack(**after)))


def refusal(before: dict[str, Any], after: dict[str, Any]) -> str:
    (found,) = refusals(before, after)
    return found


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {}),
        ({}, {"brokers": 5, "heap": "2g", "kafka_version": "4.2.0"}),
        ({"kafka_version": "4.1.1"}, {"kafka_version": "4.1.0"}),
        ({"volumes": {1: KEPT}}, {"volumes": {1: KEPT}}),
        ({"volumes": {1: KEPT}}, {"volumes": {1: "vol-0123456789abcdef1"}}),
        ({}, {"volumes": {1: KEPT}}),
        ({}, {"pinned": {1: ZONES[2], 2: ZONES[1], 3: ZONES[2]}, "volumes": {1: KEPT}}),
    ],
)
def test_what_leaves_data_where_it_is_may_be_done(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    assert refusals(before, after) == []


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({}, {"controllers": {"count": 1}}, "the voters 1, 2, 3 and would get 1: "),
        ({}, SEPARATE, "the voters 1, 2, 3 and would get 10001, 10002, 10003: "),
    ],
)
def test_voters_stay(before: dict[str, Any], after: dict[str, Any], said: str) -> None:
    text = refusal(before, after)
    assert said in text and "a static quorum cannot change them" in text
    assert "`controllers.count: 3`" in text and "`pulumi destroy`" in text
    assert ("`controllers.mode: combined`" in text) == (after == SEPARATE)


@pytest.mark.parametrize("change", [{"port": 29093}, {"protocol": "SSL"}])
def test_controllers_that_run_do_not_move(change: dict[str, Any]) -> None:
    text = refusal({}, {"controllers": change})
    assert "would move from PLAINTEXT on port 29092 to " in text
    assert "Keep `controllers.port`" in text


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
    before = held_stack(kafka_version="4.1.1")
    after = replace(held_stack(kafka_version=version), written=written)
    text = list(problems(before, after))
    wording = f"Kafka {version} is older than {written}, which has written the data"
    assert [wording in problem for problem in text] == [True] * refused


def test_an_inter_broker_listener_is_not_renamed_under_running_brokers() -> None:
    other = {"listeners": [{**INTERNAL, "name": "BROKERS"}]}
    text = refusal({}, other)
    assert "would change from INTERNAL (PLAINTEXT) to BROKERS (PLAINTEXT)" in text
    assert text.endswith(
        "Run the same command once with the current listeners, so that they are recorded, and then "
        "with these"
    )
    assert refusals({"brokers": 1}, {"brokers": 1, **other}) == []
    assert refusals({}, {"controllers": {"name": "QUORUM"}}) == []


def test_another_inter_broker_listener_that_is_there_already_may_be_named() -> None:
    both = [INTERNAL, {**INTERNAL, "name": "BROKERS", "port": 19093}]
    steps: list[dict[str, Any]] = [
        {},
        {"listeners": both, "inter_broker": "INTERNAL"},
        {"listeners": both, "inter_broker": "BROKERS"},
        {"listeners": both[1:]},
    ]
    for before, after in pairwise(steps):
        assert refusals(before, after) == []


def test_a_broker_goes_when_the_stacks_file_says_that_it_is_empty() -> None:
    text = refusal({"brokers": 5}, {"brokers": 3})
    assert text.startswith("broker 4, 5 would be removed")
    assert "bin/kafka-reassign-partitions.sh --bootstrap-server HOST:19092 " in text
    assert '--broker-list "1,2,3" --generate' in text
    assert '--describe --broker-list "4,5"' in text
    assert "write `drained: [4, 5]`" in text
    text = refusal({"brokers": 5}, {"brokers": 3, "drained": [5]})
    assert text.startswith("broker 4 would be removed")
    assert "write `drained: [4, 5]`" in text
    assert refusals({"brokers": 5}, {"brokers": 3, "drained": [4, 5]}) == []
    assert refusals({"brokers": 3, "drained": [4, 5]}, {"brokers": 3}) == []


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
    before = replace(held_stack(), subnets={})
    assert list(problems(before, held_stack(**change))) == [], (
        "an earlier release has remembered none"
    )


def test_a_subnet_that_a_preview_does_not_know_is_no_other_subnet() -> None:
    paths = [f"vpc.private_subnets.{zone}" for zone in ZONES]
    unknown = dict(enumerate(map(Markers(paths).text, paths), start=1))
    assert list(problems(held_stack(), replace(held_stack(), subnets=unknown))) == []


def test_nodes_follow_their_volumes_to_other_zones_one_by_one() -> None:
    volumes = {1: KEPT, 2: f"{KEPT[:-1]}1"}
    pins = {1: ZONES[1], 2: ZONES[0], 3: ZONES[2]}
    text = refusal({}, {"pinned": pins, "volumes": volumes})
    assert text.startswith("node 1, 2 would move to other zones, all at once, and so get other")
    assert f"node 1 first: `pinned: {{1: {ZONES[1]}, 2: {ZONES[1]}, 3: {ZONES[2]}}}`" in text
    one = {"pinned": {**pins, 2: ZONES[1]}, "volumes": {1: KEPT}}
    assert refusals({}, one) == []
    assert refusals(one, {"pinned": pins, "volumes": volumes}) == []


def test_a_volume_grows_and_does_not_shrink() -> None:
    large, small = {"volume": {"size_gib": 200}}, {"volume": {"size_gib": 50}}
    assert refusals({}, large) == []
    text = refusal(large, small)
    assert text.startswith(
        "the data volume of node 1, 2, 3 would shrink (of node 1 from 200 to 50 GiB), which EBS "
        "cannot do. Keep `size_gib: 200`"
    )
    assert list(problems(replace(held_stack(**large), sizes={}), held_stack(**small))) == []
    given = {"volumes": {1: KEPT, 2: f"{KEPT[:-1]}1", 3: f"{KEPT[:-1]}2"}}
    assert refusals({**large, **given}, {**small, **given}) == [], "they are not the stack's"


def test_a_node_stays_with_its_volume() -> None:
    two, three = ({"zones": ZONES[:count]} for count in (2, 3))
    text = refusal({"vpc": two}, {"vpc": three})
    assert f"cannot follow: node 3 from {ZONES[0]} to {ZONES[2]}." in text
    assert f"`pinned: {{1: {ZONES[0]}, 2: {ZONES[1]}, 3: {ZONES[0]}}}`" in text
    pins = {1: ZONES[0], 2: ZONES[1], 3: ZONES[0]}
    assert refusals({"vpc": two}, {"vpc": three, "pinned": pins}) == []


def test_a_given_volume_is_not_swapped_for_a_blank_one() -> None:
    text = refusal({"volumes": {2: KEPT}}, {})
    assert f"node 2 has its data on {KEPT}" in text
    assert f"`volumes: {{2: {KEPT}}}`" in text


def test_a_volume_of_its_own_is_not_deleted_for_a_given_one() -> None:
    text = refusal({"data": "delete"}, {"data": "keep", "volumes": {1: KEPT}})
    assert "its own volume would be deleted. Set `data: keep` and apply that first" in text


def test_everything_that_is_wrong_is_told_at_once() -> None:
    after = replace(held_stack(brokers=1, kafka_version="3.9.1"), written="4.1.1")
    assert len(list(problems(held_stack(brokers=4), after))) == 3


@pytest.fixture(autouse=True)
def nothing_else_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_archive_problems", "_settings_problems"):
        monkeypatch.setattr(preflight, name, lambda *_: [])


def props(**settings: Any) -> dict[str, Any]:
    """As they come to a provider: every number is a float."""
    return dict(json.loads(json.dumps(held_stack(**settings).to_props()), parse_int=float))


def test_what_was_is_remembered_in_the_resource_itself() -> None:
    provider = Called(ChangePreflightKind())
    settings = {"brokers": 4, "drained": [5], "volumes": {1: KEPT}, **SEPARATE}
    assert HeldStack.from_props(props(**settings)) == held_stack(**settings)
    assert provider.check({}, props(brokers=4)).failures == []
    written = {"written": "4.1.1"}
    created = provider.create(props(brokers=4) | written)
    assert provider.check(created.outs or {}, props(brokers=5)).failures == []
    (failure,) = provider.check(created.outs or {}, props(brokers=3)).failures
    assert failure.startswith("\n- broker 4 would be removed")
    updated = provider.update(props(brokers=4), props(brokers=3, drained=[4]) | written)
    assert provider.check(updated.outs or {}, props(brokers=3)).failures == []


REPORT = NodeReport(
    node=1,
    instance="i-1",
    user_data="",
    state=NodeState.IN_SYNC,
    detail="",
    at="2026-01-01T00:00:00Z",
)


@pytest.mark.parametrize(
    ("reports", "written"),
    [
        ([], ""),
        (["nothing yet"], ""),
        ([REPORT.model_copy(update={"state": NodeState.FAILED}).model_dump_json()], ""),
        (["nothing yet", REPORT.model_dump_json()], "4.2.0"),
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
    provider, before = Called(ChangePreflightKind()), props() | {"region": REGION, "written": ""}
    assert not provider.differs(before, before | {"written": "4.1.1"})
    assert provider.differs(before, before | {"written": "4.1.1", "drained": [4]})


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
            assert all(item.depends_on(first) for item in engine.of(kind).values())
        assert HeldStack.from_props(first.inputs) == held_stack(**SEPARATE)
        names = [f"broker-{id}" for id in (1, 2, 3)] + [
            f"controller-{10000 + id}" for id in (1, 2, 3)
        ]
        assert first.inputs["reports"] == [f"/earshot/mine/{name}" for name in names]
