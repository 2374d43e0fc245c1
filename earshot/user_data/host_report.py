"""What a Docker host reports of itself through its role, before its engine answers."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import ValidationError

from earshot.listeners.model import Frozen
from earshot.user_data.boot import SKEW_SECONDS


class HostReport(Frozen):
    """One report."""

    instance: str
    """The instance's id, as cloud-init knows it."""
    state: Literal["starting", "prepared", "failed"]
    """starting: it tries again; prepared: the engine was started; failed: it gave up."""
    detail: str = ""
    booted: int | None = None
    """When the boot that wrote it began, in seconds since the epoch by the host's clock. None from
    user data of earlier releases."""

    @classmethod
    def read(cls, text: str) -> Self | None:
        """The report in ``text``; None where it is none, as before the first."""
        try:
            return cls.model_validate_json(text)
        except ValidationError:
            return None

    def is_of(self, instance: str, started: float) -> bool:
        """Whether the present boot of ``instance`` wrote it; ``started`` is when EC2 last started
        the instance, in seconds since the epoch."""
        is_former = self.booted is not None and self.booted + SKEW_SECONDS < started
        return self.instance == instance and not is_former

    @property
    def is_final(self) -> bool:
        """Whether waiting longer is of no use."""
        return self.state == "failed"

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.state, self.detail)))
