"""Whether connected clients block the removal of a listener."""

from collections import Counter

import pytest
from earshot_pulumi.listener_removal import blocking, problems

USED = {"OLD": Counter({"10.0.0.7": 2, "127.0.0.1 (pid 5, java)": 1})}
CLIENTS = (
    "listener OLD would be removed, and has 3 connections of clients: 2 from 10.0.0.7, 1 from "
    "127.0.0.1 (pid 5, java). "
)


@pytest.mark.parametrize(
    ("remove", "refusal", "logged"),
    [
        ("unused", f"{CLIENTS}Let them use another listener", ""),
        ("2999-12-31", f"{CLIENTS}Let them use another listener", ""),
        ("anyway", "", f"{CLIENTS}`remove: anyway` allows that: these clients lose their"),
        ("2020-01-01", "", f"{CLIENTS}`remove: 2020-01-01` allows that: these clients lose their"),
    ],
)
def test_clients_block_a_removal_or_are_named(remove: str, refusal: str, logged: str) -> None:
    lines: list[str] = []
    texts = [*blocking(remove, [*problems(USED), "unknown at node 2"], lines.append)]
    expected = [refusal, "unknown at node 2"] if refusal else []
    assert [text[: len(begin)] for text, begin in zip(texts, expected, strict=True)] == expected
    assert "".join(lines)[: len(logged)] == logged and len(lines) == bool(logged)
