"""The locks agree with each other: what runs in a container is what runs here."""

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
    found = re.finditer(pattern, file.read_text(), re.MULTILINE | re.DOTALL)
    return {match[1]: match[0] for match in found}


def test_the_validators_lock_is_a_part_of_the_whole() -> None:
    whole, part = entries(LOCK_FILE), entries(VALIDATOR_LOCK)
    assert part.items() <= whole.items()
    assert all("--hash=sha256:" in entry for entry in part.values())


def test_extras_that_packages_ask_for_are_pinned_with_them() -> None:
    """pip 23.2 holds `coverage==7` of no account where a package asks for `coverage[toml]`,
    and takes the newest, of which the lock has no hash."""
    locked = entries(LOCK_FILE)
    asked = {
        (wanted.name, extra)
        for name in locked
        for wanted in required(name)
        for extra in wanted.extras
    }
    assert ("coverage", "toml") in asked
    assert not [it for it in asked if it[1] not in Requirement(first_line(locked[it[0]])).extras]


def required(name: str) -> list[Requirement]:
    """What an installed package asks for on this machine, without extras of its own."""
    try:
        found = [Requirement(line) for line in metadata.requires(name) or ()]
    except metadata.PackageNotFoundError:
        return []  # of another system
    return [it for it in found if it.marker is None or it.marker.evaluate({"extra": ""})]


def first_line(entry: str) -> str:
    return entry.splitlines()[0].rstrip(" \\")


def test_the_validator_has_what_the_library_needs_and_no_deployment() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["spark"]]
    names = [re.split(r"[^\w-]", line)[0] for line in wanted]
    assert {"confluent-kafka", "dnspython", "pydantic", "pyspark", "typer"} <= set(names)
    assert set(names) <= entries(VALIDATOR_LOCK).keys()
    assert not [name for name in entries(VALIDATOR_LOCK) if name.startswith(("pulumi", "docker"))]
