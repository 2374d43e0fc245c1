"""Waiting in the host: for whom, and how the end of a wait is told."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pulumi
import pytest
from earshot_pulumi.aws.reports import Awaited
from earshot_pulumi.package import patience
from pulumi.errors import InputPropertiesError

from earshot.user_data.boot import NodeReport, NodeState

NODE = Awaited(1, "/p/1", "i-1", "a" * 64)
VOTERS = ["/p/1", "/p/2", "/p/3"]


def report(state: NodeState) -> str:
    return NodeReport(
        node=1, instance="i-1", user_data="a" * 64, state=state, detail="", at="now"
    ).model_dump_json()


def waited(
    monkeypatch: pytest.MonkeyPatch,
    values: dict[str, str],
    *,
    preview: bool = False,
    whole: bool = False,
    past: Sequence[str] = (),
) -> list[list[str]]:
    """The parameters of every look, in order; ``values`` are what they hold, ``past`` what they
    have held."""
    looks: list[list[str]] = []

    def read(names: Sequence[str]) -> dict[str, str]:
        assert threading.current_thread() is not threading.main_thread()
        looks.append(list(names))
        return {name: values[name] for name in names if name in values}

    def reader(config: Any, region: str) -> Any:
        return read

    def history(config: Any, region: str, names: Sequence[str]) -> list[str]:
        looks.append([f"history of {name}" for name in names])
        return list(past)

    monkeypatch.setattr(patience, "reader", reader)
    monkeypatch.setattr(patience, "history", history)
    monkeypatch.setattr(patience, "starts", lambda *_: lambda _: {})
    monkeypatch.setattr(pulumi.runtime, "is_dry_run", lambda: preview)
    asyncio.run(patience.in_sync([NODE], VOTERS, "eu-central-1", 0.0, whole=whole))
    return looks


def test_a_preview_looks_at_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waited(monkeypatch, {}, preview=True, whole=True) == []


PAST = [[f"history of {name}" for name in VOTERS]]


def test_one_node_of_a_new_cluster_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"/p/1": report(NodeState.STARTING)}
    assert waited(monkeypatch, values, past=[*values.values(), "nothing yet"]) == PAST


def test_once_it_has_served_a_node_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where what is reported now is lost."""
    values = {"/p/1": report(NodeState.IN_SYNC)}
    past = ["nothing yet", report(NodeState.IN_SYNC), "nothing yet"]
    assert waited(monkeypatch, values, past=past) == [*PAST, ["/p/1"]]


def test_the_whole_is_waited_for_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waited(monkeypatch, {"/p/1": report(NodeState.IN_SYNC)}, whole=True) == [["/p/1"]]


def test_a_wait_in_vain_is_told_as_the_host_can(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputPropertiesError) as caught:
        waited(monkeypatch, {"/p/1": report(NodeState.FAILED)}, whole=True)
    assert caught.value.message.startswith("node 1: not in sync; last report:\n  - node 1: failed")


def test_what_nobody_foresaw_is_not_swallowed() -> None:
    def fail() -> None:
        raise KeyError("what")

    with pytest.raises(KeyError, match="what"):
        asyncio.run(patience.aside(fail))


def test_a_thread_does_not_hold_up_the_end() -> None:
    over = threading.Event()

    def dawdle() -> None:
        over.wait(60)

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(patience.aside(dawdle), 0.05)

    before = set(threading.enumerate())
    asyncio.run(give_up())
    (left,) = set(threading.enumerate()) - before
    assert left.daemon
    over.set()
    left.join(10)
    assert not left.is_alive()
