"""The steps of a change: in each of them, every client reaches the brokers."""

import random
from typing import Any

import pytest

from earshot import plan as as_planned
from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan, SecurityPlan
from earshot.listeners.terms import Mechanism
from earshot.transition.refusal import no_order
from earshot.transition.steps import Step, leaving, transition
from tests.raised import raised
from tests.transition.pairs import changes, planned
from tests.transition.walk import REFUSED, Order, walked

PAIRS = 50

INTERNAL = {"name": "INTERNAL", "port": 19092, "scopes": ["internal"]}
REPL = {"name": "REPL", "port": 19192, "scopes": ["internal"]}
THIRD = {"name": "THIRD", "port": 19292, "scopes": ["internal"]}
EXTERNAL = {"name": "EXTERNAL", "port": 9092, "scopes": ["host"]}


def plan(*listeners: dict[str, Any], **rest: Any) -> ClusterPlan:
    return planned({"brokers": 3, "listeners": list(listeners), **rest})


BEFORE = plan(INTERNAL, EXTERNAL)
RENAMED = plan(REPL, EXTERNAL)


def texts(steps: tuple[Step, ...]) -> list[str]:
    return [step.text for step in steps]


def offered(steps: tuple[Step, ...]) -> list[tuple[str, ...]]:
    """The client listeners of each step, the one between brokers first."""
    return [
        (
            step.plan.inter_broker,
            *(name for name in step.plan.listener_names if name != step.plan.inter_broker),
        )
        for step in steps
    ]


def test_another_listener_between_brokers_takes_three_steps() -> None:
    steps = transition(BEFORE, RENAMED)
    assert texts(steps) == [
        "REPL added next to INTERNAL",
        "brokers reach each other through REPL",
        "INTERNAL removed",
    ]
    assert offered(steps) == [
        ("INTERNAL", "EXTERNAL", "REPL"),
        ("REPL", "INTERNAL", "EXTERNAL"),
        ("REPL", "EXTERNAL"),
    ]
    assert [step.restarts for step in steps] == [(1, 2, 3)] * 3
    assert steps[-1].plan == RENAMED


def test_each_step_can_be_continued_or_reverted() -> None:
    first, second, third = transition(BEFORE, RENAMED)
    assert transition(first.plan, RENAMED) == (second, third)
    assert transition(second.plan, RENAMED) == (third,)
    assert transition(third.plan, RENAMED) == ()
    assert texts(transition(first.plan, BEFORE)) == ["REPL removed"]
    assert texts(transition(second.plan, BEFORE)) == [
        "brokers reach each other through INTERNAL",
        "REPL removed",
    ]


def test_an_interrupted_step_is_continued_or_reverted() -> None:
    first, second, third = transition(BEFORE, RENAMED)
    assert transition(BEFORE, RENAMED, begun=[first.plan]) == (first, second, third)
    assert transition(first.plan, RENAMED, begun=[second.plan]) == (second, third)
    reverted = transition(first.plan, BEFORE, begun=[second.plan])
    assert texts(reverted) == [
        "back to the listeners before the step that was interrupted",
        "REPL removed",
    ]
    assert [step.plan for step in reverted] == [first.plan, BEFORE]
    assert [step.plan for step in transition(BEFORE, BEFORE, begun=[first.plan])] == [BEFORE]


