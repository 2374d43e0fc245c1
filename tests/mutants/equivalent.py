"""The mistakes that change nothing anybody could notice, as `equivalent.txt` lists them.

One to a line: ``path | was -> is | reason``, the change as the report of survivors writes it.
"""

from collections.abc import Sequence
from pathlib import Path

from tests.mutants.operators import Mutant

FILE = Path(__file__).with_name("equivalent.txt")


def equivalent(all_mutants: Sequence[Mutant], root: Path, text: str | None = None) -> set[Mutant]:
    """The listed ones of ``all_mutants``. Raises ValueError for a line that is no mutant."""
    listed_changes: dict[tuple[str, str], str] = {}
    for line in (FILE.read_text() if text is None else text).splitlines():
        if line.strip() and not line.startswith("#"):
            path, _, change_and_reason = line.partition(" | ")
            listed_changes[path.strip(), change_and_reason.rpartition(" | ")[0].strip()] = line
    sources = {path: (root / path).read_text() for path in {mutant.path for mutant in all_mutants}}
    changes = {mutant: (mutant.path, mutant.change(sources[mutant.path])) for mutant in all_mutants}
    stale = [
        line
        for key, line in listed_changes.items()
        if key[0] in sources and key not in set(changes.values())
    ]
    if stale:
        raise ValueError("equivalent.txt lists what is not in the code:\n" + "\n".join(stale))
    return {mutant for mutant, change in changes.items() if change in listed_changes}
