"""A copy of what a store cannot make again: its authorities, and passwords that clients know."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fnmatch import fnmatchcase

from earshot import cache
from earshot.certificates.store import Store, numbered
from earshot.errors import EarshotError
from earshot.listeners.security import AUTHORITY

_KEY = AUTHORITY.removesuffix("pem") + "key"
_PUBLIC = (AUTHORITY, numbered(AUTHORITY, "*"))
_COPIED = (*_PUBLIC, _KEY, numbered(_KEY, "*"), "[!.]*.password")
"""Patterns of their names; `trusted.pem` and key stores are made of them."""


def copied(store: Store) -> str:
    """The copy, which holds keys and passwords."""
    names = sorted({path.name for it in _COPIED for path in store.folder.glob(it)})
    return json.dumps({name: (store.folder / name).read_text() for name in names})


def restore(store: Store, copy: str, key_stores: Mapping[str, str]) -> None:
    """Lets the files in ``copy``, and ``key_stores`` by name, be as they are there.

    What else the store has stays. Raises EarshotError for a text that is no copy; OSError.
    """
    try:
        files = {str(name): str(text) for name, text in json.loads(copy).items()}
    except (ValueError, AttributeError):
        what, who = "the copy of the stack's authority", "see who has written it"
        remedy = f"{who}; the update of a checkout that has the authority writes it anew"
        raise EarshotError(what, observed="is none", remedy=remedy) from None
    for name, text in (files | {f"{it}.pem": text for it, text in key_stores.items()}).items():
        path = store.folder / name
        leads_elsewhere = path.name != name
        if not leads_elsewhere and (not path.exists() or path.read_text() != text):
            store.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            public = any(fnmatchcase(name, it) for it in _PUBLIC)
            cache.write(path, text, 0o644 if public else 0o600)
