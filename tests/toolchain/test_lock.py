"""The locks agree: containers run the same packages as this machine."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from toolchain.paths import LOCK_FILE, ROOT

VALIDATOR_LOCK = ROOT / "earshot" / "remote" / "requirements.lock"


def entries(file: Path) -> dict[str, str]:
    """Package -> its entry, with version, conditions and hashes."""
    pattern = r"^([\w.-]+)(?:\[[^]]*\])?==.*?(?=^\S|\Z)"
    matches = re.finditer(pattern, file.read_text(), re.MULTILINE | re.DOTALL)
    return {match[1]: match[0] for match in matches}


def test_the_validators_lock_is_a_part_of_the_whole() -> None:
    whole, part = entries(LOCK_FILE), entries(VALIDATOR_LOCK)
    assert part.items() <= whole.items()
    assert all("--hash=sha256:" in entry for entry in part.values())


def test_extras_that_packages_ask_for_are_pinned_with_them() -> None:
    """If a package requires `coverage[toml]`, pip 23.2 ignores a pin of `coverage`.

    It installs the newest release, of which the lock has no hash.
    """
    locked = entries(LOCK_FILE)
    extras = {
        (requirement.name, extra)
        for name in locked
        for requirement in required(name)
        for extra in requirement.extras
    }
    assert ("coverage", "toml") in extras
    assert not [
        pair for pair in extras if pair[1] not in Requirement(first_line(locked[pair[0]])).extras
    ]


def required(name: str) -> list[Requirement]:
    """The requirements of an installed package on this machine, without its extras."""
    try:
        requirements = [Requirement(line) for line in metadata.requires(name) or ()]
    except metadata.PackageNotFoundError:
        return []  # of another system
    return [
        requirement
        for requirement in requirements
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""})
    ]


def first_line(entry: str) -> str:
    return entry.splitlines()[0].rstrip(" \\")


def test_the_validator_has_what_the_library_needs_and_no_deployment() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    dependencies = [*project["dependencies"], *project["optional-dependencies"]["spark"]]
    names = [re.split(r"[^\w-]", line)[0] for line in dependencies]
    assert {"confluent-kafka", "dnspython", "pydantic", "pyspark", "typer"} <= set(names)
    assert set(names) <= entries(VALIDATOR_LOCK).keys()
    assert not [name for name in entries(VALIDATOR_LOCK) if name.startswith(("pulumi", "docker"))]
