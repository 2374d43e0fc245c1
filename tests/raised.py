"""The error of a call, for tests of its message."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import pytest

P = ParamSpec("P")
E = TypeVar("E", bound=BaseException)


def raised(kind: type[E], act: Callable[P, object], *args: P.args, **options: P.kwargs) -> E:
    """The error of ``kind`` that ``act`` raises."""
    with pytest.raises(kind) as caught:
        act(*args, **options)
    return caught.value
