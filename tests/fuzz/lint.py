"""`earshot lint` on one damaged file, in this process."""

import contextlib
import io
from pathlib import Path

from earshot.cli import lint
from earshot.errors import EarshotError
from earshot.lint.formats import LintFormat
from tests.fuzz.inputs import Input

EXIT_CODES = (0, 1, 2, 3)


def exit_code(input: Input, folder: Path) -> int:
    """The exit code of the command, for some files with `--fix`. Its output, in one format or
    another, is dropped."""
    file = folder / input.name
    file.write_bytes(input.content)
    format = list(LintFormat)[len(input.content) % len(LintFormat)]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            choice = lint.Choice(fix=len(input.content) % 3 == 0)
            return lint.run([file], choice, format, [])
        except EarshotError as error:
            return error.exit_code
