"""The settings of one broker by themselves, as others wrote them: what Kafka or its image refuses.

They are in a `server.properties`, in a file of variables, in what an instance boots with, or in a
task definition. Where clients and other brokers are is not known, so that reachability is
not judged. Which Kafka shall read a `server.properties` is not known either: what every
release since 3.9 refuses counts, and with ZooKeeper what 3.9 refuses.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice

from earshot.checks.deployment import (
    advice_on_services,
    advice_on_settings,
    problems,
)
from earshot.facts.settings import NEWEST, BrokerSettings, is_broker_configuration
from earshot.listeners.properties import malformed_keys, read_properties
from earshot.rules import kl002_kafka
from earshot.rules.registry import Finding
from earshot.sources.compose import Service
from earshot.sources.deployment import brokers_among, settings_of
from earshot.sources.open_listeners import open_listeners, open_values
from earshot.sources.task_definition import TaskContainer
from earshot.sources.user_data import UserDataFile
from earshot.topology.container import Container

Release = tuple[int, int] | None
"""Kafka's, (major, minor); None if it is not stated."""
OLDEST = (3, 9)
_LATER = ((4, 0), (4, 1), (4, 2), NEWEST)
"""Releases that read settings in another way than the one before."""
_MARK, _MARK_IN_LATIN_1 = "\ufeff", "\ufeff".encode().decode("latin-1")
_STATEMENT = re.compile(r"\{%|\{\{|<%|<#")
"""Of a template language, which may leave lines out or add some."""


def is_of_broker(text: str) -> bool:
    """True if the text of a properties file is that of a broker or a controller."""
    return is_broker_configuration(read_properties(text).values)


def mistakes_in_properties(text: str, release: Release = None) -> tuple[Finding, ...]:
    """What Kafka, of this ``release`` where one is given, has against them; the first alone, for it
    stops there."""
    for key in _key_after_mark(text):
        said = f"{key}: begins with a byte order mark, which Java takes into the key: it is not set"
        remedy = "save the file as UTF-8 without a byte order mark"
        return (kl002_kafka.RULE.finding(said, "no byte order mark", inputs=(key,), remedy=remedy),)
    for key in malformed_keys(text):
        said = "has a \\u without four hexadecimal digits; Java loads no such file"
        return (kl002_kafka.RULE.finding(f"{key}: {said}", "a backslash twice", inputs=(key,)),)
    return mistakes_in_values(read_properties(text).values, release, complete=_is_whole(text))


def advice_in_properties(text: str, release: Release = None) -> tuple[Finding, ...]:
    """How secure the broker is, of which Kafka has nothing to say: one piece of advice, or none."""
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
    """The first key, in its own spelling, where a byte order mark comes before it."""
    if text.startswith((_MARK, _MARK_IN_LATIN_1)):
        first = next(iter(read_properties(text).values), "")
        key = first.removeprefix(_MARK).removeprefix(_MARK_IN_LATIN_1)
        if key not in ("", first) and not key.startswith(("#", "!")):  # what was meant as a comment
            yield key


def _is_whole(text: str) -> bool:
    return not _STATEMENT.search(text)


def mistakes_in_values(
    given: Mapping[str, str], release: Release, *, complete: bool
) -> tuple[Finding, ...]:
    """The same of properties by name; where not ``complete``, others may be set elsewhere."""
    settings = settings_in(given, release, complete=complete)
    found = kl002_kafka.startup_refusals(settings)
    if not (settings.is_zookeeper or release):
        for later in _LATER:
            later_on = replace(settings, release=later)
            of_later = kl002_kafka.startup_refusals(later_on) if found else ()
            refused = {item.inputs for item in of_later}  # of nothing, in other words
            found = tuple(item for item in found if item.inputs in refused)
    return found[:1] or tuple(kl002_kafka.unusable(settings.read()))


def settings_in(given: Mapping[str, str], release: Release, *, complete: bool) -> BrokerSettings:
    """Properties by name as those of one broker."""
    values = dict(given)
    # without these it is a part of a file, or a template: something else completes it
    listens, is_kraft = values.get("listeners"), values.get("process.roles")
    whole = bool(
        (is_kraft and (listens or "node.id" in values))
        or (values.get("zookeeper.connect") and listens)
    )
    return BrokerSettings(values, complete=complete and whole, release=release or OLDEST)


def mistakes_in_user_data(
    written: Iterable[UserDataFile], release: Release = None
) -> tuple[Finding, ...]:
    """What Kafka refuses in the properties of brokers that user data write."""
    return tuple(
        found
        for item in written
        for found in mistakes_in_values(
            item.written, release, complete=item.whole and set(item.computed) == item.places
        )
    )


def advice_in_user_data(
    written: Iterable[UserDataFile], release: Release = None
) -> tuple[Finding, ...]:
    """How secure these brokers are: one piece of advice, or none."""
    advice = (
        finding
        for item in written
        for finding in advice_on_settings(settings_in(item.written, release, complete=item.whole))
    )
    return tuple(islice(advice, 1))


def mistakes_in_task(containers: Iterable[TaskContainer]) -> tuple[Finding, ...]:
    """What Kafka or its image refuses in the containers of a task that run a broker."""
    brokers = brokers_among([container.service for container in containers])
    return tuple(found for broker in brokers for found in problems(broker, settings_of(broker)))


def are_of_broker(variables: Mapping[str, str]) -> bool:
    """Whether they set what only a broker or a controller is given."""
    return bool(brokers_among([_service(variables)]))


def mistakes_in_variables(
    variables: Mapping[str, str], release: Release = None
) -> tuple[Finding, ...]:
    """What Kafka, of this ``release`` where one is given, refuses whatever else is set."""
    service = _service(variables, release)
    return problems(service, settings_of(service))


def advice_in_variables(
    variables: Mapping[str, str], release: Release = None
) -> tuple[Finding, ...]:
    """How secure the broker is, of which Kafka has nothing to say: one piece of advice, or none."""
    return advice_on_services([_service(variables, release)])


def _service(variables: Mapping[str, str], release: Release = None) -> Service:
    """A service that has them: only their names show its image, and it may have others."""
    container = Container("", env=variables, unknown=("variables",))
    return Service("", container, release=release)
