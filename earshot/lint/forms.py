"""The form of a file: properties, variables, YAML, Podman unit, devcontainer.json, script
or Terraform file.

The name decides, without the endings of templates and copies (`server.properties.j2`,
`.env.example`). For other names the content decides: a `kafka.conf` may contain properties, an
`/etc/default/kafka` variables.
"""

import re
from enum import Enum, auto

from earshot.facts.settings import is_broker_configuration
from earshot.listeners.images import is_broker
from earshot.listeners.properties import read_properties
from earshot.sources.files import PROPERTIES
from earshot.sources.recipes import is_recipe_file
from earshot.sources.substitution import is_env_file

YAML = (".yml", ".yaml")
UNITS = (".container", ".pod")
DEVELOPMENT_CONTAINERS = ("devcontainer.json", ".devcontainer.json")
CONFIGURATION = (".conf", ".cfg")
SCRIPTS = (".sh", ".bash", ".zsh", ".ksh", ".bat", ".cmd", ".ps1")
_TEMPLATES = (".j2", ".jinja", ".jinja2", ".tmpl", ".tpl", ".tftpl", ".gotmpl", ".template", ".erb",
              ".epp", ".ejs", ".mustache", ".in")  # fmt: skip
_SAMPLES = (".example", ".sample", ".dist", ".default", ".defaults")
_COPIES = (".bak", ".orig", ".old", ".save")
_TASK = re.compile("task[-_]?def")
"""Part of the usual names of ECS task definitions."""
_ASSIGNED = re.compile(r"^[ \t]*(?:export[ \t]+)?([A-Za-z][\w.-]*)[ \t]*=(.*)$", re.MULTILINE)


class Form(Enum):
    """How a file is read."""

    PROPERTIES = auto()
    VARIABLES = auto()
    YAML = auto()
    UNIT = auto()
    """A Podman unit for systemd."""
    DEVELOPMENT_CONTAINER = auto()
    SCRIPT = auto()
    TERRAFORM = auto()


def by_name(name: str) -> Form | None:
    """The form of a file by its name, or None."""
    stem = _without_endings(name.lower(), (*_TEMPLATES, *_SAMPLES, *_COPIES))
    if stem.endswith(PROPERTIES):
        return Form.PROPERTIES
    if is_env_file(stem) or stem == "env":
        return Form.VARIABLES
    if stem.endswith(UNITS):
        return Form.UNIT
    if stem in DEVELOPMENT_CONTAINERS:
        return Form.DEVELOPMENT_CONTAINER
    if stem.endswith(SCRIPTS):
        return Form.SCRIPT
    if is_recipe_file(stem):
        return Form.SCRIPT
    if stem.endswith((".tf", ".tf.json")):
        return Form.TERRAFORM
    is_task = stem.endswith(".json") and _TASK.search(stem) is not None
    return Form.YAML if stem.endswith(YAML) or is_task else None


def is_looked_for(name: str) -> bool:
    """True if a file of this name in a folder is checked or counted as passed over."""
    lower = name.lower()
    if lower.endswith(_COPIES):
        return False
    return by_name(name) is not None or lower.endswith(CONFIGURATION)


def by_content(text: str) -> Form | None:
    """The form of a text with properties or variables of a broker, or None."""
    assignments = dict(_ASSIGNED.findall(text))
    if is_broker_configuration(assignments) and is_broker_configuration(
        read_properties(text).values
    ):
        return Form.PROPERTIES
    return Form.VARIABLES if is_broker("", assignments) else None


def _without_endings(name: str, endings: tuple[str, ...]) -> str:
    """``name`` without all its ``endings``."""
    while ending := next((ending for ending in endings if name.endswith(ending)), ""):
        name = name.removesuffix(ending)
    return name
