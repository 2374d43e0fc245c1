"""What is remembered of a stack's changes: the last complete one, and a step that was begun."""

from pathlib import Path

from earshot import cache
from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan, Frozen

FILE = "change.json"


class ChangeMemory(Frozen):
    """The plans that nodes of a stack may run."""

    complete: ClusterPlan | None = None
    """Of the last change that every broker has made and that was proved; None: not known."""
    begun: tuple[ClusterPlan, ...] = ()
    """Of steps since then, which were interrupted: some nodes may run any of them."""
    done: int = 0
    """Steps of a longer change that are complete."""

    def has(self, plan: ClusterPlan) -> bool:
        """Whether nodes may run ``plan`` by what is remembered; True where nothing is."""
        return self.complete is None or plan in (self.complete, *self.begun)


def recall(folder: Path) -> ChangeMemory:
    """What is remembered in ``folder``, a stack's; empty where there is nothing, or nothing whole.

    Raises EarshotError where it may not be read.
    """
    path = folder / FILE
    try:
        return ChangeMemory.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return ChangeMemory()
    except OSError as reason:
        raise EarshotError(str(path), observed=f"cannot be read ({reason.strerror})") from None


def begin(folder: Path, plan: ClusterPlan) -> None:
    """Remember that nodes are about to get ``plan``. Raises EarshotError."""
    before = recall(folder)
    if plan not in (before.complete, *before.begun):
        keep(folder, before.model_copy(update={"begun": (*before.begun, plan)}))


def complete(folder: Path, plan: ClusterPlan, done: int) -> None:
    """Remember that every node has ``plan``, after ``done`` steps of a longer change.

    Raises EarshotError.
    """
    keep(folder, ChangeMemory(complete=plan, done=done))


def forget(folder: Path) -> None:
    """Remember nothing: the nodes are gone, and the next ones may begin with any plan."""
    (folder / FILE).unlink(missing_ok=True)


def keep(folder: Path, memory: ChangeMemory) -> None:
    """Remember this and nothing else. Raises EarshotError."""
    if memory == ChangeMemory():
        forget(folder)
        return
    path = folder / FILE
    try:
        cache.write(path, memory.model_dump_json(indent=2), mode=0o600)
    except OSError as reason:
        raise EarshotError(str(path), observed=f"cannot be written ({reason.strerror})") from None
