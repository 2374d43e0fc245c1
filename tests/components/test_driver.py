"""What is the same for nodes on every kind of host; the nodes here are doubles."""

from collections.abc import Iterator, Sequence

import pytest
from earshot_pulumi import driver
from earshot_pulumi.driver import (
    BEHIND,
    CatchingUp,
    DisturbedNode,
    ListeningNode,
    NodeDriver,
    change_or_restore,
    wait_for,
)

from earshot.errors import EarshotError
from earshot.validation.client import Failure

REMEDY = "mend it"


class NodeDouble(NodeDriver):
    """Lacks one thing after the other, the last one for good; ends once it has been asked so often
    whether it lives."""

    def __init__(self, name: str, *lacking: str, ends_after: int = 1000) -> None:
        self.name, self._lacking, self._lives = name, list(lacking), ends_after
        self.times = 0

    def check_alive(self) -> None:
        self._lives -= 1
        if self._lives < 0:
            raise EarshotError(self.name, observed="ended")

    def lacks(self) -> str:
        self.times += 1
        return self._lacking.pop(0) if len(self._lacking) > 1 else self._lacking[0]

    def last_lines(self, count: int) -> str:
        return f"  {count} lines of {self.name}" if self.name == "a" else ""


def wait(*nodes: NodeDouble, deadline: float = 60) -> list[str]:
    """What is shown meanwhile."""
    shown: list[str] = []
    wait_for(nodes, deadline, shown.append, REMEDY, poll=0)
    return shown


def test_a_node_that_is_ready_is_not_asked_again() -> None:
    ready, late = NodeDouble("a", ""), NodeDouble("b", "no answer", "no answer", "")
    assert wait(ready, late) == []
    assert (ready.times, late.times) == (1, 3)


def test_while_one_node_is_not_ready_the_others_are_not_asked_again() -> None:
    late, other = NodeDouble("a", *4 * ["no answer"], ""), NodeDouble("b", "no answer", "")
    wait(late, other)
    assert (late.times, other.times) == (5, 2)


def test_a_node_that_ends_ends_the_wait_for_another_one() -> None:
    with pytest.raises(EarshotError, match="a: ended"):
        wait(NodeDouble("a", "", ends_after=3), NodeDouble("b", "no answer"))


def test_three_nodes_are_shown_and_the_others_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "SAY_SECONDS", -1.0)
    shown = wait(*(NodeDouble(name, "no answer", "") for name in "abcde"))
    assert [text.rpartition(",")[0] for text in shown] == [
        "waiting for a (no answer); b (no answer); c (no answer) and 2 more"
    ]


def test_late_nodes_are_all_named_and_three_explained() -> None:
    with pytest.raises(EarshotError) as caught:
        wait(*(NodeDouble(name, "no answer") for name in "abcd"), deadline=-1)
    assert str(caught.value) == (
        "a, b, c, d: not ready after -1 s\n"
        "a: no answer; the last lines of its log:\n  5 lines of a\n"
        "b: no answer\nc: no answer\n"
        f"  fix: {REMEDY}"
    )


@pytest.mark.parametrize(("other", "kind"), [(BEHIND, CatchingUp), ("no answer", EarshotError)])
def test_nodes_that_only_lack_time_are_told_as_such(other: str, kind: type[EarshotError]) -> None:
    with pytest.raises(EarshotError) as caught:
        wait(NodeDouble("b", BEHIND), NodeDouble("c", other), deadline=-1)
    assert type(caught.value) is kind


@pytest.mark.parametrize(
    ("error", "left", "text"),
    [
        (EarshotError("a", observed="ended", remedy=REMEDY), "it runs", "ended\n  it runs"),
        (EarshotError("a", observed="ended", remedy=REMEDY), None, "ended"),
        (DisturbedNode("a", observed="paused", remedy=REMEDY), "it runs", "paused"),
    ],
)
def test_a_failed_change_is_restored_unless_disturbed(
    error: EarshotError, left: str | None, text: str
) -> None:
    def change() -> None:
        raise error

    with pytest.raises(EarshotError) as caught:
        change_or_restore(change, lambda: left)
    assert (caught.value.observed, caught.value.remedy) == (text, REMEDY)
    assert change_or_restore(lambda: 1, lambda: "never asked") == 1


class ListeningDouble(ListeningNode):
    """Its one listener meets one failure after the other, the last one for good."""

    def __init__(self, own: list[Failure | None], others: Sequence[Failure | None] = ()) -> None:
        self.reported: list[str] = []
        super().__init__("node 1", ["HOST"], self.reported.append)
        self._own, self._others, self.times, self.given = own, others, 0, 0

    def check_alive(self) -> None:
        raise NotImplementedError

    def lacks(self) -> str:
        return self.unserved()

    def last_lines(self, count: int) -> str:
        raise NotImplementedError

    def login_failure(self, listener: str) -> Failure | None:
        self.times += 1
        return self._own.pop(0) if len(self._own) > 1 else self._own[0]

    def other_logins(self, listener: str) -> Iterator[Failure | None]:
        return iter(self._others)

    def reset_passwords(self) -> None:
        self.given += 1


UNKNOWN = Failure("authentication", "invalid credentials")
SILENT = Failure("timeout", "no answer")
NOT_ENABLED = Failure("mechanism", "not enabled")
SILENT_OTHER = "HOST: refuses a user, and another broker gives no answer (invalid credentials)"


def test_a_listener_that_serves_is_not_asked_again() -> None:
    node = ListeningDouble([Failure("refused", "Connection refused"), None])
    assert [node.lacks() for _ in range(3)] == ["HOST: not listening yet", "", ""]
    assert node.times == 2


@pytest.mark.parametrize(
    ("own", "others", "reason"),
    [
        (NOT_ENABLED, [None], ""),
        (UNKNOWN, [], ""),
        (UNKNOWN, [UNKNOWN, NOT_ENABLED], ""),
        (UNKNOWN, [UNKNOWN, SILENT], SILENT_OTHER),
        (UNKNOWN, [SILENT, UNKNOWN], SILENT_OTHER),
        (Failure("tls", f"{'x ' * 60}"), [None], f"HOST: {'x ' * 38}x..."),
    ],
)
def test_what_a_refused_login_means_is_told_by_the_others(
    own: Failure, others: list[Failure | None], reason: str
) -> None:
    node = ListeningDouble([own], others)
    assert (node.lacks(), node.given) == (reason, 0)


def test_users_that_only_this_broker_has_lost_get_their_passwords_again_once() -> None:
    node = ListeningDouble([UNKNOWN, UNKNOWN, None], [SILENT, None])
    text = "HOST: refuses a user that other brokers accept (invalid credentials)"
    assert [node.lacks() for _ in range(3)] == [text, text, ""]
    assert node.given == 1
    lost = "node 1 has lost its users: earshot sets their passwords again"
    assert node.reported == [lost]
