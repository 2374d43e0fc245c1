"""Files that a stack has of its own, or shares with the template that it is from.

Standard library only: `make env` asks before any package is installed.
"""

from pathlib import Path

PRIVATE = ".earshot"
"""The folder in a project for what earshot keeps there."""


def project_of(path: Path) -> Path:
    """The folder of the project that has ``path`` in its `PRIVATE`, or else the current one."""
    held = (parent.parent for parent in path.parents if parent.name == PRIVATE)
    return next(held, Path.cwd())


def own_or_templates(stack: str, folder: Path, pattern: str) -> Path | None:
    """The file of ``stack`` in ``folder``, as in `Pulumi.{}.yaml`, or that of its template.

    A stack made from the template `local` may be called `local-anything`; None: there is none.
    """
    words = stack.split("-")
    for count in range(len(words), 0, -1):
        path = folder / pattern.format("-".join(words[:count]))
        if path.is_file():
            return path
    return None
