"""Find the Pulumi providers among the installed packages. Also a script: prints them as JSON.

A provider's Python package has a ``pulumi-plugin.json``. Standard library only: as a script this
runs under the interpreter of the program in question.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import Distribution

MARKER = "pulumi-plugin.json"


def find() -> list[dict[str, str]]:
    """Name, version and server (may be empty) of each provider, by name."""
    from importlib.metadata import distributions  # slow, and two hosts of three do without

    packages = {}
    for distribution in distributions():
        # Reading the record as text is much faster than ``files``, which parses all of it.
        record = distribution.read_text("RECORD") or ""
        if MARKER not in record:
            continue
        for line in record.splitlines():
            path = line.partition(",")[0]
            if path.rpartition("/")[2] == MARKER:
                package = _read(distribution, path)
                if package is not None:
                    packages[package["name"]] = package
    return [packages[name] for name in sorted(packages)]


def _read(distribution: Distribution, path: str) -> dict[str, str] | None:
    try:
        with open(str(distribution.locate_file(path)), encoding="utf-8") as file:  # noqa: PTH123
            plugin = json.load(file)
    except (OSError, ValueError):
        return None
    if not isinstance(plugin, dict) or plugin.get("resource") is not True:
        return None
    name = distribution.name.removeprefix("pulumi-").removeprefix("pulumi_").replace("_", "-")
    return {
        "name": plugin.get("name") or name,
        "version": plugin.get("version") or distribution.version,
        "server": plugin.get("server") or "",
    }


if __name__ == "__main__":
    print(json.dumps(find()))
