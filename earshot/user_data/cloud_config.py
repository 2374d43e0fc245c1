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
    lean: bool = False,
) -> str:
    """User data of ``who`` that write ``files`` and ``scripts`` (content by path) and then run
    ``commands``; ``lean`` leaves comments and indentation of scripts and units out. Raises
    EarshotError for a text over `LIMIT`, with ``remedy``."""
    written = []
    for path, content in (files | scripts).items():
        mode = {"permissions": "0755"} if path in scripts else {}
        if lean and (path in scripts or path.endswith(".service")):
            content = _lean(content)
        written.append({"path": path, **mode, "content": content})
    document = {"write_files": written, "runcmd": [list(words) for words in commands]}
    text = HEADER + yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=LIMIT)
    size, allowed = len(text.encode()), f"{LIMIT} bytes"
    if size > LIMIT:
        what, observed = f"{who}: user data", f"{size} bytes"
        raise EarshotError(what, observed=observed, allowed=allowed, remedy=remedy)
    return text


def rendered(name: str, values: Mapping[str, Any]) -> str:
    """The template ``name`` (without its suffix) with ``values``."""
    return _environment().get_template(f"{name}.j2").render(values)


def _lean(text: str) -> str:
    first, *rest = text.splitlines()
    found = [line.strip() for line in rest]
    return "\n".join([first, *(it for it in found if it and not it.startswith("# "))]) + "\n"


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
