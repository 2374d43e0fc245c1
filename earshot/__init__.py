"""Listeners of Kafka brokers: computed, checked and proved.

The names in `__all__` are the public API, which `earshot.api` describes.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from earshot.api import Contract, EarshotError, Finding, evaluate, examine, plan, render

__all__ = ["Contract", "EarshotError", "Finding", "evaluate", "examine", "plan", "render"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from earshot import api  # on first use, because the import is slow

    return getattr(api, name)
