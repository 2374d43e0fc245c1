"""The locks agree with each other: what runs in a container is what runs here."""

from __future__ import annotations

import re
from pathlib import Path

from toolchain.lock import VALIDATOR_LOCK, validator_requirements
from toolchain.paths import LOCK_FILE


def entries(file: Path) -> dict[str, str]:
    """Package -> its entry, with version, conditions and hashes."""
    pattern = r"^([\w.-]+)==.*?(?=^\S|\Z)"
    found = re.finditer(pattern, file.read_text(), re.MULTILINE | re.DOTALL)
    return {match[1]: match[0] for match in found}


def test_the_validators_lock_is_a_part_of_the_whole() -> None:
    whole, part = entries(LOCK_FILE), entries(VALIDATOR_LOCK)
    assert part.items() <= whole.items()
    assert all("--hash=sha256:" in entry for entry in part.values())


def test_the_validator_has_what_the_library_needs_and_no_deployment() -> None:
    names = [re.split(r"[^\w-]", line)[0] for line in validator_requirements()]
    assert {"confluent-kafka", "dnspython", "pydantic", "pyspark", "typer"} <= set(names)
    assert set(names) <= entries(VALIDATOR_LOCK).keys()
    assert not [name for name in entries(VALIDATOR_LOCK) if name.startswith(("pulumi", "docker"))]
