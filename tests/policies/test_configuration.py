"""The pack's configuration as the engine sends it, and the files that findings go to."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from earshot_policies.configuration import VARIABLE, FindingsFiles
from earshot_policies.evaluations import CONTAINER_TYPE
from earshot_policies.pack import policies
from pulumi.runtime import proto
from pulumi_policy import EnforcementLevel, policy

from earshot.errors import EarshotError
from tests.policies.calls import Pack
from tests.policies.test_containers import inputs, second

LOOPBACK = {"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://0.0.0.0:9092"}
ORIGINAL = policy._PolicyAnalyzerServicer


@pytest.fixture(autouse=True)
def sdk_as_it_was() -> Iterator[None]:
    yield
    policy._PolicyAnalyzerServicer = ORIGINAL  # type: ignore[misc]


class Refused(Exception):
    """The call was aborted."""


class Context:
    def abort(self, code: grpc.StatusCode, text: str) -> None:
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        raise Refused(text)


def configured(**levels: str) -> Any:
    """The pack's servicer after the engine's call, with the defaults that the engine fills in."""
    made = policies()
    servicer = policy._PolicyAnalyzerServicer("earshot", "1", made, EnforcementLevel.ADVISORY)
    names = {"advisory": proto.ADVISORY, "mandatory": proto.MANDATORY, "disabled": proto.DISABLED}
    request = proto.ConfigureAnalyzerRequest()
    for item in made:
        assert item.enforcement_level is not None
        request.policyConfig[item.name].enforcementLevel = names[item.enforcement_level.value]
    for key, level in levels.items():
        request.policyConfig[key].enforcementLevel = names[level]
    servicer.Configure(request, Context())  # type: ignore[no-untyped-call]
    return servicer


def level(servicer: Any, name: str) -> str:
    (found,) = (item for item in policies() if item.name == name)
    return str(servicer._get_enforcement_level(found).value)


@pytest.mark.parametrize("key", ["kl011", "KL011"])
def test_an_id_counts_in_lower_case_and_as_it_is_printed(key: str) -> None:
    servicer = configured(**{key: "disabled", "KL002-stack": "advisory"})
    assert level(servicer, "kl011") == "disabled"
    assert level(servicer, "kl002-stack") == "advisory"
    assert level(servicer, "kl003") == "mandatory"


def test_an_id_that_does_not_exist_is_refused_with_the_allowed_ones() -> None:
    with pytest.raises(Refused, match=r"KL999, kl1: no such policy; allowed: KL002, "):
        configured(KL999="advisory", kl1="disabled", kl011="advisory")


def test_all_and_every_policy_are_known() -> None:
    configured(all="advisory", **{item.name: "advisory" for item in policies()})


def test_findings_are_in_every_file_at_their_policys_level(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"sarif": tmp_path / "a.sarif", "junit": tmp_path / "b.xml"}
    annotations = tmp_path / "notes"
    targets = [*map(str, files.values()), f"github={annotations}"]
    monkeypatch.setenv(VARIABLE, ":".join(targets))
    pack = Pack()
    pack.configure(kl003="advisory")
    assert json.loads(files["sarif"].read_text())["runs"][0]["results"] == []
    pack.analyze(CONTAINER_TYPE, inputs(LOOPBACK), name="one")
    pack.analyze(CONTAINER_TYPE, second(envs=inputs(LOOPBACK)["envs"]), name="two")
    results = json.loads(files["sarif"].read_text())["runs"][0]["results"]
    assert {item["ruleId"] for item in results} >= {"KL002"}
    texts = [item["message"]["text"] for item in results]
    assert any("::one" in text for text in texts) and any("::two" in text for text in texts)
    prints = [item["partialFingerprints"]["earshot/v1"] for item in results]
    assert len(set(prints)) == len(prints)
    by_rule = {item["ruleId"]: item["level"] for item in results}
    assert by_rule["KL002"] == "error" and by_rule.get("KL003", "warning") == "warning"
    assert ET.fromstring(files["junit"].read_text()).findall(".//failure")
    assert annotations.read_text().startswith("::")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("findings.sarif", "is not an absolute path"),
        ("/tmp/findings.doc", "its suffix names no format"),
        ("github=notes", "is not an absolute path"),
        ("/dev/null/findings.sarif", "cannot be written"),
    ],
)
def test_a_file_that_cannot_be_is_refused(text: str, reason: str) -> None:
    with pytest.raises(EarshotError, match=reason):
        FindingsFiles.of_environment({VARIABLE: text})


def test_a_refused_file_ends_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "findings.sarif")
    with pytest.raises(Refused, match="EARSHOT_FINDINGS: findings"):
        configured()


def test_no_password_is_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted, file = "Pl4ntedS3cret", tmp_path / "a.json"
    monkeypatch.setenv(VARIABLE, str(file))
    pack = Pack()
    pack.configure()
    texts = {**LOOPBACK, "KAFKA_SSL_KEYSTORE_PASSWORD": planted}
    assert pack.analyze(CONTAINER_TYPE, inputs(texts))
    assert planted not in file.read_text() and "KL002" in file.read_text()


def test_names_are_looked_up_as_configured_although_all_is_disabled() -> None:
    assert level(configured(names="disabled", kl011="mandatory"), "names") == "mandatory"
    assert level(configured(names="advisory"), "names") == "advisory"


def test_two_spellings_of_an_id_are_refused() -> None:
    text = "policy pack: KL011, Kl011: are one policy; allowed: one of them"
    with pytest.raises(Refused, match=text):
        configured(KL011="mandatory", Kl011="disabled")
    assert level(configured(KL011="disabled"), "kl011") == "disabled"
