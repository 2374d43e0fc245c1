"""A double of the engine with a policy pack beside it, whose answer a test decides.

It shares no code with the gate: what it calls a gate's digest it computes from what the engine was
sent, in its own way.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from google.protobuf import json_format
from pulumi.runtime import mocks

SIGNATURE = "4dabf18193072939515e22adb298388d"
"""A key that a secret has on its way to the engine, beside its `value`."""

Answer = Callable[[dict[str, Any]], dict[str, Any]]
"""The outputs of the approval for the inputs that the program has given it."""


def silent(asked: dict[str, Any]) -> dict[str, Any]:
    """No pack, or one that does not answer for these inputs: what was asked comes back."""
    return asked


def approving(asked: dict[str, Any]) -> dict[str, Any]:
    """A pack that has checked what it is asked about."""
    return {**asked, "approved_digest": asked["digest"]}


def saying(word: str) -> Answer:
    """A pack that answers for the digest ``word``, whatever it is asked about."""
    return lambda asked: {**asked, "approved_digest": word}


class Engine(mocks.MockMonitor):
    """Takes down every registration, in order; providers it has none."""

    def __init__(self, answer: Answer, preview: bool = False) -> None:
        outputs = _Outputs(answer)
        super().__init__(outputs)
        self.seen: list[Any] = []
        mocks.set_mocks(outputs, "program", "s", preview, monitor=self)

    def RegisterResource(self, request: Any) -> Any:
        self.seen.append(request)
        return super().RegisterResource(request)  # type: ignore[no-untyped-call]

    def inputs(self, type: str) -> dict[str, Any]:
        """Of the only resource of this type, secrets opened, unknowns as the engine's sentinel."""
        (request,) = (it for it in self.seen if it.type == type)
        found: dict[str, Any] = opened(json_format.MessageToDict(request.object))
        return found

    @property
    def types(self) -> list[str]:
        """Of what the program has registered, in that order; Pulumi itself registers the stack."""
        return [it.type for it in self.seen if it.type != "pulumi:pulumi:Stack"]


class _Outputs(mocks.Mocks):
    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        outputs = dict(args.inputs)
        if args.typ == "pulumi:providers:pulumi-python":
            outputs = self._answer(outputs)
        return f"id of {args.name}", outputs

    def call(self, args: mocks.MockCallArgs) -> Any:
        raise AssertionError(f"nothing is looked up: {args.token}")


def opened(value: Any) -> Any:
    """``value`` as the engine was sent it, numbers as floats, with every secret replaced by what it
    holds."""
    if isinstance(value, dict):
        if SIGNATURE in value:
            return opened(value["value"])
        return {key: opened(item) for key, item in value.items()}
    return [opened(item) for item in value] if isinstance(value, list) else value


def reported(value: Any) -> str:
    """What a gate with these inputs is known by: 16 hexadecimal digits."""
    plain = json.dumps(_without_nulls(value), sort_keys=True).replace(".0,", ",")
    plain = plain.replace(".0}", "}").replace(".0]", "]").replace(", ", ",").replace(": ", ":")
    return hashlib.sha256(plain.encode()).hexdigest()[:16]


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