@pytest.mark.parametrize(("before", "wanted", "expected"), [
    *((BEFORE, wanted, expected) for wanted, expected in (
        (plan(INTERNAL, EXTERNAL), []),
        (plan(INTERNAL, EXTERNAL | {"port": 9492}), ["EXTERNAL at other addresses"]),
        (plan(INTERNAL), ["EXTERNAL removed"]),
        (plan(INTERNAL, EXTERNAL, REPL), ["REPL added"]),
        (plan(INTERNAL, EXTERNAL, extra={"num.io.threads": "4"}), ["other settings"]),
        (plan(INTERNAL, EXTERNAL, brokers=4), ["with broker 4"]),
        (plan(INTERNAL, EXTERNAL, brokers=2), ["without broker 3"]),
        (plan(INTERNAL, EXTERNAL, brokers=1), ["without broker 2 and 3"]),
        (plan(INTERNAL, EXTERNAL, brokers=6), ["with broker 4, 5 and 6"]),
        (plan(INTERNAL, EXTERNAL | {"protocol": "SSL"}), ["EXTERNAL from PLAINTEXT to SSL"]),
        (plan(INTERNAL, EXTERNAL, REPL, inter_broker="REPL"),
         ["REPL added", "brokers reach each other through REPL"]),
        (plan(INTERNAL, EXTERNAL | {"name": "A", "port": 1}, EXTERNAL | {"name": "B", "port": 2}),
         ["A and B added next to EXTERNAL", "EXTERNAL removed"]),
        (plan(REPL | {"protocol": "SASL_SSL"}, EXTERNAL, brokers=4),
         ["REPL added next to INTERNAL", "brokers reach each other through REPL",
          "INTERNAL removed; with broker 4"]),
    )),
    # while the protocol of theirs changes, brokers use another listener: one that stays, also
    # where another one comes, one that comes, one that goes
    (plan(INTERNAL, EXTERNAL, REPL),
     plan(INTERNAL | {"protocol": "SASL_PLAINTEXT"}, EXTERNAL, REPL),
     ["brokers reach each other through REPL", "INTERNAL from PLAINTEXT to SASL_PLAINTEXT",
      "brokers reach each other through INTERNAL"]),
    (plan(INTERNAL, EXTERNAL, REPL), plan(INTERNAL | {"protocol": "SSL"}, THIRD, EXTERNAL, REPL),
     ["THIRD added; brokers reach each other through REPL", "INTERNAL from PLAINTEXT to SSL",
      "brokers reach each other through INTERNAL"]),
    (BEFORE, plan(INTERNAL | {"protocol": "SSL"}, REPL, EXTERNAL),
     ["REPL added", "brokers reach each other through REPL", "INTERNAL from PLAINTEXT to SSL",
      "brokers reach each other through INTERNAL"]),
    (plan(INTERNAL, REPL, EXTERNAL), plan(INTERNAL | {"protocol": "SSL"}, EXTERNAL),
     ["brokers reach each other through REPL", "INTERNAL from PLAINTEXT to SSL",
      "brokers reach each other through INTERNAL", "REPL removed"]),
])  # fmt: skip
def test_steps_are_as_few_as_can_be(
    before: ClusterPlan, wanted: ClusterPlan, expected: list[str]
) -> None:
    assert texts(transition(before, wanted)) == expected


def test_brokers_go_first_and_come_last_and_topics_have_no_more_replicas_than_brokers() -> None:
    fewer, more = (plan(REPL, EXTERNAL, brokers=count) for count in (2, 4))
    steps = transition(BEFORE, fewer)
    assert texts(steps) == [
        "REPL added next to INTERNAL; without broker 3",
        "brokers reach each other through REPL",
        "INTERNAL removed",
    ]
    assert [len(step.plan.nodes) for step in steps] == [2, 2, 2]
    assert {(it.plan.replication_factor, it.plan.min_insync_replicas) for it in steps} == {(2, 1)}
    assert [step.restarts for step in steps] == [(1, 2)] * 3
    steps = transition(BEFORE, more)
    assert [len(step.plan.nodes) for step in steps] == [3, 3, 4]
    assert [step.restarts for step in steps] == [(1, 2, 3)] * 3


