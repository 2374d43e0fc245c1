"""The record of a stack's changes: the last complete plan, and steps that were begun."""

from pathlib import Path

from earshot.errors import EarshotError
from earshot.files import cache
from earshot.listeners.model import ClusterPlan, Frozen

FILE = "change.json"


class ChangeMemory(Frozen):
    """The plans that nodes of a stack may run."""

    complete: ClusterPlan | None = None
    """The last plan that every broker has and that was proved; None if unknown."""
    begun: tuple[ClusterPlan, ...] = ()
    """Plans of steps that were interrupted since then; each node may run any of them."""
    done: int = 0
    """Number of completed steps of a longer change."""

    def has(self, plan: ClusterPlan) -> bool:
        """True if nodes may run ``plan`` by this record, or if there is none."""
        return self.complete is None or plan in (self.complete, *self.begun)


def recall(folder: Path) -> ChangeMemory:
    """The record in ``folder``, a stack's; empty if the file is missing or invalid.

    Raises EarshotError if it cannot be read.
    """
    path = folder / FILE
    try:
        return ChangeMemory.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return ChangeMemory()
    except OSError as reason:
        raise EarshotError(str(path), observed=f"cannot be read ({reason.strerror})") from None


def begin(folder: Path, plan: ClusterPlan) -> None:
    """Record that nodes are about to get ``plan``. Raises EarshotError."""
    memory = recall(folder)
    if plan not in (memory.complete, *memory.begun):
        keep(folder, memory.model_copy(update={"begun": (*memory.begun, plan)}))


def complete(folder: Path, plan: ClusterPlan, done: int) -> None:
    """Record that every node has ``plan``, after ``done`` steps of a longer change.

    Raises EarshotError.
    """
    keep(folder, ChangeMemory(complete=plan, done=done))


def forget(folder: Path) -> None:
    """Delete the record, as the nodes are gone; new nodes may start with any plan."""
    (folder / FILE).unlink(missing_ok=True)


def keep(folder: Path, memory: ChangeMemory) -> None:
    """Replace the record with ``memory``. Raises EarshotError."""
    if memory == ChangeMemory():
        forget(folder)
        return
    path = folder / FILE
    try:
        cache.write(path, memory.model_dump_json(indent=2), mode=0o600)
    except OSError as reason:
        raise EarshotError(str(path), observed=f"cannot be written ({reason.strerror})") from None
