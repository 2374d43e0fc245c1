"""Examples on disk of rules about whole Compose files: the file itself, and what one rule finds."""

from collections.abc import Mapping
from pathlib import Path

import yaml

from earshot.checks.deployment import mistakes
from earshot.facts.cluster import ClusterFacts
from earshot.sources.compose import read_compose
from earshot.sources.deployment import deployment
from earshot.sources.service import Service


def services(text: str, files: Mapping[str, str] | None = None) -> tuple[Service, ...]:
    """The services of a Compose file as `earshot lint` reads them, beside ``files``."""
    known = files or {}

    def open_file(path: str) -> str:
        if path not in known:
            raise FileNotFoundError(2, "No such file or directory", path)
        return known[path]

    return read_compose(text, "compose.yaml", {}, open_file, lenient=True).services


def verdicts(text: str) -> list[tuple[str, str, str]]:
    """Rule, container and severity of each finding about ``text``, the services of a file."""
    return [
        (finding.rule, finding.container, str(finding.severity))
        for finding in mistakes(services(f"services:\n{text}\n"))
    ]


def observations(text: str, files: Mapping[str, str] | None = None) -> list[tuple[str, str, str]]:
    """Rule, container and observed text of each finding about ``text``, the services of a file."""
    findings = mistakes(services(f"services:\n{text}\n", files))
    return [(finding.rule, finding.container, finding.observed) for finding in findings]


def facts(text: str) -> ClusterFacts:
    """What rules about whole files check of a Compose file."""
    return ClusterFacts(plan=None, deployment=deployment(services(text)))


def load(path: Path) -> tuple[ClusterFacts, list[dict[str, str]]]:
    """The facts of an example, and the findings that its rule is expected to yield."""
    text = path.read_text()
    return facts(text), yaml.safe_load(text)["x-findings"]
