"""`earshot rules`: all rules, or one in full."""

import json

from earshot.rules.evaluate import RULES
from earshot.rules.examples import example_of
from tests.cli.command import Earshot

KL011 = next(rule for rule in RULES if rule.id == "KL011")
EXAMPLE = example_of("KL011")


def test_all_are_listed_and_an_unknown_one_is_refused(earshot: Earshot) -> None:
    assert "KL011" in earshot.output("rules")
    assert "allowed: KL0" in earshot.refusal("rules KL999")


def test_one_in_full_in_any_case(earshot: Earshot) -> None:
    (rule,) = json.loads(earshot.output("rules kl011 --format json"))
    assert "wurstmeister/kafka-docker#183" in rule.pop("reported")
    assert rule == {
        "id": "KL011",
        "title": KL011.title,
        "reason": KL011.reason,
        "remedy": KL011.remedy,
        "source": KL011.source,
        "severity": "error",
        "kafka": str(KL011.kafka),
        "applied": "to a stack's plan at the gate and by `earshot plan --check`; to containers "
        "and EC2 instances of a program by the policy pack",
        "bad": EXAMPLE.bad,
        "good": EXAMPLE.good,
    }


def test_one_in_full_as_text(earshot: Earshot) -> None:
    first, *lines = earshot.output("rules KL011").splitlines()
    assert first == f"KL011: {KL011.title}"
    labels = [line.split()[0].rstrip(":") for line in lines if line.strip()]
    assert {"reason", "remedy", "source", "severity", "kafka"} <= set(labels)
    assert not {"id", "title"} & set(labels)
    bad, good = (
        [f"  {line}" for line in text.splitlines()] for text in (EXAMPLE.bad, EXAMPLE.good)
    )
    last = ["", "bad:", *bad, "", "good:", *good]
    assert lines[-len(last) :] == last
