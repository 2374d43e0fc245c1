"""What is launched later, from a launch template or a task definition: what does not start there.

Which addresses instances and tasks get is not known before, so that nothing is said of whom their
listeners reach.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from earshot.checks.deployment import refusals
from earshot.checks.properties import mistakes_in_values, settings_in
from earshot.checks.security_advice import advice_on_settings
from earshot.rules.finding import Finding
from earshot.sources.deployment import brokers_among, settings_of
from earshot.sources.task_definition import TaskContainer
from earshot.sources.user_data import UserDataFile


def mistakes_in_user_data(
    written: Iterable[UserDataFile], release: tuple[int, int] | None = None
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
    written: Iterable[UserDataFile], release: tuple[int, int] | None = None
) -> tuple[Finding, ...]:
    """How secure these brokers are: one piece of advice, or none."""
    found = (
        finding
        for item in written
        for finding in advice_on_settings(settings_in(item.written, release, complete=item.whole))
    )
    return tuple(islice(found, 1))


def mistakes_in_task(containers: Iterable[TaskContainer]) -> tuple[Finding, ...]:
    """What Kafka or its image refuses in the containers of a task that run a broker."""
    brokers = brokers_among([item.service for item in containers])
    return tuple(found for item in brokers for found in refusals(item, settings_of(item)))
