from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

from earshot.listeners.terms import Scope
from earshot.names.lookup import Diagnosis
from earshot.names.nameservers import DnsResolver
from earshot.names.policy import ResolverPolicy, SystemResolvers, read_policy
from earshot.names.resolvers import SystemResolver
from tests.doubles.resolvers import SilentResolver, TableAsked, TableResolver

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


def test_a_machine_without_dns_servers_has_no_resolver_outside() -> None:
    assert TableAsked({}).resolver(ResolverPolicy(), Scope.EXTERNAL, "local") is None


NO_DAY, NO_NUMBER = "a day such as 2027-01-31", "Input should be a valid number"
TWICE = {"A.b": "x", "a.B": {"reason": "y", "until": "2020-01-01"}}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("resolvers", {"outside": ["192.0.2.1"]}, "'external'"),
        ("resolvers", {"external": ["dns.example.com"]}, "external: DNS server 'dns.example.com'"),
        ("resolvers", {"external": ["system", "192.0.2.1"]}, "`system` cannot be combined with"),
        ("resolvers", "192.0.2.1", "dictionary"),
        ("timeout", 0, "greater than 0"),
        ("timeout", True, "found true; allowed: a number"),
        ("retry", "1", NO_NUMBER),
        ("retry", -1, "greater than or equal to 0"),
        ("waived", TWICE, "found A.b, a.B; allowed: each name once"),
        ("waived", {"kafka": " "}, "a waived name needs a reason"),
        ("waived", {"kafka": None}, "kafka: found nothing; allowed: the reason, or a map of"),
        ("waived", {"ka_fka": "why"}, "host 'ka_fka'"),
        ("waived", {"kafka": {"reason": "r", "until": "31.1.2027"}}, NO_DAY),
        ("waived", {"kafka": {"reason": "r", "until": "2027-02-30"}}, NO_DAY),
        ("waived", {"kafka": {"until": "2027-01-31"}}, "reason"),
        ("waived", {"kafka": {"reason": "r", "til": "2027-01-31"}}, "til"),
        ("servers", [], "Extra inputs"),
    ],
)
def test_what_a_policy_refuses(key: str, value: object, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ResolverPolicy.model_validate({key: value})


def test_a_refused_waived_name_is_reported_with_its_key_once() -> None:
    with pytest.raises(ValueError, match=r"^waived: host 'ka_fka': "):
        read_policy({"waived": {"ka_fka": "why"}})


def test_waivers_have_no_case() -> None:
    policy = read_policy({"waived": {"Kafka.Example.COM": " partner's DNS "}})
    assert policy.waiver("kafka.example.com") == policy.waiver("KAFKA.example.com")
    assert policy.waiver("kafka.example.com") == "partner's DNS"
    assert policy.waiver("other") == policy.expired("other") == ""


def test_a_waiver_ends_after_its_last_day() -> None:
    today = datetime.now(UTC).date()
    days = {"last": today, "over": today - timedelta(days=1), "open": today + timedelta(days=9)}
    document = {key: {"reason": "r", "until": str(day)} for key, day in days.items()}
    policy = read_policy({"waived": document})
    assert policy.waivers == {"last": "r", "open": "r"}
    assert (policy.waiver("last"), policy.waiver("over")) == ("r", "")
    assert policy.expired("OVER") == f"it was waived until {days['over']}: r"
    assert policy.expired("last") == ""


def test_the_real_resolvers() -> None:
    resolvers = SystemResolvers()
    assert isinstance(resolvers.system(), SystemResolver)
    dns = resolvers.dns(("192.0.2.53",))
    assert isinstance(dns, DnsResolver) and dns.servers == ("192.0.2.53",)


def test_a_resolver_that_kept_silent_costs_its_time_once() -> None:
    """However many batches follow: each container of a program is one."""
    silent, other = SilentResolver(), TableResolver("other", {"a": ("192.0.2.1",)})
    asked, policy = SystemResolvers(), ResolverPolicy(timeout=1)
    try:
        asked.look_up([("a", silent), ("a", other)], policy)
        lookups = asked.look_up([("A", silent), ("a", other)], ResolverPolicy(timeout=60))
    finally:
        silent.release()
    assert lookups["a", "silence"].diagnosis is Diagnosis.TIMEOUT
    assert not lookups["a", "silence"].answered
    assert lookups["a", "other"].addresses == ("192.0.2.1",)


@pytest.mark.parametrize("answer", [Diagnosis.NXDOMAIN, Diagnosis.SERVER_FAILURE, ()])
def test_an_answering_resolver_is_asked_again(answer: Diagnosis | tuple[str, ...]) -> None:
    resolver = TableResolver("some", {"a": answer, "b": Diagnosis.TIMEOUT})
    asked = SystemResolvers()
    for _ in range(2):
        asked.look_up([("a", resolver), ("b", resolver)], ResolverPolicy())
    assert resolver.asked == {"a": 2, "b": 2}


def test_an_address_says_nothing_of_its_resolver() -> None:
    resolver = TableResolver("some", {"a": ("192.0.2.1",)})
    asked = SystemResolvers()
    asked.look_up([("192.0.2.7", resolver)], ResolverPolicy())
    assert asked.look_up([("a", resolver)], ResolverPolicy())["a", "some"].ok
