"""When a broker serves clients, and what happens to one that has lost its users."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from earshot_pulumi.local import readiness, users
from earshot_pulumi.local.quorum import node_directory
from earshot_pulumi.local.readiness import LocalDriver

from earshot.certificates.store import Store
from earshot.listeners.model import ClusterPlan, SecurityPlan
from earshot.listeners.render import server_properties
from earshot.listeners.terms import Mechanism
from earshot.validation.client import Failure
from tests.components.local.test_quorum import PORTS, planned

REFUSED = Failure("authentication", "invalid credentials")


def plan_of(protocol: str, root: Path | None = None) -> ClusterPlan:
    """INTERNAL in TLS, EXTERNAL with ``protocol``; secured where there is a ``root``."""
    listeners = [
        {"name": "INTERNAL", "port": PORTS["INTERNAL"], "scopes": "internal", "protocol": "SSL"},
        {"name": "EXTERNAL", "port": PORTS["EXTERNAL"], "scopes": "host", "protocol": protocol},
    ]
    plan = planned(listeners=listeners)
    if root is None:
        return plan
    security = SecurityPlan(folder=str(root / "security"), mechanism=Mechanism.SCRAM_SHA_512)
    return plan.model_copy(update={"security": security})


class Brokers:
    """Answers of brokers by port, each in turn, the last one for good."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers: dict[str, list[Failure | None]] = {}
        self.asked: list[Mapping[str, Any]] = []
        monkeypatch.setattr(readiness, "login_failure", self._answer)
        monkeypatch.setattr(readiness, "running", lambda _: object())
        monkeypatch.setattr(readiness, "_listens", lambda *_: True)

    def _answer(self, settings: Mapping[str, Any]) -> Failure | None:
        self.asked.append(settings)
        left = self.answers[settings["bootstrap.servers"]]
        return left.pop(0) if len(left) > 1 else left[0]


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    return Brokers(monkeypatch)


@pytest.fixture
def given_again(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, str]]:
    """The stores whose users got their passwords again, and through which broker."""
    found: list[tuple[Path, str]] = []
    monkeypatch.setattr(
        users,
        "reset_passwords",
        lambda store, bootstrap, _: found.append((store.folder, bootstrap)),
    )
    return found


def started(root: Path, plan: ClusterPlan) -> dict[int, str]:
    """Where each node's EXTERNAL is reached here, once all were started as ``plan`` says."""
    found = {}
    for node in plan.nodes:
        directory = node_directory(root, node.id)
        directory.mkdir(parents=True)
        (directory / "server.properties").write_text(server_properties(plan, node))
        listener = node.listener("EXTERNAL")
        assert listener is not None
        found[node.id] = f"127.0.0.1:{listener.bind_port}"
    return found


def secured(root: Path) -> dict[int, str]:
    Store(root / "security").folder.mkdir(parents=True)
    (root / "security" / "validator.properties").write_text("sasl.mechanism=SCRAM-SHA-512\n")
    return started(root, plan_of("SASL_SSL", root))


def listeners(root: Path) -> LocalDriver:
    return LocalDriver(root, 1, "id", {}, print)


def test_a_listener_that_serves_is_not_asked_again(tmp_path: Path, brokers: Brokers) -> None:
    places = secured(tmp_path)
    brokers.answers[places[1]] = [Failure("refused", "Connection refused"), None]
    found = listeners(tmp_path)
    assert found.unserved() == f"EXTERNAL at {places[1]}: not listening yet"
    assert (found.unserved(), found.unserved()) == ("", "")
    (settings, _) = brokers.asked
    assert settings["security.protocol"] == "SASL_SSL"
    assert settings["sasl.mechanism"] == "SCRAM-SHA-512", "it logs in as the validator"


def test_users_that_one_broker_has_lost_get_their_passwords_again_once(
    tmp_path: Path, brokers: Brokers, given_again: list[Any]
) -> None:
    """`test_driver.py` has the other cases, which are the same for all kinds of nodes."""
    places = secured(tmp_path)
    brokers.answers |= {key: [None] for key in places.values()}
    brokers.answers[places[1]] = [REFUSED, None]
    found = listeners(tmp_path)
    assert "refuses a user that other brokers accept" in found.unserved()
    assert found.unserved() == ""
    assert given_again == [(tmp_path / "security", f"localhost:{PORTS['INTERNAL']}")]


def test_a_listener_of_a_secured_broker_whose_certificate_fails_is_not_ready(
    tmp_path: Path, brokers: Brokers
) -> None:
    places = secured(tmp_path)
    brokers.answers[places[1]] = [Failure("tls", "certificate verify failed")]
    assert listeners(tmp_path).unserved().endswith("certificate verify failed")


@pytest.mark.parametrize(
    ("error", "problem"),
    [("refused", True), ("timeout", True), ("authentication", False), ("tls", False)],
)
def test_without_credentials_of_ours_any_answer_counts(
    tmp_path: Path, brokers: Brokers, error: str, problem: bool
) -> None:
    """Whether the user's own are right is what the validation tells."""
    places = started(tmp_path, plan_of("SASL_PLAINTEXT"))
    brokers.answers[places[1]] = [Failure(error, "no")]
    assert bool(listeners(tmp_path).unserved()) is problem


def test_a_node_whose_settings_are_not_known_has_no_listener_to_ask(tmp_path: Path) -> None:
    assert listeners(tmp_path).unserved() == ""
