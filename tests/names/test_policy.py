from __future__ import annotations

import pytest
from pydantic import ValidationError

from earshot.listeners.terms import Scope
from earshot.names.policy import ResolverPolicy
from tests.doubles.resolvers import TableAsked

ASKED = TableAsked({}, configured=("192.0.2.1",))


@pytest.mark.parametrize(
    ("scope", "placement", "label"),
    [
        (Scope.HOST, "local", "system"),
        (Scope.HOST, "docker", "system"),
        (Scope.INTERNAL, "local", "system"),
        (Scope.CONTROLLER, "local", "system"),
        (Scope.EXTERNAL, "local", "192.0.2.1"),
        (Scope.EXTERNAL, "aws", "192.0.2.1"),
        (Scope.INTERNAL, "aws", None),
        (Scope.CONTROLLER, "docker", None),
    ],
)
def test_who_is_asked_by_default(scope: Scope, placement: str, label: str | None) -> None:
    resolver = ASKED.resolver(ResolverPolicy(), scope, placement)
    assert (None if resolver is None else resolver.label) == label


def test_given_servers_are_asked_and_system_stands_for_this_machine() -> None:
    policy = ResolverPolicy.model_validate(
        {"resolvers": {"internal": ["10.0.0.2", "10.0.0.3"], "external": "system"}}
    )
    found = [ASKED.resolver(policy, scope, "aws") for scope in (Scope.INTERNAL, Scope.EXTERNAL)]
    assert [item.label for item in found if item] == ["10.0.0.2, 10.0.0.3", "system"]


def test_a_machine_without_dns_servers_can_ask_nobody_outside() -> None:
    assert TableAsked({}).resolver(ResolverPolicy(), Scope.EXTERNAL, "local") is None


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"resolvers": {"outside": ["192.0.2.1"]}}, "'external'"),
        (
            {"resolvers": {"external": ["dns.example.com"]}},
            "external: DNS server 'dns.example.com'",
        ),
        ({"resolvers": {"external": ["system", "192.0.2.1"]}}, "`system` stands alone"),
        ({"resolvers": "192.0.2.1"}, "dictionary"),
        ({"timeout": 0}, "greater than 0"),
        ({"retry": -1}, "greater than or equal to 0"),
        ({"waived": {"kafka": " "}}, "kafka: a waived name needs a reason"),
        ({"waived": {"kafka": None}}, "valid string"),
        ({"waived": {"ka_fka": "why"}}, "host 'ka_fka'"),
        ({"servers": []}, "Extra inputs"),
    ],
)
def test_what_a_policy_refuses(document: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ResolverPolicy.model_validate(document)


def test_waivers_have_no_case() -> None:
    policy = ResolverPolicy(waived={"Kafka.Example.COM": " partner's DNS "})
    assert policy.waiver("kafka.example.com") == policy.waiver("KAFKA.example.com")
    assert policy.waiver("kafka.example.com") == "partner's DNS"
    assert policy.waiver("other") == ""


def test_the_real_resolvers() -> None:
    from earshot.names.nameservers import DnsResolver
    from earshot.names.policy import Asked
    from earshot.names.resolvers import SystemResolver

    asked = Asked()
    assert isinstance(asked.system(), SystemResolver)
    dns = asked.dns(("192.0.2.53",))
    assert isinstance(dns, DnsResolver) and dns.servers == ("192.0.2.53",)
