"""`make architecture`: the layers of this project's packages, as docs/architecture.md shows them.

They are those of `tool.importlinter` in `pyproject.toml`: `make check` fails on an import upwards.
"""

import tomllib

from toolchain.paths import ROOT


def picture() -> str:
    """A row for each layer, the uppermost first; packages of `earshot` have their own names."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = (it["layers"] for it in contracts["contracts"] if it["type"] == "layers")
    rows = ("   ".join(row.replace("earshot.", "").split(" | ")) for row in layers)
    return "\n".join(["```text", *rows, "```", ""])


if __name__ == "__main__":
    print(picture(), end="")