@pytest.mark.parametrize(("current", "wanted", "expected", "uses"), [
    (BEFORE, plan(INTERNAL | {"scopes": ["host"]}, EXTERNAL, REPL),
     ["REPL added", "brokers reach each other through REPL", "INTERNAL at other addresses"],
     ["INTERNAL", "REPL", "REPL"]),
    (BEFORE, plan(INTERNAL | {"scopes": ["host"]}, EXTERNAL | {"scopes": ["internal"]}),
     ["EXTERNAL at other addresses", "brokers reach each other through EXTERNAL",
      "INTERNAL at other addresses"], ["INTERNAL", "EXTERNAL", "EXTERNAL"]),
    (plan(INTERNAL, EXTERNAL, REPL, inter_broker="INTERNAL"),
     plan(INTERNAL | {"scopes": ["host"]}, EXTERNAL, REPL),
     ["brokers reach each other through REPL", "INTERNAL at other addresses"], ["REPL", "REPL"]),
])  # fmt: skip
def test_what_brokers_use_keeps_its_address_until_they_use_another_one(
    current: ClusterPlan, wanted: ClusterPlan, expected: list[str], uses: list[str]
) -> None:
    steps = transition(current, wanted)
    assert texts(steps) == expected
    assert [step.plan.inter_broker for step in steps] == uses
    assert [_hosts(step.plan) for step in steps] == [{"b1.internal.example"}] * len(steps)


def _hosts(plan: ClusterPlan) -> set[object]:
    """The hosts that broker 1 advertises to the others."""
    return {
        listener.host for listener in plan.node(1).listeners if listener.name == plan.inter_broker
    }


PUBLISHED = {1: 39092, 2: 39093, 3: 39094}
OTHERS = {1: 49092, 2: 49093, 3: 49094}


def on_docker(external: dict[int, int], public: dict[int, int] | None) -> ClusterPlan:
    """Brokers in containers, of which clients outside know the published ports alone."""
    listeners = [INTERNAL, EXTERNAL | {"published": external}]
    if public:
        listeners.append(
            {"name": "PUBLIC", "port": 9192, "scopes": ["external"], "published": public}
        )
    hosts = [{"external": "kafka.example.org"}]
    return as_planned({"placement": "docker", "hosts": hosts, "listeners": listeners})


@pytest.mark.parametrize(("current", "wanted", "reason"), [
    (on_docker(PUBLISHED, OTHERS), on_docker(OTHERS, PUBLISHED),
     "port 49092 of node 1, 49093 of node 2 and more would change from PUBLIC to EXTERNAL"),
    (on_docker(PUBLISHED, None), on_docker(OTHERS, PUBLISHED),
     "port 39092 of node 1, 39093 of node 2, 39094 of node 3 would change from EXTERNAL to "),
])  # fmt: skip
def test_a_published_port_is_not_handed_over_in_one_go(
    current: ClusterPlan, wanted: ClusterPlan, reason: str
) -> None:
    assert raised(EarshotError, transition, current, wanted).observed.startswith(reason)


def test_a_port_within_a_container_is_no_published_one() -> None:
    wanted = on_docker({1: 19092, 2: 19093, 3: 19094}, None)
    assert texts(transition(on_docker(PUBLISHED, None), wanted)) == ["EXTERNAL at other addresses"]


def test_a_single_broker_needs_one_step_to_use_another_listener() -> None:
    alone = plan(INTERNAL, EXTERNAL, REPL, brokers=1)
    wanted = plan(INTERNAL | {"protocol": "SSL"}, EXTERNAL, brokers=1)
    assert texts(transition(alone, wanted)) == ["INTERNAL from PLAINTEXT to SSL; REPL removed"]


def test_properties_of_both_plans_stand_while_both_listeners_do() -> None:
    old = plan(INTERNAL, EXTERNAL, extra={"listener.name.internal.a": "1", "b": "1"})
    new = plan(REPL, EXTERNAL, extra={"listener.name.repl.a": "1", "b": "2"})
    first, _, last = transition(old, new)
    both = {"listener.name.internal.a": "1", "listener.name.repl.a": "1", "b": "2"}
    assert dict(first.plan.extra) == both
    assert last.plan.extra == new.extra


