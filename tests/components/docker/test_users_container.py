"""Users that are made in a container: what it gets, and what is told where it fails."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from earshot_pulumi.docker import users

from earshot.errors import EarshotError
from earshot.listeners.terms import Mechanism
from earshot.users.order import UsersOrder
from earshot.validation.deadline import Deadline
from tests.raised import raised

SECRET = "not to be shown"
ORDER = UsersOrder(
    bootstrap="kafka-1:19092", access={"ssl.key.pem": SECRET}, mechanisms=(Mechanism.SCRAM_SHA_512,)
)
Given = tuple[list[str], Mapping[str, bytes], Sequence[str]]


def carried_out(
    monkeypatch: pytest.MonkeyPatch, code: int, said: list[str], fails: str = ""
) -> Given:
    """What the container was given, which ends with ``code`` after it has ``said`` something."""
    given: list[Given] = []

    @contextmanager
    def ended(
        session: object,
        cluster: str,
        command: list[str],
        files: Mapping[str, bytes],
        end: Deadline,
        say: object,
        program: Sequence[str],
    ) -> Iterator[tuple[Any, list[str]]]:
        assert (session, cluster) == ("session", "dev")
        given.append((command, files, program))
        if fails:
            raise EarshotError("the container", observed=fails)
        yield SimpleNamespace(attrs={"State": {"ExitCode": code}}), said

    monkeypatch.setattr(users, "ended", ended)
    users.carry_out_on(cast(Any, "session"), "dev", ORDER, Deadline(1), print)
    return given[0]


def test_the_order_is_a_file_and_no_part_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    command, files, program = carried_out(monkeypatch, 0, [])
    assert command == ["/opt/earshot/run/order.json"]
    assert program == ("python", "-m", "earshot.users")
    assert {name: UsersOrder.model_validate_json(text) for name, text in files.items()} == {
        "order.json": ORDER
    }


def test_a_program_that_fails_is_told_by_its_last_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    error = raised(EarshotError, carried_out, monkeypatch, 2, ["kafka-1:19092: answers nobody"])
    assert str(error) == (
        "users and permissions: are not settled (status 2):\n    kafka-1:19092: answers nobody"
    )


def test_a_container_that_does_not_end_is_told_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error = raised(EarshotError, carried_out, monkeypatch, 0, [], fails="did not end within 180 s")
    assert str(error) == (
        "users and permissions: are not settled (the container: did not end within 180 s)\n"
        "  fix: see that the engine runs, and the brokers' logs, then run the same command again"
    )
