"""The brokers that clients reach during and after a step."""

from earshot.listeners.terms import Scope
from earshot.transition.rehearsal import RehearsedStep, by_scope, rehearsed_steps
from earshot.transition.steps import transition
from tests.transition.test_steps import BEFORE, EXTERNAL, INTERNAL, RENAMED, plan


def test_each_step_with_its_listeners_and_the_brokers_that_clients_reach() -> None:
    steps = transition(BEFORE, RENAMED)
    first, second, third = rehearsed_steps(BEFORE, steps)
    host = {Scope.HOST: ("EXTERNAL",)}
    assert first == RehearsedStep(
        text="REPL added next to INTERNAL",
        restarts=(1, 2, 3),
        through="INTERNAL",
        meanwhile={Scope.INTERNAL: ("INTERNAL",), **host},
        after={Scope.INTERNAL: ("INTERNAL", "REPL"), **host},
        offers={
            id: (
                f"INTERNAL://b{id}.internal.example:19092",
                f"EXTERNAL://b{id}.host.example:9092",
                f"REPL://b{id}.internal.example:19192",
            )
            for id in (1, 2, 3)
        },
    )
    assert (second.through, second.meanwhile) == ("REPL", first.after)
    assert third.meanwhile == third.after == {Scope.INTERNAL: ("REPL",), **host}
    assert third.offers[2] == (
        "REPL://b2.internal.example:19192",
        "EXTERNAL://b2.host.example:9092",
    )


def test_a_listener_serves_its_scopes_except_while_its_protocol_changes() -> None:
    secured = plan(INTERNAL, EXTERNAL | {"protocol": "SSL"})
    (step,) = rehearsed_steps(BEFORE, transition(BEFORE, secured))
    assert (step.meanwhile[Scope.HOST], step.after[Scope.HOST]) == ((), ("EXTERNAL",))
    both = plan(INTERNAL | {"scopes": ["internal", "host"]})
    assert by_scope(both) == {Scope.INTERNAL: ("INTERNAL",), Scope.HOST: ("INTERNAL",)}
