"""The settings of one broker without its surroundings: refusals of Kafka and of its image.

Sources are a `server.properties`, a file of variables, user data, and a task definition. Clients
and other brokers are unknown, so that reachability is not checked. The release that reads a
`server.properties` is unknown: refusals of every release since 3.9 count, with ZooKeeper those
of 3.9.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from earshot.checks.deployment import advice_on_services, advice_on_settings, problems
from earshot.facts.settings import NEWEST, BrokerSettings, is_broker_configuration
from earshot.listeners.properties import malformed_keys, read_properties
from earshot.rules import kl002_kafka
from earshot.rules.kl014_misspelt import MisspeltName, misspelt_properties
from earshot.rules.rule import Finding, Severity
from earshot.sources.open_listeners import open_listeners, open_values
from earshot.sources.service import Service, brokers_among
from earshot.topology.container import Container

if TYPE_CHECKING:  # slow to import
    from earshot.sources.task_definition import TaskContainer
    from earshot.sources.user_data import UserDataFile

Release = tuple[int, int] | None
"""Kafka's (major, minor); None if not stated."""
OLDEST = (3, 9)
_LATER = ((4, 0), (4, 1), (4, 2), NEWEST)
"""Releases that read settings in another way than the previous one."""
_MARK, _MARK_IN_LATIN_1 = "\ufeff", "\ufeff".encode().decode("latin-1")
_STATEMENT = re.compile(r"\{%|\{\{|<%|<#")
"""A statement of a template language, which may omit or add lines."""


def is_of_broker(text: str) -> bool:
    """Whether a properties file is a broker's or controller's."""
    return is_broker_configuration(read_properties(text).values)


def mistakes_in_properties(text: str, release: Release = None) -> tuple[Finding, ...]:
    """The first refusal of the properties by Kafka of ``release`` (default: every release)."""
    finding = kl002_kafka.RULE.finding
    for key in _key_after_mark(text):
        observed = "begins with a byte order mark, which Java takes into the key: it is not set"
        remedy = "save the file as UTF-8 without a byte order mark"
        return (finding(f"{key}: {observed}", "no byte order mark", remedy, inputs=(key,)),)
    for key in malformed_keys(text):
        observed = "has a \\u without four hexadecimal digits; Java loads no such file"
        return (finding(f"{key}: {observed}", "a backslash twice", inputs=(key,)),)
    return mistakes_in_values(read_properties(text).values, release, complete=_is_whole(text))


def advice_in_properties(text: str, release: Release = None) -> tuple[Finding, ...]:
    """The most important security advice on a broker's properties, or none."""
    values = read_properties(text).values
    return advice_on_settings(settings_in(values, release, complete=_is_whole(text)))


def open_in_properties(text: str) -> Iterator[str]:
    """Why its listeners are not known: a placeholder, or a template that sets none here."""
    values = read_properties(text).values
    yield from open_values(values)
    if not _is_whole(text) and not {"listeners", "advertised.listeners"} & set(values):
        yield "is a template in which no listener is set: check what it renders"


def open_in_variables(variables: Mapping[str, str]) -> Iterator[str]:
    """Why the listeners that they set are not known, if they are not."""
    yield from (why for _, why in open_listeners([_service(variables)]))


def open_in_user_data(written: Iterable[UserDataFile]) -> Iterator[str]:
    """Why listeners in properties that user data write are not known; an instance may compute one,
    which is no gap of the text."""
    for item in written:
        computed = {*item.computed} - item.places
        known = {key: text for key, text in item.settings.values.items() if key not in computed}
        yield from (f"{item.path or 'the properties'}: {why}" for why in open_values(known))


def _key_after_mark(text: str) -> Iterator[str]:
    """The first key, without a preceding byte order mark; nothing without such a mark."""
    if text.startswith((_MARK, _MARK_IN_LATIN_1)):
        first = next(iter(read_properties(text).values), "")
        key = first.removeprefix(_MARK).removeprefix(_MARK_IN_LATIN_1)
        if key not in ("", first) and not key.startswith(("#", "!")):  # a comment after the mark
            yield key