def test_what_leaves_is_known_at_each_step() -> None:
    steps = transition(BEFORE, RENAMED)
    assert [sorted(leaving(step.plan, RENAMED)) for step in steps] == [["INTERNAL"]] * 2 + [[]]
    secured = plan(INTERNAL, EXTERNAL | {"protocol": "SSL"})
    assert leaving(BEFORE, secured) == {"EXTERNAL"}


REFUSALS = [
    (plan(INTERNAL, EXTERNAL, controllers={"count": 3}),
     "the quorum has the voters 1 and would get 1, 2, 3: a static quorum cannot change them",
     ("keep `controllers.mode` and `controllers.count`; other voters need a new cluster with "
      "new data")),
    (plan(INTERNAL, EXTERNAL, controllers={"count": 1, "port": 29192}),
     ("the controllers would move from b1.controller.example:29092 to "
      "b1.controller.example:29192 while they run: during a rolling restart no majority "
      "could connect to each other"),
     ("keep the controllers' addresses; or stop the cluster first (`pulumi destroy`; with "
      "`data: keep` it keeps the data)")),
    (plan(INTERNAL, EXTERNAL, controllers={"count": 1, "protocol": "SSL"}),
     ("the controllers' listener would change from CONTROLLER (PLAINTEXT) to CONTROLLER "
      "(SSL) while they run: the node restarted first would not reach the others"),
     ("keep the controllers' listener (`name: CONTROLLER`, `protocol: PLAINTEXT`); or stop "
      "the cluster first (`pulumi destroy`; with `data: keep` it keeps the data)")),
    (plan(REPL | {"port": 19092}, EXTERNAL),
     ("port 19092 of node 1, 19092 of node 2, 19092 of node 3 would change from INTERNAL to "
      "REPL in one step, and clients of INTERNAL would get the addresses of REPL"),
     ("give REPL a port that no listener has now; a later change can give it port 19092, "
      "once INTERNAL does not use it")),
    (plan(INTERNAL | {"protocol": "SSL"}, EXTERNAL),
     ("INTERNAL, through which brokers reach each other, would change from PLAINTEXT to SSL: "
      "a listener has one protocol, and the brokers restarted first would not reach the others"),
     ("keep INTERNAL, add a listener of scope internal with SSL, another name and another "
      "port, and set `inter_broker` to it")),
]  # fmt: skip


@pytest.mark.parametrize(("wanted", "reason", "way"), REFUSALS)
def test_what_no_order_can_do_is_refused_with_the_way(
    wanted: ClusterPlan, reason: str, way: str
) -> None:
    assert str(raised(EarshotError, transition, BEFORE, wanted)) == (
        f"nothing was changed: running brokers cannot make this change: {reason}\n  fix: {way}"
    )


def secured(plan: ClusterPlan, **security: Any) -> ClusterPlan:
    """``plan`` with certificates; ``security`` are fields of its `SecurityPlan`."""
    settings = SecurityPlan(folder="/f", mechanism=Mechanism.SCRAM_SHA_512, **security)
    return plan.model_copy(update={"security": settings})


