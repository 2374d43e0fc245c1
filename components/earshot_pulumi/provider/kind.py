"""The interface of a custom resource's behaviour, independent of the plugin protocol."""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from earshot.errors import EarshotError

Properties = dict[str, Any]
"""Inputs or outputs of a resource by schema name (camelCase): plain data, `UNKNOWN` included."""
Inputs = Mapping[str, Any]
"""What a program gives to a component or a resource, by input: values of any type, and Outputs."""
Outputs = Mapping[str, Any]
"""What a component or a resource gives to a program, by output: values of any type, and Outputs."""


Show = Callable[[str, bool], None]
"""Shows a text next to a resource; True makes it a warning."""


class Unknown:
    """A value that a preview cannot know."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()


def has_unknown(value: object) -> bool:
    """True if ``value`` or a part of it is unknown."""
    if isinstance(value, Mapping):
        return any(map(has_unknown, value.values()))
    return any(map(has_unknown, value)) if isinstance(value, list) else isinstance(value, Unknown)


class InvalidInputs(Exception):
    """Inputs that must not be applied; maps an input's name, or "" for all, to the reason."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        super().__init__("\n".join(reasons.values()))
        self.reasons = dict(reasons)


class OperationFailed(Exception):
    """An operation that failed; the engine shows the message as the resource's error."""


class FailedUpdate(OperationFailed):
    """An update that failed after it made the former outputs obsolete.

    The state gets ``outputs``, and the next update tries again, whatever its inputs are.
    """

    def __init__(self, message: str, outputs: Properties) -> None:
        super().__init__(message)
        self.outputs = outputs


class Interrupted(OperationFailed):
    """The engine cancelled the update while the operation ran."""


@dataclass(frozen=True)
class Difference:
    """The result of a diff."""

    changed: bool
    replaced_by: Collection[str] = ()
    """Inputs whose change replaces the resource."""
    delete_first: bool = False


@dataclass(frozen=True)
class Operation:
    """One call of the engine, for the methods of a `Kind`."""

    urn: str
    preview: bool = False
    cancelled: threading.Event = field(default_factory=threading.Event)
    log: Callable[[str], None] = print
    """Shows one line next to the resource while the operation runs."""
    config: MutableMapping[str, Any] = field(default_factory=dict, repr=False)
    """The stack's configuration including secrets: `earshot:` settings, and additions of kinds.

    All operations of a run share it.
    """

    @property
    def name(self) -> str:
        """The resource's name in the program."""
        return self.urn.rpartition("::")[2]

    def wait(self, seconds: float) -> None:
        """Waits; raises Interrupted as soon as the engine cancels the update."""
        if self.cancelled.wait(seconds):
            raise Interrupted("interrupted")


class Kind:
    """The behaviour of one type of custom resource, which is created and updated in the same way.

    Each call of a method has its own thread.
    """

    secrets: Collection[str] = ()
    """Inputs and outputs that are always secret. Others are secret if the program marks them."""
    interrupted: str = "interrupted"
    """The error of an operation that the engine cancelled. It names what may be incomplete."""
    ID: str = ""
    """The fixed id of its resource."""
    ID_IN: str = ""
    """The output that is the id, if it is not fixed."""
    DECISIVE: tuple[str, ...] = ()
    """The inputs whose change updates the resource. Empty: all inputs except those in `IDLE`."""
    OWNS: tuple[str, ...] = ()
    """The inputs that name what only one resource of a stack may manage, such as a folder.

    Pulumi deletes the former resource last if it is replaced, or gets another parent; after a
    failed update, in the next one. A delete leaves what a resource of the program owns.
    """
    IDLE: tuple[str, ...] = ()
    """The inputs whose change does not update the resource."""

    def problems(self, operation: Operation, olds: Properties, news: Properties) -> Iterable[str]:
        """Why ``news`` must not replace ``olds``, which are empty at first.

        May complete ``news``. An EarshotError that it raises becomes one more problem.
        """
        return ()

    def check(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        """The inputs with their defaults. Raises InvalidInputs if they have `problems`."""
        problems: list[str] = []
        try:
            for problem in self.problems(operation, olds, news):
                problems.append(problem)
        except EarshotError as error:
            problems.append(str(error))
        if problems:
            raise InvalidInputs({"": "\n" + "\n".join(f"- {problem}" for problem in problems)})
        return news

    def differs(self, operation: Operation, olds: Properties, news: Properties) -> bool:
        """True if the resource must be updated."""
        names = self.DECISIVE or news.keys() - set(self.IDLE)
        return any(olds.get(name) != news.get(name) for name in names)

    def diff(self, operation: Operation, olds: Properties, news: Properties) -> Difference:
        """The difference between the outputs ``olds`` and the inputs ``news``."""
        return Difference(self.differs(operation, olds, news))

    def apply(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        """Creates or updates the resource and returns its outputs; ``olds`` are empty at first.

        Raises EarshotError or OperationFailed.
        """
        return news

    def create(self, operation: Operation, news: Properties) -> tuple[str, Properties]:
        """The id and outputs; in a preview, outputs that are not known yet are missing."""
        if operation.preview:
            return "", news
        outputs = self.apply(operation, {}, news)
        return outputs[self.ID_IN] if self.ID_IN else self.ID, outputs

    def update(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        """The outputs after the change. Raises like `apply`, or FailedUpdate."""
        return news if operation.preview else self.apply(operation, olds, news)

    def read(self, operation: Operation, olds: Properties) -> Properties | None:
        """The outputs of the existing resource; None if it no longer exists."""
        return olds

    def delete(self, operation: Operation, olds: Properties) -> None:
        """Removes the resource. By default there is nothing to remove. Raises OperationFailed."""
        return

    def delete_before_replacement(self, operation: Operation, olds: Properties) -> None:
        """Removes the resource, which is then created again, as with `pulumi up --replace`."""
        self.delete(operation, olds)
