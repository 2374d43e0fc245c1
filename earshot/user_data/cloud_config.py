"""Writes cloud-config, the text for cloud-init: files, and the commands of the first boot.

Files come from the templates in this package. The text is ASCII, and the same for the same
arguments. It is not compressed, as releases of zlib compress differently.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

import yaml

from earshot.errors import EarshotError

if TYPE_CHECKING:
    import jinja2

LIMIT = 16 * 1024
"""Bytes, before base64: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/user-data.html"""
HEADER = "#cloud-config\n"


def cloud_config(
    subject: str,
    files: dict[str, str],
    scripts: dict[str, str],
    commands: Sequence[Sequence[str]],
    remedy: str,
) -> str:
    """User data that write ``files`` and ``scripts`` (content by path), and then run ``commands``.

    If the text is too long, comments and indentation of scripts, units and settings are omitted.
    Raises EarshotError about ``subject``, with ``remedy``, for a text that is still over `LIMIT`.
    """
    text = _document(files, scripts, commands)
    if len(text.encode()) > LIMIT:
        units = {path: text for path, text in files.items() if path.endswith((".service", ".conf"))}
        lean_units = {path: _without_comments(text) for path, text in units.items()}
        lean_scripts = {path: _without_comments(text) for path, text in scripts.items()}
        text = _document(files | lean_units, lean_scripts, commands)
    size, allowed = len(text.encode()), f"{LIMIT} bytes"
    if size > LIMIT:
        raise EarshotError(
            f"{subject}: user data", observed=f"{size} bytes", allowed=allowed, remedy=remedy
        )
    return text


def _document(
    files: Mapping[str, str], scripts: Mapping[str, str], commands: Sequence[Sequence[str]]
) -> str:
    write_files = [{"path": path, "content": content} for path, content in files.items()]
    for path, content in scripts.items():
        write_files.append({"path": path, "permissions": "0755", "content": content})
    document = {"write_files": write_files, "runcmd": [list(words) for words in commands]}
    text = yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=LIMIT)
    return HEADER + text.replace("\n    ", "\n   ")  # three spaces suffice for the lines of files


def rendered(name: str, values: Mapping[str, object]) -> str:
    """The template ``name`` (without its suffix) with ``values``."""
    return _environment().get_template(f"{name}.j2").render(values)


def _without_comments(text: str) -> str:
    lines = [line.strip() for line in text.splitlines()]
    return "\n".join(line for line in lines if line and not line.startswith("# ")) + "\n"


@cache
def _environment() -> jinja2.Environment:
    import jinja2  # slow to import, and not needed to show a plan

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("earshot.user_data", "."),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        comment_start_string="{##",  # "{#" begins the length of a bash array
        comment_end_string="##}",
    )
    environment.filters.update(quote=lambda value: shlex.quote(str(value)), words=shlex.join)
    return environment


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines unchanged, so that files in a cloud-config are readable."""


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)
