"""What a node reports of itself through its role, where nobody can see it from outside."""

from __future__ import annotations

from enum import StrEnum

from pydantic import ValidationError

from earshot.listeners.model import Frozen


class NodeState(StrEnum):
    STARTING = "starting"
    IN_SYNC = "in-sync"
    FAILED = "failed"


class NodeReport(Frozen):
    """One report; the instance and its user data tell whether it is of the node now meant."""

    node: int
    instance: str
    """The instance's id, as cloud-init knows it."""
    user_data: str
    """SHA-256 of the user data that the instance booted with, in hexadecimal digits."""
    state: NodeState
    detail: str
    clients: dict[str, dict[str, int]] | None = None
    """By listener that a later change takes away, the connections of each address; None where no
    listener leaves, and where nobody could count."""
    at: str
    """When, by the instance's clock (ISO 8601, UTC)."""

    @property
    def serves(self) -> bool:
        return self.state is NodeState.IN_SYNC

    @classmethod
    def read(cls, text: str) -> NodeReport | None:
        """The report in ``text``, or None where it is none (as before the first)."""
        try:
            return cls.model_validate_json(text)
        except ValidationError:
            return None

    def lacks(self, node: int, instance: str, user_data: str) -> str:
        """Why this does not say that ``node`` serves on ``instance`` with ``user_data`` (its
        digest); an empty text where it does."""
        if self.node != node:
            return f"the last report is node {self.node}'s"
        if self.instance != instance:
            return f"the last report is of another instance, {self.instance}"
        if self.user_data != user_data:
            booted = f"{instance} booted with other user data: {self.user_data[:12]}…"
            return f"{booted}, not {user_data[:12]}…"
        return "" if self.serves else ": ".join(filter(None, (self.state, self.detail)))

    @property
    def is_final(self) -> bool:
        """Whether waiting longer is of no use."""
        return self.state is NodeState.FAILED
