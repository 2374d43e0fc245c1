"""What all parts of the bench measure and show alike."""

import statistics
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.table import Table

console = Console()


def interleaved(measures: dict[str, Callable[[], float]], runs: int) -> dict[str, list[float]]:
    """Seconds by name: every measure once, then every measure again, so that all meet the same
    machine."""
    found: dict[str, list[float]] = {name: [] for name in measures}
    for number in range(runs):
        for name, measure in measures.items():
            console.print(f"  run {number + 1} of {runs}: {name} ...", style="dim")
            found[name].append(measure())
    return found


def ratio(one: Sequence[float], other: Sequence[float]) -> str:
    return f"{statistics.median(one) / statistics.median(other):.2f}"


def show(title: str, found: dict[str, list[float]], ratios: Sequence[tuple[str, str, str]]) -> None:
    table = Table("what", "min", "median", "goal", title=title, title_justify="left")
    for name, seconds in found.items():
        table.add_row(name, f"{min(seconds):.3f} s", f"{statistics.median(seconds):.3f} s", "")
    table.add_section()
    for name, figure, goal in ratios:
        table.add_row(name, "", figure, goal)
    console.print(table)
