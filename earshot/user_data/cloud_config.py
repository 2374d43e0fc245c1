"""Cloud-config, the text that cloud-init reads: files, and the commands of the first boot.

Files come from templates beside this module. The text is ASCII, and the same for the same
arguments. It is not compressed: one zlib compresses otherwise than the other.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import yaml

from earshot.errors import EarshotError

if TYPE_CHECKING:
    import jinja2

LIMIT = 16 * 1024
"""Bytes, before base64: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/user-data.html"""
HEADER = "#cloud-config\n"


def cloud_config(
    who: str,
    files: dict[str, str],
    scripts: dict[str, str],
    commands: Sequence[Sequence[str]],
    remedy: str,
) -> str:
    """User data of ``who`` that write ``files`` and ``scripts`` (content by path) and then run
    ``commands``.

    Comments and indentation of scripts, units and settings are left out where there is no room for
    them. Raises EarshotError for a text that is over `LIMIT` even so, with ``remedy``.
    """
    text = _document(files, scripts, commands)
    if len(text.encode()) > LIMIT:
        ours = {path: file for path, file in files.items() if path.endswith((".service", ".conf"))}
        lean = {path: _lean(it) for path, it in (ours | scripts).items()}
        text = _document(
            files | {it: lean[it] for it in ours}, {it: lean[it] for it in scripts}, commands
        )
    size, allowed = len(text.encode()), f"{LIMIT} bytes"
    if size > LIMIT:
        what, observed = f"{who}: user data", f"{size} bytes"
        raise EarshotError(what, observed=observed, allowed=allowed, remedy=remedy)
    return text


def _document(
    files: Mapping[str, str], scripts: Mapping[str, str], commands: Sequence[Sequence[str]]
) -> str:
    written = [{"path": path, "content": content} for path, content in files.items()]
    for path, content in scripts.items():
        written.append({"path": path, "permissions": "0755", "content": content})
    document = {"write_files": written, "runcmd": [list(words) for words in commands]}
    text = yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=LIMIT)
    return HEADER + text.replace("\n    ", "\n   ")  # three spaces before a file's lines do


def rendered(name: str, values: Mapping[str, Any]) -> str:
    """The template ``name`` (without its suffix) with ``values``."""
    return _environment().get_template(f"{name}.j2").render(values)


def _lean(text: str) -> str:
    lines = [line.strip() for line in text.splitlines()]
    return "\n".join(line for line in lines if line and not line.startswith("# ")) + "\n"


@cache
def _environment() -> jinja2.Environment:
    import jinja2  # slow to import, and a plan can be shown without

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("earshot.user_data", "."),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        comment_start_string="{##",  # "{#" is how the length of a bash array begins
        comment_end_string="##}",
    )
    environment.filters.update(quote=lambda value: shlex.quote(str(value)), words=shlex.join)
    return environment


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as they are, so that a file in a cloud-config can be read."""


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)