def test_security_comes_beside_what_is_in_plain_text_and_goes_with_a_stop_alone() -> None:
    listeners = (
        REPL | {"protocol": "SSL"},
        EXTERNAL | {"name": "PUBLIC", "port": 9192, "protocol": "SASL_SSL"},
    )
    wanted = secured(plan(*listeners))
    steps = transition(BEFORE, wanted)
    assert texts(steps) == [
        (
            "REPL and PUBLIC added next to INTERNAL and EXTERNAL; nodes get certificates, and "
            "clients users"
        ),
        "brokers reach each other through REPL",
        "INTERNAL and EXTERNAL removed",
    ]
    assert all(step.plan.security == wanted.security for step in steps)
    assert texts(transition(BEFORE, BEFORE, [steps[0].plan])) == [
        "back to the listeners before the step that was interrupted"
    ]
    for plain in (BEFORE, plan(INTERNAL, EXTERNAL, extra={"num.partitions": "3"})):
        assert raised(EarshotError, transition, wanted, plain).observed == (
            "`security` would be removed while brokers run: those restarted first would have no "
            "certificates, which the others require"
        )


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"extra": (("authorizer.class.name", "theirs"),)}, "authorizer.class.name"),
        ({"nodes": plan(INTERNAL, EXTERNAL | {"protocol": "SSL"}).nodes}, "EXTERNAL (SSL)"),
    ],
)
def test_security_is_refused_beside_security_settings_of_the_users_own(
    changes: dict[str, Any], shown: str
) -> None:
    error = raised(EarshotError, transition, BEFORE.model_copy(update=changes), secured(BEFORE))
    assert str(error) == (
        "nothing was changed: running brokers cannot make this change: `security` would be added "
        f"while brokers run with the user's {shown}: those restarted first would not know "
        "which authorities the others trust\n"
        "  fix: stop the cluster first (`pulumi destroy`; with `data: keep` it keeps the data)"
    )


def test_nodes_keep_the_source_of_their_certificates_while_brokers_run() -> None:
    own, given = secured(BEFORE), secured(BEFORE, principals=("CN=b1",))
    for running, wanted in ((own, given), (given, own)):
        assert raised(EarshotError, transition, running, wanted).observed == (
            "nodes would get certificates from another source while brokers run: the others would "
            "not trust those restarted first"
        )


def test_an_authority_that_an_interrupted_step_removed_issues_nothing_before_all_trust_it() -> None:
    """The step has removed its key, so it would be another authority of that number."""
    both, alone, back = (secured(BEFORE, authorities=ids) for ids in ((2, 1), (2,), (1, 2)))
    assert texts(transition(both, both, (alone,))) == [
        "back to the listeners before the step that was interrupted"
    ]
    error = raised(EarshotError, transition, both, back, (alone,))
    assert "authority 1 would replace authority 2 in one step" in str(error)
    assert "set `security.tls.authorities` to [2, 1] first" in str(error)


def test_an_authority_takes_over_once_all_trust_both() -> None:
    way = [secured(BEFORE, authorities=ids) for ids in ((1,), (1, 2), (2, 1), (2,))]
    for before, after, words in zip(way, way[1:], TAKEN_OVER, strict=False):
        (step,) = transition(before, after)
        assert (step.text, step.restarts) == (words, (1, 2, 3))
    for first, last in ((0, 2), (0, 3), (1, 3), (2, 0)):
        error = raised(EarshotError, transition, way[first], way[last])
        old, new = ((1, 1, 2, 2)[it] for it in (first, last))
        assert str(error) == (
            "nothing was changed: running brokers cannot make this change: authority "
            f"{new} would replace authority {old} in one step: nodes and clients that trust only "
            "one of them would refuse certificates of the other\n  fix: set "
            f"`security.tls.authorities` to [{old}, {new}] first, and give clients new files "
            f"(`earshot client`); then set [{new}, {old}], then [{new}], an update each; or stop "
            "the cluster first (`pulumi destroy`; with `data: keep` it keeps the data)"
        )


TAKEN_OVER = (
    "authorities 1 and 2 are trusted, and 1 issues certificates",
    "authorities 2 and 1 are trusted, and 2 issues certificates",
    "authority 2 alone is trusted",
)


@pytest.mark.parametrize(
    ("wanted", "shown"), [(("CN=b1", "CN=c2", "CN=c3"), "CN=c2, CN=c3"), (("CN=b1",), "CN=b1")]
)
def test_nodes_keep_the_subjects_of_their_certificates_while_brokers_run(
    wanted: tuple[str, ...], shown: str
) -> None:
    subjects = ("CN=b1", "CN=b2", "CN=b3")
    running = secured(BEFORE, principals=subjects)
    changed = secured(BEFORE, principals=wanted)
    assert raised(EarshotError, transition, running, changed).observed == (
        f"nodes would get certificates for {shown} while brokers run: Kafka authorizes nodes by "
        "these subjects, and nodes restarted later do not have them in their settings"
    )
    transition(running, secured(BEFORE, principals=subjects[::-1]))
    four = plan(INTERNAL, EXTERNAL, brokers=4)
    transition(running, secured(four, principals=(*subjects, "CN=b4")))
    alone = plan(INTERNAL, EXTERNAL, brokers=1)
    transition(secured(alone, principals=subjects[:1]), secured(alone, principals=wanted[-1:]))