def _is_whole(text: str) -> bool:
    return not _STATEMENT.search(text)


def mistakes_in_values(
    given: Mapping[str, str], release: Release, *, complete: bool
) -> tuple[Finding, ...]:
    """The first refusal of properties by name; unless ``complete``, others may be set."""
    settings = settings_in(given, release, complete=complete)
    findings = kl002_kafka.startup_refusals(settings)
    if not (settings.is_zookeeper or release):
        for later in _LATER if findings else ():
            refusals = kl002_kafka.startup_refusals(replace(settings, release=later))
            refused = {finding.inputs for finding in refusals}  # texts differ between releases
            findings = tuple(finding for finding in findings if finding.inputs in refused)
    misspelt = [*misspelt_properties(given)]
    for refusal in findings[:1]:
        cause = next((key for key in misspelt if key.is_cause_of(refusal)), None)
        return (cause.as_cause_of(refusal) if cause else refusal,)
    return (*kl002_kafka.unusable(settings.read()), *map(_misspelt, misspelt[:1]))


def _misspelt(key: MisspeltName) -> Finding:
    name = key.name if key.name.isascii() else ascii(key.name)
    return kl002_kafka.RULE.finding(
        f"sets {name}: Kafka has no such property, and takes no notice of it",
        key.intended,
        remedy=f"rename it to {key.intended}",
        severity=Severity.WARNING,
        inputs=(key.name,),
    )


def settings_in(given: Mapping[str, str], release: Release, *, complete: bool) -> BrokerSettings:
    """Properties by name as settings of one broker."""
    values = dict(given)
    # without these it is a part of a file or a template, which other lines complete
    listens, is_kraft = values.get("listeners"), values.get("process.roles")
    whole = bool(
        (is_kraft and (listens or "node.id" in values))
        or (values.get("zookeeper.connect") and listens)
    )
    return BrokerSettings(values, complete=complete and whole, release=release or OLDEST)


def mistakes_in_user_data(
    written: Iterable[UserDataFile], release: Release = None
) -> tuple[Finding, ...]:
    """Kafka's refusals of properties that user data write."""
    return tuple(
        finding
        for file in written
        for finding in mistakes_in_values(file.written, release, complete=file.complete)
    )


def advice_in_user_data(
    written: Iterable[UserDataFile], release: Release = None
) -> tuple[Finding, ...]:
    """The most important security advice on the brokers of user data, or none."""
    settings = (settings_in(file.written, release, complete=file.whole) for file in written)
    return next(filter(None, map(advice_on_settings, settings)), ())


def mistakes_in_task(containers: Iterable[TaskContainer]) -> tuple[Finding, ...]:
    """Refusals by Kafka or an image of the brokers among the containers of a task."""
    brokers = brokers_among([container.service for container in containers])
    return tuple(finding for broker in brokers for finding in problems(broker)[0])


def are_of_broker(variables: Mapping[str, str]) -> bool:
    """Whether the variables are a broker's or controller's."""
    return bool(brokers_among([_service(variables)]))


def mistakes_in_variables(
    variables: Mapping[str, str], release: Release = None
) -> tuple[Finding, ...]:
    """Refusals of variables by Kafka of ``release``, whatever other variables are set."""
    return problems(_service(variables, release))[0]


def advice_in_variables(
    variables: Mapping[str, str], release: Release = None
) -> tuple[Finding, ...]:
    """The most important security advice on a broker's variables, or none."""
    return advice_on_services([_service(variables, release)])


def _service(variables: Mapping[str, str], release: Release = None) -> Service:
    """A service of unknown image with ``variables`` and perhaps others."""
    container = Container("", env=variables, unknown=("variables",))
    return Service("", container, release=release)
