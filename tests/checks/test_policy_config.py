"""The configuration of gate and pack: levels by rule, lookups, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from earshot.checks.policy_config import Level, read_config, stack_config, unknown_ids
from earshot.errors import EarshotError
from earshot.project import Project
from earshot.rules import kl003_kind_of_address, kl011_resolves
from earshot.rules.evaluate import RULES, CheckResult
from earshot.rules.rule import FindingState, Severity
from toolchain.paths import POLICIES

ERROR = kl011_resolves.RULE.finding("a", "b")
MILD = kl011_resolves.RULE.finding("a", "b", severity=Severity.WARNING)
UNKNOWN = kl011_resolves.RULE.finding("a", "b", state=FindingState.UNKNOWN)
OTHER = kl003_kind_of_address.RULE.finding("c", "d")
WARNING = next(rule for rule in RULES if rule.severity is Severity.WARNING).finding("e", "f")
ALL = CheckResult((ERROR, MILD, UNKNOWN, OTHER, WARNING), ())


@pytest.mark.parametrize(("document", "refused", "shown"), [
    ({}, [ERROR, OTHER], [MILD, UNKNOWN, WARNING]),
    ({"kl011": "advisory"}, [OTHER], [ERROR, MILD, UNKNOWN, WARNING]),
    ({"KL011": "disabled"}, [OTHER], [WARNING]),
    ({"kl011": {"enforcementLevel": "disabled"}}, [OTHER], [WARNING]),
    ({WARNING.rule: "mandatory"}, [ERROR, OTHER, WARNING], [MILD, UNKNOWN]),
    ({"all": "advisory"}, [], [ERROR, MILD, UNKNOWN, OTHER, WARNING]),
    ({"all": "disabled", "kl003": "mandatory"}, [OTHER], []),
    ({"all": "remediate"}, [ERROR, OTHER, WARNING], [MILD, UNKNOWN]),
    ({"kl011-stack": "disabled", "advice": "mandatory"}, [ERROR, OTHER], [MILD, UNKNOWN, WARNING]),
])  # fmt: skip
def test_levels_decide_what_stops(
    document: dict[str, Any], refused: list[Any], shown: list[Any]
) -> None:
    config = read_config(document)
    assert config.refused(ALL) == refused
    assert config.shown(ALL) == shown


@pytest.mark.parametrize(
    ("document", "remarks"),
    [
        ({"KL011": "advisory", WARNING.rule: "disabled"}, ["a remark"]),
        (
            {"KL011": "disabled"},
            ["a remark", "1 error left out, because the policy disables KL011"],
        ),
        (
            {"all": "disabled"},
            ["a remark", "2 errors left out, because the policy disables KL003, KL011"],
        ),
    ],
)
def test_errors_of_disabled_rules_are_counted(document: dict[str, Any], remarks: list[str]) -> None:
    assert read_config(document).remarks(CheckResult(ALL.findings, ("a remark",))) == remarks


@pytest.mark.parametrize(("document", "message"), [
    ({"kl999": "advisory"}, "kl999: no such policy; allowed: KL002"),
    ({"kl011": "strict"}, "kl011: found 'strict'; allowed: mandatory, advisory, disabled"),
    ({"kl011": 3}, "kl011: found 3; allowed"),
    ({"names": {"timeout": -1}}, "names: timeout"),
    ({"KL011": "mandatory", "kl011": "disabled"}, "KL011, kl011: are one policy; allowed: one"),
    ({"names": {"retry": 1}, "Names": {"retry": 2}}, "names, Names: are one policy"),
    ({"kl011": {"enforcmentLevel": "advisory"}},
     "kl011: enforcmentLevel: no such property; allowed: enforcementLevel"),
    ({"kl011": {"enforcementLevel": "advisory", "waived": []}}, "kl011: waived: no such prop"),
])  # fmt: skip
def test_what_cannot_be_is_refused(document: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_config(document)


@pytest.mark.parametrize("key", ["all", "All", "ALL"])
def test_a_level_of_all_rules_is_read_in_any_case(key: str) -> None:
    assert set(read_config({key: "mandatory"}).levels.values()) == {Level.MANDATORY}


def with_config(root: Path, text: str) -> Project:
    """A project with the configuration ``text`` of the stack `mine`."""
    folder = root / "policies" / "config"
    folder.mkdir(parents=True)
    (folder / "mine.json").write_text(text)
    return Project(root)


def test_a_key_that_a_file_has_twice_is_refused(tmp_path: Path) -> None:
    """JSON takes the last one: a level that is written above it would count for nothing."""
    project = with_config(tmp_path, '{"KL011": "mandatory", "KL011": "disabled"}')
    with pytest.raises(EarshotError, match="it has the key KL011 more than once"):
        stack_config(project, "mine")


def test_every_problem_is_in_one_message() -> None:
    with pytest.raises(ValueError, match="kl999") as caught:
        read_config({"kl999": "advisory", "kl002": "no", "names": {"retry": -1}})
    assert "kl002: found 'no'" in str(caught.value) and "names: retry" in str(caught.value)


def test_the_shipped_configurations_are_read() -> None:
    project = Project(POLICIES.parent)
    for path in (POLICIES / "config").glob("*.json"):
        config = stack_config(project, path.stem)
        assert config.names.timeout == 5 and Level.DISABLED not in config.levels.values()


def test_a_stacks_file_is_named(tmp_path: Path) -> None:
    project = with_config(tmp_path, '{"KL999": "advisory"}')
    with pytest.raises(EarshotError, match=r"policies/config/mine.json: cannot be read .*KL999"):
        stack_config(project, "mine-too")
    assert stack_config(project, "other").levels == {}


def test_every_policy_of_the_pack_is_known() -> None:
    from earshot_policies.pack import policies

    assert unknown_ids([*(item.name for item in policies()), "all"]) == []
