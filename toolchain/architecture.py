"""`make architecture`: the layers of this project's packages, as docs/architecture.md shows them.

They are those of `tool.importlinter` in `pyproject.toml`: `make check` fails on an import upwards.
"""

import tomllib

from toolchain.paths import ROOT


def layers_text() -> str:
    """A row for each layer, the uppermost first; packages of `earshot` without that prefix."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = (
        contract["layers"] for contract in settings["contracts"] if contract["type"] == "layers"
    )
    rows = ("   ".join(row.replace("earshot.", "").split(" | ")) for row in layers)
    return "\n".join(["```text", *rows, "```", ""])


if __name__ == "__main__":
    print(layers_text(), end="")
