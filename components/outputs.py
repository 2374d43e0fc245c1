"""Values that are known now, or once a resource is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulumi


def applied(value: Any, act: Callable[[Any], Any]) -> Any:
    """``act`` on what ``value`` is, or on what an Output will be.

    Not by `Output.from_input`, which takes data apart to look for more outputs in it.
    """
    return value.apply(act) if isinstance(value, pulumi.Output) else act(value)
