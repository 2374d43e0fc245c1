"""`make architecture`: the packages of this project and their imports, as a Mermaid diagram.

`tool.importlinter` in `pyproject.toml` has the allowed arrows; `make check` fails on any other.
"""

import grimp

PACKAGES = ("earshot", "earshot_pulumi", "earshot_policies", "toolchain")
COMMON = frozenset({"errors", "cache", "reading", "earshot", "__main__"})
"""Modules that nearly every room imports; the diagram leaves them out."""


def room(module: str) -> str:
    """The room of ``module``: a package of the library, or one of the others as a whole."""
    package, *inner = module.split(".")
    return inner[0] if package == "earshot" and inner else package


def arrows() -> set[tuple[str, str]]:
    """The imports of each package."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    found = {
        (room(module), room(used))
        for module in graph.modules
        for used in graph.find_modules_directly_imported_by(module)
    }
    return {(one, other) for one, other in found if one != other}


def essential(found: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """``found`` without arrows that a longer path implies: with all, the diagram is unreadable."""
    below: dict[str, set[str]] = {}
    for one, other in found:
        below.setdefault(one, set()).add(other)

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        ahead = [start]
        while ahead:
            new = below.get(ahead.pop(), set()) - seen
            seen |= new
            ahead += new
        return seen

    return {
        (one, other)
        for one, other in found
        if not any(other in reached(way) for way in below[one] - {other})
    }


def mermaid(found: set[tuple[str, str]]) -> str:
    """The arrows as a diagram that GitHub draws."""
    lines = [f"    {one} --> {other}" for one, other in sorted(found)]
    return "\n".join(["```mermaid", "flowchart TD", *lines, "```", ""])


def picture() -> str:
    """The diagram in `docs/architecture.md`."""
    return mermaid(essential({it for it in arrows() if not COMMON & {*it}}))


if __name__ == "__main__":
    print(picture(), end="")
