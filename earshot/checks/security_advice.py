"""How secure the brokers of a file are: no more than one piece of advice for each file.

A cluster tried out on one machine needs no advice, and a file that is open on purpose
gets none for each line. What Kafka refuses is reported by KL002.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from earshot.facts.settings import BrokerSettings
from earshot.rules import (
    kl019_clear_text,
    kl020_plain_passwords,
    kl021_tls_versions,
    kl022_host_verification,
    kl023_jaas_prefix,
)
from earshot.rules.objections import readable
from earshot.rules.registry import Finding
from earshot.sources.compose import Service
from earshot.sources.deployment import brokers_among, settings_of

_RULES = (
    (kl020_plain_passwords.RULE, kl020_plain_passwords.objections),
    (kl019_clear_text.RULE, kl019_clear_text.objections),
    (kl023_jaas_prefix.RULE, kl023_jaas_prefix.objections),
    (kl022_host_verification.RULE, kl022_host_verification.objections),
    (kl021_tls_versions.RULE, kl021_tls_versions.objections),
)
"""What weighs most comes first."""
_ABOUT_CLIENTS = frozenset({kl019_clear_text.RULE.id, kl020_plain_passwords.RULE.id})


def advice_on_settings(settings: BrokerSettings) -> tuple[Finding, ...]:
    """The first piece of advice on one broker's settings, or none."""
    return _first(_findings(settings))


def advice_on_services(
    services: Sequence[Service], said: Iterable[Finding] = (), but: Iterable[str] = ()
) -> tuple[Finding, ...]:
    """The same of the brokers among ``services``, ``but`` for some by name, and for those of which
    something is ``said``."""
    named = {item.container for item in said} | set(but)
    inside = [item.container for item in services]
    found: list[Finding] = []
    for service in brokers_among(services):
        if service.name in named:
            continue
        settings = settings_of(service)
        addresses = settings.values.get("advertised.listeners", "")
        hosts = [part.partition("://")[2].rpartition(":")[0] for part in addresses.split(",")]
        is_among_containers = any(item.answers_to(host) for item in inside for host in hosts)
        silent = _ABOUT_CLIENTS if is_among_containers else ()
        listed = (item for item in _findings(settings) if item.rule not in silent)
        found += [replace(item, container=service.name) for item in listed]
    return _first(found)


def _findings(settings: BrokerSettings) -> Iterator[Finding]:
    view = settings.read()
    for rule, check in _RULES:
        yield from (item.finding(rule) for item in readable(check, view))


def _first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    order = [rule.id for rule, _ in _RULES]
    listed = sorted(findings, key=lambda item: order.index(item.rule))
    others = dict.fromkeys(item.rule for item in listed[1:] if item.rule != listed[0].rule)
    if not listed:
        return ()
    more = f" (there is more about security: {', '.join(others)})" if others else ""
    return (replace(listed[0], observed=f"{listed[0].observed}{more}"),)
