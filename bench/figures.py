"""Measuring and tables for all parts of the bench."""

import statistics
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.table import Table

console = Console()


def measure_in_turn(measures: dict[str, Callable[[], float]], runs: int) -> dict[str, list[float]]:
    """Seconds by name: every measure once, then every measure again, so that all meet the same
    machine."""
    seconds_by_name: dict[str, list[float]] = {name: [] for name in measures}
    for number in range(runs):
        for name, measure in measures.items():
            console.print(f"  run {number + 1} of {runs}: {name} ...", style="dim")
            seconds_by_name[name].append(measure())
    return seconds_by_name


def ratio(first_seconds: Sequence[float], second_seconds: Sequence[float]) -> str:
    return f"{statistics.median(first_seconds) / statistics.median(second_seconds):.2f}"


def show(
    title: str, seconds_by_name: dict[str, list[float]], ratios: Sequence[tuple[str, str, str]]
) -> None:
    table = Table("what", "min", "median", "goal", title=title, title_justify="left")
    for name, seconds in seconds_by_name.items():
        table.add_row(name, f"{min(seconds):.3f} s", f"{statistics.median(seconds):.3f} s", "")
    table.add_section()
    for name, figure, goal in ratios:
        table.add_row(name, "", figure, goal)
    console.print(table)
