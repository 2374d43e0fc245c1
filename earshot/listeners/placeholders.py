"""Placeholders in texts: variables of a shell, templates, marks that a tool replaces."""

import re

_TEMPLATE = re.compile(
    r"\$[A-Za-z_({]|`|[{}]|<[^<>]*>|@[A-Za-z_][A-Za-z0-9_.-]*@|%[A-Za-z_]+%|%\("
    r"|__[A-Z0-9]+(?:_[A-Z0-9]+)*__",
    re.ASCII,
)


def is_known(text: str) -> bool:
    """True if ``text`` contains no variable and no template."""
    return not _TEMPLATE.search(text)
