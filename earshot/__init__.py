"""Listeners of Kafka brokers: computed, checked and proved.

What is named in `__all__` is for other programs, and described in `earshot.api`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from earshot.api import Contract, EarshotError, Finding, evaluate, examine, plan, render

__all__ = ["Contract", "EarshotError", "Finding", "evaluate", "examine", "plan", "render"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from earshot import api  # not before something of it is asked for: it is slow to import

    return getattr(api, name)
