"""Files of variables for a container, user data of an instance, and Redpanda's own file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from earshot.checks.lone_settings import (
    Release,
    advice_in_user_data,
    advice_in_variables,
    are_of_broker,
    mistakes_in_user_data,
    mistakes_in_variables,
)
from earshot.lint.model import Linted, Mistake
from earshot.lint.places import in_env_file, in_properties
from earshot.rules.kl002_redpanda import refusals
from earshot.sources.dotenv import read_env_file
from earshot.sources.redpanda import listeners_in
from earshot.sources.substitution import Variables
from earshot.sources.user_data import UserDataFile, broker_files, speaks_of_brokers

ADVERTISED = "advertised_kafka_api"
"""Of Redpanda."""
_READ = "read are files in a cloud-config, here-documents in a script"


def variables(text: str, shown: str, known: Mapping[str, str], release: Release) -> Linted:
    """What is wrong in a file of variables; those ``known`` are of the environment.

    Raises EarshotError where it is none.
    """
    found = read_env_file(text, shown, Variables(known, keep=True))
    if not are_of_broker(found):
        return Linted(shown, "", unchecked=("sets no variables of a broker",))
    mistakes = mistakes_in_variables(found, release) or advice_in_variables(found, release)
    placed = tuple(Mistake(item, in_env_file(text, shown, item)) for item in mistakes)
    return Linted(shown, "environment file", placed)


def user_data(text: str, shown: str, release: Release) -> Linted:
    """What is wrong in the properties of brokers that the user data of an instance write."""
    written = broker_files(text)
    if not written:
        why = "sets up no broker"
        if speaks_of_brokers(text):
            why = f"sets advertised.listeners in a way that is not read here ({_READ})"
        return Linted(shown, "", unchecked=(why,))
    found = mistakes_in_user_data(written, release) or advice_in_user_data(written, release)
    placed = tuple(Mistake(item, in_properties(text, shown, item)) for item in found)
    open_ends = tuple(dict.fromkeys(it for file in written for it in _unknown(file)))
    return Linted(shown, "user data", placed, open_ends)


def redpanda(text: str, shown: str) -> Linted:
    """What is wrong in a redpanda.yaml by itself: who reaches whom takes more than that file."""
    found = listeners_in(text)
    if not found:
        why = f"advertises no address of its own ({ADVERTISED}): flags say it, or a Compose file"
        return Linted(shown, "", unchecked=(why,))
    placed = (Mistake(it, in_properties(text, shown, it)) for it in refusals(found, ADVERTISED))
    return Linted(shown, "Redpanda's settings", tuple(placed))


def _unknown(file: UserDataFile) -> Iterator[str]:
    path = file.path or "the properties"
    if not file.whole:
        yield f"{path}: what stands in it before is not known"
    for key in file.computed:
        what = "the host" if key in file.places else key
        yield f"{path}: {what} is not known, the instance computes {file.shown(key)}"