@pytest.mark.parametrize(("running", "wanted", "ports"), [
    (plan(INTERNAL, EXTERNAL, brokers=4), plan(REPL | {"port": 19092}, EXTERNAL, brokers=4),
     ("port 19092 of node 1, 19092 of node 2, 19092 of node 3 and more would change from "
      "INTERNAL to REPL in one step, and clients of INTERNAL would get the addresses of REPL")),
    (plan(INTERNAL, EXTERNAL, REPL, brokers=1),
     plan(INTERNAL | {"port": 19192}, EXTERNAL, REPL | {"port": 19092}, brokers=1),
     ("port 19192 of node 1 would change from REPL to INTERNAL in one step, and clients "
      "of REPL would get the addresses of INTERNAL")),
    (BEFORE, BEFORE.model_copy(update={"nodes": (*BEFORE.nodes[:2],
                                                 BEFORE.node(3).model_copy(update={"id": 4}))}),
     ("broker 3 would become broker 4 at b3.internal.example:19092: a broker's id is "
      "part of its data, and clients with this address would reach another broker")),
], ids=["many ports", "exchanged ports", "another id"])  # fmt: skip
def test_an_address_that_passes_to_another_listener_or_broker_is_named(
    running: ClusterPlan, wanted: ClusterPlan, ports: str
) -> None:
    assert raised(EarshotError, transition, running, wanted).observed == ports


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_where_no_order_is_safe_both_listeners_between_brokers_are_named(protocol: str) -> None:
    refusal = no_order(BEFORE, plan(REPL | {"protocol": protocol}, EXTERNAL))
    assert (refusal.observed, refusal.remedy) == (
        (
            "brokers would reach each other through REPL instead of INTERNAL, and in every order "
            "of restarts a broker would use a listener that another one lacks"
        ),
        (
            "change one listener at a time; or stop the cluster first (`pulumi destroy`; with "
            "`data: keep` it keeps the data)"
        ),
    )
    same = no_order(BEFORE, plan(INTERNAL))
    assert same.observed == refusal.observed.replace("REPL", "INTERNAL")


def test_random_changes_rename_add_and_remove_listeners() -> None:
    pairs = [changes(random.Random(f"unit/{number}"))[:2] for number in range(PAIRS)]
    names = [(set(old.listener_names), set(new.listener_names)) for old, new in pairs]
    assert any(old < new for old, new in names) and any(old > new for old, new in names)
    assert any(old - new and new - old for old, new in names)


def test_in_no_mixture_of_any_step_is_a_client_sent_nowhere() -> None:
    counts = []
    for number in range(PAIRS):
        steps, problems = walked(random.Random(f"unit/{number}"))
        assert problems == [], f"pair unit/{number}"
        counts.append(steps)
    assert {REFUSED, 1, 2, 3} <= set(counts)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda way: way[1:],
        lambda way: way[-1:],
        lambda way: [*way[:1], *way[2:]],
        lambda way: [*reversed(way[:-1]), *way[-1:]],
    ],
    ids=["without the first", "the last alone", "without the second", "in another order"],
)
def test_a_wrong_order_of_steps_is_caught(wrong: Order) -> None:
    ways = (
        walked(random.Random(f"unit/{number}"), lambda way: wrong(way) if len(way) == 3 else way)
        for number in range(PAIRS)
    )
    assert any(found for _, found in ways)
