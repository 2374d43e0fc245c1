"""The messages between a stack and its validator, as objects in a bucket.

The stack writes an order. The validator writes its status and its reports: the latest, a dated
copy, and the answer to an order, whose key contains the order's digest.
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
    """The validation that a validator runs, until there is another order."""

    version: Literal[1] = 1
    id: str
    """A new id for each order, so that two orders with the same content differ."""
    vantage: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,30}$")
    """The name of the vantage in the report."""
    contract: Contract
    """The contract with only the listeners of the vantage's scope."""
    incarnations: dict[str, str] = Field(default_factory=dict)
    records: int = Field(ge=0)
    deadline: float = Field(gt=0)
    """Seconds for the whole run."""

    def to_json(self) -> str:
        return self.model_dump_json(indent=2)


class ValidatorState(StrEnum):
    """The state of a validator."""

    PREPARING = "preparing"
    READY = "ready"
    RUNNING = "running"
    FAILED = "failed"


class Status(Frozen):
    """The last status that a validator has written."""

    instance: str
    """The instance id, as in cloud-init's data."""
    state: ValidatorState
    order: str
    """The digest of the current order; empty before the first one."""
    detail: str
    at: str
    """The time by the instance's clock (ISO 8601, UTC)."""

    @classmethod
    def read(cls, text: str) -> Status | None:
        """The status in ``text``, or None if it is invalid."""
        try:
            return cls.model_validate_json(text)
        except ValidationError:
            return None

    def ends(self, order: str, instance: str) -> bool:
        """True if ``instance`` has failed, and will not answer ``order`` (a digest)."""
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
