"""The plan of brokers that are processes of this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from earshot.config.local import LocalSpec
from earshot.errors import EarshotError
from earshot.listeners.security import FOLDER
from earshot.names.machine import this_machine
from earshot.placement.local_names import local_names
from earshot.placement.plan import plan
from earshot.placement.planned import Planned
from earshot.placement.secured import secured

SMALL_BROKER = {
    # the default of 128 MiB is allocated at start and does not fit a small heap
    "log.cleaner.dedupe.buffer.size": "2097152",
    # nobody waits for more consumers to join on a developer's machine
    "group.initial.rebalance.delay.ms": "0",
}


@dataclass(frozen=True, kw_only=True)
class LocalPlan(Planned):
    """What `plan` made of a local spec, and the folder of its cluster."""

    root: Path


def plan_local(spec: LocalSpec, root: Path) -> LocalPlan:
    """The plan of ``spec`` on this machine, with data under ``root``. Raises EarshotError."""
    _check_root(root)
    named = local_names(spec, this_machine(), root)
    settled = spec.model_copy(update={"extra": SMALL_BROKER | spec.extra})
    made, folder = plan(settled, named.names), str(root / FOLDER)
    # the first tier of compilation alone: see `earshot.jvm.archive`
    found = secured(made, spec.security, root, folder, slow_aes=True)
    notes = (*named.notes, *found.notes)
    return LocalPlan(
        plan=found.plan,
        names=named.names,
        notes=notes,
        root=root,
        certificates=found.certificates,
    )


def planned(spec: LocalSpec, _stack: str, state: Path) -> LocalPlan:
    """The same for a stack whose data lies under ``state``."""
    return plan_local(spec, state / "kafka")


def _check_root(root: Path) -> None:
    """Every other path Kafka takes, once its properties are escaped."""
    observed = ""
    if "," in str(root):
        observed = "has a comma in its path, at which Kafka would take `log.dirs` apart"
    try:
        str(root).encode()
    except UnicodeEncodeError:
        observed = "has a path that is no UTF-8 text, which Java cannot open"
    if observed:
        raise EarshotError(
            f"data folder {str(root).encode(errors='backslashreplace').decode()}",
            observed=observed,
            remedy="move the project to another path",
        )
