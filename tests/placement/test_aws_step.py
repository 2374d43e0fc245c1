"""The spec of brokers on AWS while their listeners change."""

from typing import Any

from earshot.config.aws import AwsSpec
from earshot.errors import EarshotError
from earshot.placement.aws import plan_aws
from earshot.placement.aws_step import spec_at, written
from earshot.transition.steps import transition
from tests.config.aws_documents import EXTERNAL, INTERNAL, OFFICE, TWO_LISTENERS, read_aws
from tests.raised import raised

REPL = {"name": "REPL", "port": 19192, "scopes": ["internal"]}
PUBLIC = {"name": "PUBLIC", "port": 9192, "scopes": ["external"]}


def steps(before: AwsSpec, wanted: AwsSpec) -> list[AwsSpec]:
    old, new = (plan_aws(spec).plan for spec in (before, wanted))
    return [spec_at(wanted, step.plan, [written(before)]) for step in transition(old, new)]


def names(spec: AwsSpec) -> list[str]:
    return [item.name for item in spec.listeners]


def test_each_step_is_a_spec_of_its_own() -> None:
    before = read_aws(brokers=3, **TWO_LISTENERS)
    wanted = read_aws(brokers=3, **TWO_LISTENERS | {"listeners": [REPL, EXTERNAL]})
    found = steps(before, wanted)
    assert [(names(it), it.inter_broker_name) for it in found] == [
        (["INTERNAL", "EXTERNAL", "REPL"], "INTERNAL"),
        (["INTERNAL", "EXTERNAL", "REPL"], "REPL"),
        (["REPL", "EXTERNAL"], "REPL"),
    ]
    assert found[-1] == wanted


def test_a_listener_that_goes_brings_its_reason_along() -> None:
    old: dict[str, Any] = {
        "listeners": [INTERNAL, PUBLIC],
        "clients": OFFICE,
        "clear_text": {"PUBLIC": "a trial without data"},
    }
    found = steps(read_aws(**old), read_aws(**TWO_LISTENERS))
    assert names(found[0]) == ["INTERNAL", "PUBLIC", "EXTERNAL"]
    assert [it.clear_text for it in found] == [old["clear_text"], {}]
    opened = [rule for group in plan_aws(found[0]).groups for rule in group.ingress]
    assert all(any(rule.opens(port) for rule in opened) for port in (9092, 9192))


def test_brokers_and_listeners_do_not_change_in_one_go() -> None:
    before = read_aws(brokers=3)
    wanted = read_aws(brokers=4, listeners=[REPL])
    assert str(raised(EarshotError, steps, before, wanted)) == (
        "nothing was changed: this change cannot be made in one update: it needs several steps, "
        "and changes more than the listeners\n"
        "  fix: change only the listeners first, and apply that"
    )


def test_controllers_whose_names_are_not_known_yet_are_told_by_their_port() -> None:
    before, wanted = (read_aws(brokers=3, controllers={"port": it}) for it in (29092, 29192))
    assert "the controllers would move from port 29092 to port 29192 while they run" in str(
        raised(EarshotError, steps, before, wanted)
    )


def test_an_interrupted_step_is_taken_back_on_the_way_to_another() -> None:
    before = read_aws(brokers=3, **TWO_LISTENERS)
    moved = TWO_LISTENERS | {"listeners": [INTERNAL, EXTERNAL | {"port": 9192}]}
    third = read_aws(brokers=3, **moved | {"listeners": [REPL, *moved["listeners"][1:]]})
    current, begun = (plan_aws(it).plan for it in (before, read_aws(brokers=3, **moved)))
    wanted = plan_aws(third).plan
    for step in transition(current, wanted, (begun,)):
        known = [written(before), written(read_aws(brokers=3, **moved))]
        assert plan_aws(spec_at(third, step.plan, known)).plan == step.plan
    assert plan_aws(spec_at(third, current, [written(before)])).plan == current


def test_who_may_come_in_from_outside_may_do_so_until_the_last_external_listener_goes() -> None:
    """The file names no ranges for no external listener."""
    before = read_aws(brokers=3, **TWO_LISTENERS)
    found = steps(before, read_aws(brokers=3, listeners=[REPL]))
    assert [names(it) for it in found] == [
        ["INTERNAL", "EXTERNAL", "REPL"],
        ["INTERNAL", "EXTERNAL", "REPL"],
        ["REPL"],
    ]
    assert [it.clients for it in found] == [before.clients, before.clients, found[-1].clients]
    for step in found[:2]:
        assert any(it.opens(9092) for group in plan_aws(step).groups for it in group.ingress)
