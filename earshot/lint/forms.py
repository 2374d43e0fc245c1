"""The form of a file that is named or found: properties, variables or YAML.

The name decides, without the endings of templates and copies (`server.properties.j2`,
`.env.example`). Where it does not, the content does: a `kafka.conf` holds properties, an
`/etc/default/kafka` variables.
"""

import re
from enum import Enum, auto

from earshot.facts.settings import is_broker_configuration
from earshot.listeners.images import is_broker
from earshot.listeners.properties import read_properties
from earshot.sources.files import PROPERTIES
from earshot.sources.substitution import is_env_file

YAML = (".yml", ".yaml")
UNITS = (".container", ".pod")
DEVELOPMENT_CONTAINERS = ("devcontainer.json", ".devcontainer.json")
CONFIGURATION = (".conf", ".cfg")
_TEMPLATES = (".j2", ".jinja", ".jinja2", ".tmpl", ".tpl", ".tftpl", ".gotmpl", ".template", ".erb",
              ".epp", ".ejs", ".mustache", ".in")  # fmt: skip
_SAMPLES = (".example", ".sample", ".dist", ".default", ".defaults")
_COPIES = (".bak", ".orig", ".old", ".save")
_ASSIGNED = re.compile(r"^[ \t]*(?:export[ \t]+)?([A-Za-z][\w.-]*)[ \t]*=(.*)$", re.MULTILINE)


class Form(Enum):
    """How a file is read."""

    PROPERTIES = auto()
    VARIABLES = auto()
    YAML = auto()
    UNIT = auto()
    """Of Podman, for systemd."""
    DEVELOPMENT_CONTAINER = auto()


def by_name(name: str) -> Form | None:
    """The form that the name of a file says."""
    plain = _without(name.lower(), (*_TEMPLATES, *_SAMPLES, *_COPIES))
    if plain.endswith(PROPERTIES):
        return Form.PROPERTIES
    if is_env_file(plain) or plain == "env":
        return Form.VARIABLES
    if plain.endswith(UNITS):
        return Form.UNIT
    if plain in DEVELOPMENT_CONTAINERS:
        return Form.DEVELOPMENT_CONTAINER
    return Form.YAML if plain.endswith(YAML) else None


def is_looked_for(name: str) -> bool:
    """True if a file of this name in a folder is checked, or counted as passed over."""
    lower = name.lower()
    if lower.endswith(_COPIES):
        return False
    return by_name(name) is not None or lower.endswith(CONFIGURATION)


def by_content(text: str) -> Form | None:
    """The form of a text with properties or variables of a broker; None for another."""
    assigned = dict(_ASSIGNED.findall(text))
    if is_broker_configuration(assigned) and is_broker_configuration(read_properties(text).values):
        return Form.PROPERTIES
    return Form.VARIABLES if is_broker("", assigned) else None


def _without(name: str, endings: tuple[str, ...]) -> str:
    """``name`` without any of ``endings``, however many it has."""
    while ending := next((ending for ending in endings if name.endswith(ending)), ""):
        name = name.removesuffix(ending)
    return name
