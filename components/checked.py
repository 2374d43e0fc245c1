"""Dynamic providers that accept a change or refuse it, already in its preview."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from pulumi.dynamic import CheckFailure, CheckResult, CreateResult, UpdateResult

from components.owner import OwnedProvider
from earshot.errors import EarshotError

Props = dict[str, Any]


class CheckedProvider(OwnedProvider):
    """Refuses inputs that have problems, before anything is changed."""

    def problems(self, olds: Props, news: Props) -> Iterable[str]:
        """Why ``news`` must not be applied over ``olds``, which are empty at first.

        May complete ``news``. An EarshotError that it raises becomes one more problem.
        """
        raise NotImplementedError

    def check(self, olds: Props, news: Props) -> CheckResult:
        found: list[str] = []
        try:
            for problem in self.problems(olds, news):
                found.append(problem)
        except EarshotError as error:
            found.append(str(error))
        text = "\n".join(f"- {problem}" for problem in found)
        # without a property's name: Pulumi would print the property's value before the text
        return CheckResult(news, [CheckFailure("", f"\n{text}")] if found else [])


class PreflightProvider(CheckedProvider):
    """Keeps the inputs that it accepted, so that nothing is checked twice."""

    def create(self, props: Props) -> CreateResult:
        return CreateResult("good", props)

    def update(self, _id: str, _olds: Props, news: Props) -> UpdateResult:
        return UpdateResult(news)


@contextlib.contextmanager
def on_lines_of_its_own() -> Iterator[None]:
    """A context in which an EarshotError's message begins with a line break.

    The engine puts "Exception calling application:" before it.
    """
    try:
        yield
    except EarshotError as error:
        raise EarshotError(f"\n{error}") from None
