from __future__ import annotations

from dataclasses import replace

import pytest

from earshot.listeners.model import Scope
from earshot.names.evidence import EvidenceKind
from earshot.names.policy import ResolverPolicy
from earshot.rules import Facts
from earshot.rules.container_names import declarations, evidence
from tests.doubles.resolvers import TableAsked
from tests.rules.container_examples import container

SERVER = ("192.0.2.53",)
BEYOND = {
    "EARSHOT_SCOPES": "INTERNAL:internal,HOST:host",
    "KAFKA_ADVERTISED_LISTENERS": "INTERNAL://host-a.example.com:19092,HOST://localhost:9092,"
    "CONTROLLER://kafka1:9093",
}


def kinds(facts: Facts, asked: TableAsked, policy: ResolverPolicy) -> dict[str, EvidenceKind]:
    return {key[2]: item.kind for key, item in evidence(facts, policy, asked).items()}


def world(*names: str) -> TableAsked:
    """DNS with ``names``; this machine knows localhost."""
    tables = {
        "system": {"localhost": ("127.0.0.1",)},
        SERVER[0]: dict.fromkeys(names, ("192.0.2.1",)),
    }
    return TableAsked(tables, SERVER)


def test_the_network_s_own_names_are_taken_on_its_word_and_nobody_is_asked() -> None:
    asked = world()
    found = kinds(container(), asked, ResolverPolicy())
    assert found == {"kafka1": EvidenceKind.DECLARED, "localhost": EvidenceKind.LIVE}


@pytest.mark.parametrize(
    ("names", "kind"),
    [((), EvidenceKind.NONE), (("host-a.example.com",), EvidenceKind.LIVE)],
)
def test_full_names_beyond_the_network_are_asked_as_docker_would(
    names: tuple[str, ...], kind: EvidenceKind
) -> None:
    facts = container({**BEYOND}, ports=[{"internal": 19092, "external": 19092}])
    assert kinds(facts, world(*names), ResolverPolicy())["host-a.example.com"] is kind


def test_a_strange_name_of_one_label_is_nobodys() -> None:
    envs = {key: text.replace("host-a.example.com", "kafka9") for key, text in BEYOND.items()}
    found = evidence(container({**envs}), ResolverPolicy(), world("kafka9"))
    assert found["INTERNAL", Scope.INTERNAL, "kafka9"].kind is EvidenceKind.NONE


def test_who_is_named_for_a_scope_is_asked() -> None:
    facts = container({**BEYOND})
    policy = ResolverPolicy(resolvers={Scope.INTERNAL: ("192.0.2.99",)})
    tables = {"192.0.2.99": {"kafka1": ("192.0.2.1",)}, SERVER[0]: {"host-a.example.com": ("::1",)}}
    asked = TableAsked({**tables, "system": {}}, SERVER)
    assert kinds(facts, asked, policy)["host-a.example.com"] is EvidenceKind.NONE


@pytest.mark.parametrize(
    ("hostname", "voters", "known"),
    [
        ("kafka1", "1@kafka1:9093", True),
        ("", "1@kafka1:9093", False),
        ("kafka1", "1@kafka1:9093,2@kafka2:9093", False),
    ],
)
def test_one_voter_alone_knows_its_own_hostname_on_any_network(
    hostname: str, voters: str, known: bool
) -> None:
    facts = container(
        {"KAFKA_CONTROLLER_QUORUM_VOTERS": voters}, networks=[{"name": "bridge"}], hostname=hostname
    )
    found = {key[:2] for key in declarations(facts)}
    assert found == ({("CONTROLLER", Scope.CONTROLLER)} if known else set())


def test_without_a_plan_there_is_nothing_to_ask() -> None:
    assert evidence(replace(container(), plan=None), ResolverPolicy(), world()) == {}
