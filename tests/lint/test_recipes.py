"""The commands of docs/lint-ci.md and the baseline of docs/lint.md, run as written there."""

import json
import os
import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import earshot

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "lint-ci.md").read_text()
LINT_PAGE = (ROOT / "docs" / "lint.md").read_text()
GOOD = """\
services:
  kafka:
    image: apache/kafka:4.1.1
    environment:
      KAFKA_NODE_ID: 1
      KAFKA_PROCESS_ROLES: broker,controller
      KAFKA_CONTROLLER_LISTENER_NAMES: CONTROLLER
      KAFKA_CONTROLLER_QUORUM_VOTERS: 1@localhost:9093
      KAFKA_LISTENERS: PLAINTEXT://:9092,CONTROLLER://:9093
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://kafka:9092
  ui: {image: ui, environment: {KAFKA_BROKERS: "kafka:9092"}}
"""
BAD = GOOD.replace("PLAINTEXT://kafka:9092", "PLAINTEXT://localhost:9092")


def steps() -> list[dict[str, Any]]:
    """The steps of all workflows on the page, in its order."""
    runs: list[dict[str, Any]] = []
    for block in re.findall(r"```yaml\n(.*?)```", PAGE.partition("## In GitHub")[2], re.DOTALL):
        document = yaml.safe_load(textwrap.dedent(block))
        runs += document if isinstance(document, list) else document.get("steps", [])
    return [step for step in runs if "run" in step]


def workflow() -> dict[str, list[dict[str, Any]]]:
    """By job, the steps of the whole workflow on the page that run a command."""
    text = PAGE.partition("### A whole workflow")[2].partition("```yaml\n")[2].partition("```")[0]
    jobs = yaml.safe_load(text)["jobs"]
    return {name: [step for step in job["steps"] if "run" in step] for name, job in jobs.items()}


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """As a runner of GitHub does it: bash, which stops at the first failure."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "GITHUB_STEP_SUMMARY": str(folder / "summary.md")}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("text", "code"), [(GOOD, 0), (BAD, 1)])
def test_the_steps_for_github(text: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "compose.yml").write_text(text)
    done = [(item, shell(item["run"], tmp_path)) for item in steps()]
    # what runs always is for the reader, and decides nothing
    assert [it.returncode for item, it in done] == [
        0 if item.get("if") == "always()" else code for item, _ in done
    ]
    annotated, _, written = (it.stdout for _, it in done)
    assert annotated.count("::error file=compose.yml,line=10,") == code
    assert "1 file checked" in annotated and "1 file checked" in written
    assert ("KL015" in (tmp_path / "summary.md").read_text()) == bool(code)
    report = json.loads((tmp_path / "earshot.sarif").read_text())
    assert len(report["runs"][0]["results"]) == code


@pytest.mark.parametrize(("text", "code"), [(GOOD, 0), (BAD, 1)])
def test_the_job_for_gitlab(text: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "compose.yml").write_text(text)
    block = PAGE.partition("## In GitLab")[2].partition("```yaml\n")[2].partition("```")[0]
    job = yaml.safe_load(block)["listeners"]
    assert shell(job["script"][-1], tmp_path).returncode == code
    report = (tmp_path / job["artifacts"]["reports"]["junit"]).read_text()
    assert ("KL015" in report) == bool(code)


@pytest.mark.parametrize(("text", "code"), [(GOOD, 0), (BAD, 1)])
def test_the_lint_job_of_the_workflow(text: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "compose.yml").write_text(text)
    lint = {step["name"]: step["run"] for step in workflow()["lint"]}
    assert shell(lint["Lint"], tmp_path).returncode == code
    assert shell(lint["Summary"], tmp_path).returncode == 0
    assert ("KL015" in (tmp_path / "summary.md").read_text()) == bool(code)


@pytest.mark.parametrize(("domain", "code"), [("example.com", 0), ("example.org", 1)])
def test_the_check_of_an_organisation(domain: str, code: int, tmp_path: Path) -> None:
    section = PAGE.partition("## A check of your own")[2]
    (tmp_path / "check_listeners.py").write_text(
        section.partition("```python\n")[2].partition("```")[0]
    )
    cluster = {
        "placement": "docker",
        "hosts": [{"external": f"kafka.{domain}"}],
        "listeners": [
            {"name": "INTERNAL", "port": 19092, "scopes": ["internal"]},
            {"name": "EXTERNAL", "port": 9092, "scopes": ["external"]},
        ],
    }
    contract = earshot.Contract.of(earshot.plan(cluster), "prod", "docker")
    (tmp_path / "contract.json").write_text(contract.to_json())
    command = section.partition("```sh\n")[2].partition("```")[0].partition("| ")[2]
    check = shell(f"cat contract.json | {command}", tmp_path)
    assert check.returncode == code
    assert check.stderr.count("is not below example.com") == code * len(contract.brokers)


def test_the_page_says_which_steps_of_the_workflow_no_test_runs() -> None:
    names = [step["name"] for job in workflow().values() for step in job]
    untried = {"Install earshot", "Install the policy pack", "Install the program"}
    assert set(names) - untried == {"Lint", "Summary", "Preview", "Analyze"}
    assert "Tests run `Lint`, `Summary`, `Preview` and `Analyze` as they are written here" in PAGE


def test_the_workflow_installs_an_extra_with_the_policy_sdk() -> None:
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (install,) = [step["run"] for step in workflow()["pack"] if "policy pack" in step["name"]]
    (extra,) = re.findall(r"earshot\[(\w+)\] @ git", install)
    packages = metadata["optional-dependencies"][extra]
    assert any(package.startswith("pulumi-policy==") for package in packages)


def test_the_baseline(tmp_path: Path) -> None:
    (tmp_path / "compose.yml").write_text(BAD)
    block = LINT_PAGE.partition("## A baseline")[2].partition("```sh\n")[2].partition("```")[0]
    done = shell(block, tmp_path)
    assert (done.returncode, done.stderr) == (0, "written: .earshot-baseline.json, 1 mistake\n")
    assert "1 ignored" in done.stdout
    (tmp_path / "new.yml").write_text(BAD)
    assert shell(block.splitlines()[-1], tmp_path).returncode == 1
