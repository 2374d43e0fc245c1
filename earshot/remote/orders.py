"""The messages between a stack and its validator, as objects in a bucket.

The stack leaves an order: what to prove. The validator says how it fares, and puts its reports: the
latest, a dated copy, and one as the answer to the order, by the order's own digest.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Final, Literal

from pydantic import Field, ValidationError

from earshot.errors import EarshotError, SpecError
from earshot.listeners.model import Frozen
from earshot.listeners.problems import describe
from earshot.validation.contract import Contract

ORDER: Final = "order.json"
STATUS: Final = "status.json"
REPORTS: Final = "reports/"
"""The prefix of the validator's reports."""
LATEST: Final = f"{REPORTS}latest.json"
DATED: Final = f"{REPORTS}dated/"
ANSWER_PREFIX: Final = f"{REPORTS}orders/"


class ValidationOrder(Frozen):
    """What a validator is to prove, until another order comes."""

    version: Literal[1] = 1
    id: str
    """Another one each time that an order is given: the same may be asked for twice."""
    vantage: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,30}$")
    """What the place is called in the report."""
    contract: Contract
    """With the listeners of its scope alone."""
    incarnations: dict[str, str] = Field(default_factory=dict)
    records: int = Field(ge=0)
    deadline: float = Field(gt=0)
    """Seconds for the whole run."""

    def to_json(self) -> str:
        return self.model_dump_json(indent=2)


class ValidatorState(StrEnum):
    """How a validator fares."""

    PREPARING = "preparing"
    READY = "ready"
    RUNNING = "running"
    FAILED = "failed"


class Status(Frozen):
    """What a validator last said of itself."""

    instance: str
    """The instance's id, as cloud-init knows it."""
    state: ValidatorState
    order: str
    """The digest of the order that it is about; empty before the first."""
    detail: str
    at: str
    """When, by the instance's clock (ISO 8601, UTC)."""

    @classmethod
    def read(cls, text: str) -> Status | None:
        """The status in ``text``, or None if it is invalid."""
        try:
            return cls.model_validate_json(text)
        except ValidationError:
            return None

    def ends(self, order: str, instance: str) -> bool:
        """Whether waiting for an answer of ``instance`` to the order ``order`` will never end."""
        is_failed = self.state is ValidatorState.FAILED
        return is_failed and self.instance == instance and self.order in ("", order)

    def __str__(self) -> str:
        text = f"{self.state}: {self.detail}" if self.detail else str(self.state)
        return f"{text} ({self.instance}, {self.at})"


def digest(order: str) -> str:
    """The digest that identifies an order, for the sender and the validator."""
    return hashlib.sha256(order.encode()).hexdigest()


def answer_to(order: str) -> str:
    """The key of the report on the order with this text."""
    return f"{ANSWER_PREFIX}{digest(order)}.json"


def read_order(text: str, source: str) -> ValidationOrder:
    """The order in ``text``; ``source`` names it. Raises EarshotError."""
    try:
        return ValidationOrder.model_validate_json(text)
    except ValidationError as error:
        if error.errors()[0]["type"] == "json_invalid":
            raise EarshotError(source, observed="is not JSON", allowed="an order") from None
        lines = describe(error, ValidationOrder, None)
        raise SpecError.of(f"{source} (an order of version 1)", lines[:20]) from None
