"""SARIF against what the standard (2.1.0) and GitHub's code scanning ask for."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot import __version__
from earshot.errors import EarshotError
from earshot.lint.baseline import BaselineEntry
from earshot.lint.model import FailedFile, FileReport, Mistake, Place
from earshot.lint.sarif import FINGERPRINT, sarif
from earshot.rules.evaluate import RULES
from tests.lint import samples
from tests.lint.samples import ERROR, IGNORED, KNOWN, NOTE, ROOT, WARNING, outcome

# object: (its properties, those that must be there first); section numbers are the standard's
SHAPE: dict[str, tuple[set[str], set[str]]] = {
    "log": ({"version", "runs"}, {"$schema"}),  # 3.13
    "run": ({"tool", "results"}, {"invocations", "columnKind"}),  # 3.14
    "driver": ({"name"}, {"semanticVersion", "rules"}),  # 3.19
    "rule": (  # 3.49; GitHub needs the descriptions and the help
        {"id", "shortDescription", "fullDescription", "help"},
        {"helpUri", "defaultConfiguration", "properties"},
    ),
    "result": (  # 3.27; GitHub needs a location
        {"ruleId", "message", "locations", "level", "partialFingerprints", "suppressions"},
        {"ruleIndex"},
    ),
    "suppression": ({"kind"}, {"justification"}),  # 3.35
    "invocation": (
        {"executionSuccessful"},
        {"exitCode", "exitCodeDescription", "toolExecutionNotifications"},
    ),  # 3.20
    "notification": ({"message"}, {"level", "locations"}),  # 3.58
    "physicalLocation": ({"artifactLocation"}, {"region"}),  # 3.29
    "artifactLocation": ({"uri"}, {"uriBaseId"}),  # 3.4
    "region": ({"startLine"}, {"startColumn"}),  # 3.30
}
LEVELS = {"error", "warning", "note"}
URI = re.compile(r"[A-Za-z0-9._~/:%-]+")


def run_of(*mistakes: Mistake, failed: tuple[FailedFile, ...] = ()) -> Any:
    report = FileReport("compose.yml", "Compose file", mistakes)
    return json.loads(sarif(outcome(report, failed=failed)))["runs"][0]


def result_of(mistake: Mistake) -> Any:
    (result,) = run_of(mistake)["results"]
    return result


def place_of(*place: Any) -> Any:
    return result_of(replace(ERROR, place=Place(*place)))["locations"][0]["physicalLocation"]


def has_shape(name: str, section: Any) -> None:
    required, optional = SHAPE[name]
    assert required <= set(section) <= required | optional, name


def has_location(entry: Any) -> None:
    (location,) = entry["locations"]
    assert set(location) == {"physicalLocation"}
    physical = location["physicalLocation"]
    has_shape("physicalLocation", physical)
    has_shape("artifactLocation", physical["artifactLocation"])
    assert URI.fullmatch(physical["artifactLocation"]["uri"])
    if "region" in physical:
        has_shape("region", physical["region"])
        assert all(type(number) is int and number >= 1 for number in physical["region"].values())


def has_message(entry: Any) -> None:
    assert set(entry["message"]) == {"text"} and entry["message"]["text"]


@pytest.mark.parametrize("name", samples.ALL)
def test_every_object_has_its_properties(name: str) -> None:
    log = json.loads(sarif(samples.ALL[name]()))
    has_shape("log", log)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    has_shape("run", run)
    assert set(run["tool"]) == {"driver"}
    driver = run["tool"]["driver"]
    has_shape("driver", driver)
    for rule in driver["rules"]:
        has_shape("rule", rule)
    for result in run["results"]:
        has_shape("result", result)
        has_message(result)
        has_location(result)
        assert result["level"] in LEVELS
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        for entry in result["suppressions"]:
            has_shape("suppression", entry)
            assert entry["kind"] in {"inSource", "external"}
    for invocation in run["invocations"]:
        has_shape("invocation", invocation)
        for entry in invocation["toolExecutionNotifications"]:
            has_shape("notification", entry)
            has_message(entry)
            has_location(entry)
            assert entry["level"] in LEVELS


def test_the_driver_is_earshot_with_every_rule() -> None:
    driver = run_of()["tool"]["driver"]
    assert (driver["name"], driver["semanticVersion"]) == ("earshot", __version__)
    assert [rule["id"] for rule in driver["rules"]] == [rule.id for rule in RULES]
    rule = RULES[0]
    assert driver["rules"][0] == {
        "id": rule.id,
        "shortDescription": {"text": f"{rule.title}."},
        "fullDescription": {"text": rule.reason},
        "help": {
            "text": f"Fix: {rule.remedy}.\nSource: {rule.source}",
            "markdown": f"{rule.reason}\n\n**Fix**: {rule.remedy}.\n\n[Source]({rule.source})",
        },
        "helpUri": rule.source,
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": ["kafka"]},
    }


def test_a_result_in_full() -> None:
    assert result_of(ERROR) == {
        "ruleId": "KL003",
        "ruleIndex": [rule.id for rule in RULES].index("KL003"),
        "level": "error",
        "message": {
            "text": "container kafka, broker 1, listener EXTERNAL (scope host): "
            "advertises 0.0.0.0, which is no address of anybody\n"
            "expected: a name that the clients can resolve\n"
            "fix: advertise localhost"
        },
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": "compose.yml", "uriBaseId": "%SRCROOT%"},
                    "region": {"startLine": 6, "startColumn": 46},
                }
            }
        ],
        "partialFingerprints": {FINGERPRINT: BaselineEntry.of(ERROR, ROOT).fingerprint},
        "suppressions": [],
    }


IN_SOURCE = {"kind": "inSource", "justification": "a proxy publishes it"}
EXTERNAL = {"kind": "external", "justification": "in the baseline"}


@pytest.mark.parametrize(
    ("mistake", "level", "suppressions"),
    [
        (ERROR, "error", []),
        (WARNING, "warning", []),
        (NOTE, "note", []),
        (IGNORED, "error", [IN_SOURCE]),
        (KNOWN, "error", [EXTERNAL]),
    ],
)
def test_levels_and_suppressions(
    mistake: Mistake, level: str, suppressions: list[dict[str, str]]
) -> None:
    result = result_of(mistake)
    assert (result["level"], result["suppressions"]) == (level, suppressions)


def test_a_region_as_far_as_it_is_known() -> None:
    assert place_of("a.yml", 6, 46)["region"] == {"startLine": 6, "startColumn": 46}
    assert place_of("a.yml", 6)["region"] == {"startLine": 6}
    assert "region" not in place_of("a.yml")
    moved = replace(ERROR, place=Place("compose.yml", 70, 1))
    assert result_of(moved)["partialFingerprints"] == result_of(ERROR)["partialFingerprints"]


@pytest.mark.parametrize(("file", "location"), [
    *((file, {"uri": uri, "uriBaseId": "%SRCROOT%"})
      for file, uri in (
        ("a/b.yml", "a/b.yml"), ("./a/../b.yml", "b.yml"), ("/project/a.yml", "a.yml"),
        ("kafka 1.yml", "kafka%201.yml"), ("ä#?.yml", "%C3%A4%23%3F.yml"),
        ("c:d.yml", "c%3Ad.yml"), ("a\udcff.yml", "a%FF.yml"),
    )),
    ("/etc/kafka 1.yml", {"uri": "file:///etc/kafka%201.yml"}),
])  # fmt: skip
def test_files_are_named_from_the_root(file: str, location: dict[str, str]) -> None:
    assert place_of(file)["artifactLocation"] == location


def test_a_rule_that_is_in_no_catalogue_has_no_index() -> None:
    assert "ruleIndex" not in result_of(replace(ERROR, finding=samples.finding("XX001")))


def test_only_a_run_that_checked_all_files_has_success() -> None:
    failed = FailedFile("broken.yml", EarshotError("broken.yml", observed="is no YAML"))
    (invocation,) = run_of(ERROR, failed=(failed,))["invocations"]
    artifact = {"uri": "broken.yml", "uriBaseId": "%SRCROOT%"}
    assert invocation == {
        "executionSuccessful": False,
        "exitCode": 2,
        "exitCodeDescription": "1 file checked: 1 error, 0 warnings; 1 could not be checked",
        "toolExecutionNotifications": [
            {
                "level": "error",
                "message": {"text": "broken.yml: is no YAML"},
                "locations": [{"physicalLocation": {"artifactLocation": artifact}}],
            }
        ],
    }
    (run,) = json.loads(sarif(samples.unjudged()))["runs"]
    (invocation,) = run["invocations"]
    assert (invocation["executionSuccessful"], invocation["exitCode"]) == (False, 3)
    (notification,) = invocation["toolExecutionNotifications"]
    assert notification["level"] == "error"
    assert notification["message"] == {"text": "not judged: is not a Compose file"}
    (invocation,) = run_of(ERROR)["invocations"]
    assert (invocation["executionSuccessful"], invocation["exitCode"]) == (True, 1)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20))
def test_every_name_is_a_uri(name: str) -> None:
    assert URI.fullmatch(place_of(f"x{name}".replace("\0", ""))["artifactLocation"]["uri"])
