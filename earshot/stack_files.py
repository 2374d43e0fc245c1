"""Files that a stack has of its own, or shares with the template that it is from.

Standard library only: `make env` asks before any package is installed.
"""

import re
from pathlib import Path

from earshot.errors import EarshotError

PRIVATE = ".earshot"
"""The folder in a project for what earshot keeps there."""
_STACK = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)


def stack_name(stack: str) -> str:
    """The bare name of ``stack``, which may be written `organization/project/stack`.

    Raises EarshotError for what Pulumi would not take as a stack's name.
    """
    parts = stack.split("/")
    if len(parts) > 3 or not all(map(_STACK.fullmatch, parts)):
        raise EarshotError(
            f"stack {stack!r}" if len(stack) <= 120 else f"stack {stack[:100]!r}...",
            observed="is no stack's name",
            allowed="up to 100 letters, digits, hyphens, underscores and dots, beginning with a "
            "letter or digit; also organization/project/stack",
        )
    return parts[-1]


def current_folder() -> Path:
    """The folder that this process is in. Raises EarshotError if it was removed."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise EarshotError(
            "the current folder",
            observed="was removed",
            remedy="change into the project's folder",
        ) from None


def project_of(path: Path) -> Path:
    """The folder of the project that has ``path`` in its `PRIVATE`, or else the current one."""
    projects = (parent.parent for parent in path.parents if parent.name == PRIVATE)
    return next(projects, None) or current_folder()


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
