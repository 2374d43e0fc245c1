from collections import defaultdict
from collections.abc import Callable

import pytest

from earshot.names.invented import DoubtedResolver
from earshot.names.lookup import Diagnosis, Lookup, Resolver
from earshot.names.nameservers import DnsResolver
from tests.doubles.dns_server import dns_server
from tests.doubles.resolvers import SeveralResolvers, SilentResolver, TableResolver

NAME = "kafka.nobody.example"
PORTAL = ("198.51.100.7",)
BROKER = ("203.0.113.1",)


def resolver(
    answer: tuple[str, ...], invented: Callable[[str], tuple[str, ...]], label: str = "192.0.2.53"
) -> TableResolver:
    table = TableResolver(label, {NAME: answer})
    table.invented = invented
    return table


def result(resolver: Resolver) -> tuple[Diagnosis, tuple[str, ...]]:
    lookup = DoubtedResolver(resolver).resolve(NAME, 5.0)
    return lookup.diagnosis, lookup.addresses


def of_its_own(name: str) -> tuple[str, ...]:
    """Another address for each domain, as proxies invent them."""
    return ("198.18.0.1",) if name.endswith(".com.") else ("198.18.0.2",)


@pytest.mark.parametrize(("answer", "invented", "diagnosis"), [
    (BROKER, lambda name: (), Diagnosis.OK),
    (PORTAL, lambda name: PORTAL, Diagnosis.NXDOMAIN),
    # many resolvers deny .invalid themselves, whatever the servers behind them answer
    (PORTAL, lambda name: PORTAL if name.endswith(".com.") else (), Diagnosis.NXDOMAIN),
    (PORTAL, lambda name: PORTAL if name.endswith(".invalid.") else (), Diagnosis.NXDOMAIN),
    (PORTAL, lambda name: (*PORTAL, "198.51.100.8"), Diagnosis.NXDOMAIN),
    (BROKER, lambda name: PORTAL, Diagnosis.OK),
    ((*BROKER, *PORTAL), lambda name: PORTAL, Diagnosis.OK),
    (("198.18.0.3",), of_its_own, Diagnosis.SERVER_FAILURE),
], ids=[
    "names that do not exist are denied", "a captive portal answers everything",
    "only .invalid is denied", "only .invalid is answered", "one of several invented addresses",
    "a provider that invents, and a name that exists", "a name with an address more",
    "an address for each name",
])  # fmt: skip
def test_an_invented_answer_is_a_denial(
    answer: tuple[str, ...], invented: Callable[[str], tuple[str, ...]], diagnosis: Diagnosis
) -> None:
    expected = answer if diagnosis is Diagnosis.OK else ()
    assert result(resolver(answer, invented)) == (diagnosis, expected)


def test_another_server_that_resolves_the_name_is_enough() -> None:
    portal = resolver(PORTAL, lambda name: PORTAL)
    good = resolver(BROKER, lambda name: (), "192.0.2.54")
    assert result(SeveralResolvers([portal, good])) == (Diagnosis.OK, BROKER)
    without = TableResolver("192.0.2.55")
    assert result(SeveralResolvers([portal, without])) == (Diagnosis.NXDOMAIN, ())


def test_the_result_says_what_the_server_does() -> None:
    lookup = DoubtedResolver(resolver(PORTAL, lambda name: PORTAL)).resolve(NAME, 5.0)
    assert lookup.detail == (
        "the server answers 198.51.100.7 for names that do not exist, too: it invents them"
    )


def test_a_resolver_is_asked_once_for_names_that_do_not_exist() -> None:
    asked: list[str] = []
    table = resolver(BROKER, lambda name: asked.append(name) or ())  # type: ignore[func-returns-value]
    doubted = DoubtedResolver(table)
    for _ in range(3):
        doubted.resolve(NAME, 5.0)
    assert sorted(name.rpartition(".")[0].rpartition(".")[2] for name in asked) == [
        "com",
        "invalid",
    ]


def test_an_answer_counts_if_no_name_that_does_not_exist_is_answered_in_time() -> None:
    silent = SilentResolver("192.0.2.53")

    class OnlyOne(TableResolver):
        def resolve(self, name: str, seconds: float) -> Lookup:
            if name.endswith("."):
                return silent.resolve(name, seconds)
            return super().resolve(name, seconds)

    doubted = DoubtedResolver(OnlyOne("192.0.2.53", {NAME: BROKER}))
    assert doubted.resolve(NAME, 0.05).addresses == BROKER
    silent.release()


def test_a_real_server_that_answers_everything_is_found_out() -> None:
    with dns_server(defaultdict(lambda: PORTAL)) as portal:
        assert result(DnsResolver([portal])) == (Diagnosis.NXDOMAIN, ())
    with dns_server({NAME: BROKER}) as server:
        assert result(DnsResolver([server])) == (Diagnosis.OK, BROKER)
