"""Finds the files of a stack, or of the template that it is created from.

Standard library only, as `make env` uses it before any package is installed.
"""

import re
from pathlib import Path

from earshot.errors import EarshotError

PRIVATE = ".earshot"
"""The folder in a project for earshot's files."""
_STACK = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)


def stack_name(stack: str) -> str:
    """The name of ``stack``, which may be given as `organization/project/stack`.

    Raises EarshotError for a name that Pulumi does not accept.
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
    """The current folder of this process. Raises EarshotError if it was removed."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise EarshotError(
            "the current folder",
            observed="was removed",
            remedy="change into the project's folder",
        ) from None


def project_of(path: Path) -> Path:
    """The folder of the project whose `PRIVATE` contains ``path``, or else the current folder."""
    projects = (parent.parent for parent in path.parents if parent.name == PRIVATE)
    return next(projects, None) or current_folder()


def own_or_templates(stack: str, folder: Path, pattern: str) -> Path | None:
    """The file of ``stack`` in ``folder``, as in `Pulumi.{}.yaml`, or that of its template.

    A stack of the template `local` may be called `local-anything`. None without a file.
    """
    words = stack.split("-")
    for count in range(len(words), 0, -1):
        path = folder / pattern.format("-".join(words[:count]))
        if path.exists() or path.is_symlink():  # the caller reports one that cannot be read
            return path
    return None
