"""One file, judged by what it is: a Compose file, or the properties of a broker."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from earshot.checks.deployment import mistakes
from earshot.checks.properties import is_of_broker, mistakes_in_properties
from earshot.errors import EarshotError
from earshot.lint.model import Linted, Mistake
from earshot.lint.places import in_compose, in_properties
from earshot.sources.compose import Compose, is_compose, read_compose
from earshot.sources.deployment import brokers_among
from earshot.sources.dotenv import read_env_file

PROPERTIES = ".properties"
_TEMPLATE = re.compile(r"^\s*\{\{-? *(?:if|range|with|end|define|include|else)\b", re.MULTILINE)


def judge(file: Path, variables: Mapping[str, str]) -> Linted:
    """What is wrong in ``file``; ``variables`` are those of the environment.

    A file that has nothing of Kafka has no kind. Raises EarshotError where it cannot be read.
    """
    text = _text(file)
    if file.suffix == PROPERTIES:
        return _properties(text, str(file))
    return _compose(text, file, variables)


def _properties(text: str, shown: str) -> Linted:
    if not is_of_broker(text):
        return Linted(shown, "", unjudged=("holds no settings of a broker",))
    found = mistakes_in_properties(text)
    placed = tuple(Mistake(item, in_properties(text, shown, item)) for item in found)
    return Linted(shown, "properties file", placed)


def _compose(text: str, file: Path, variables: Mapping[str, str]) -> Linted:
    shown = str(file)
    if _TEMPLATE.search(text):
        why = "is a template: judge what it renders (`helm template`, `docker compose config`)"
        return Linted(shown, "", unjudged=(why,))
    if not is_compose(text, shown):
        return Linted(shown, "", unjudged=("is no Compose file",))
    compose = read_compose(
        text, file.name, _variables(file, variables), _beside(file), lenient=True
    )
    if not brokers_among(compose.services):
        return Linted(shown, "", unjudged=("no service of it runs a Kafka broker",))
    found = mistakes(compose.services)
    placed = tuple(Mistake(item, place) for item, place in in_compose(text, shown, found))
    return Linted(shown, "Compose file", placed, tuple(_unknown(compose)))


def _unknown(compose: Compose) -> list[str]:
    """What the file leaves open, each once."""
    found = [f"{name} is not set: what depends on it is not known" for name in compose.missing]
    for service in compose.services:
        found += [
            f"service {service.name}: {what} could not be read"
            for what in service.container.unknown
        ]
    return found


def _variables(file: Path, variables: Mapping[str, str]) -> dict[str, str]:
    dotenv = file.parent / ".env"
    if not dotenv.is_file():
        return dict(variables)
    return read_env_file(_text(dotenv), str(dotenv), dict(variables)) | dict(variables)


def _beside(file: Path) -> Callable[[str], str]:
    """Reads what a Compose file names, by its path as written there."""

    def read(path: str) -> str:
        named = file.parent / path
        if named.exists() and not named.is_file():  # a device or a pipe may never end
            raise OSError(errno.EINVAL, "it is no regular file")
        return named.read_text(encoding="utf-8")

    return read


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as reason:
        raise EarshotError(f"file {file}", observed=f"cannot be read ({reason.strerror})") from None
    except UnicodeDecodeError:
        raise EarshotError(f"file {file}", observed="is no UTF-8 text") from None
