"""Examples on disk with raw settings by node id, and what one rule finds."""

from pathlib import Path

import yaml

from earshot.facts.cluster import ClusterFacts
from earshot.listeners.properties import NodeSettings
from tests.rules.plan_examples import HERE


def files(rule: str) -> list[Path]:
    """Both kinds of a rule's examples."""
    return sorted((HERE / rule).glob("*/*.yaml"))


def load(path: Path) -> tuple[ClusterFacts, list[dict[str, str]]]:
    """The facts of an example, and the findings that its rule is expected to yield."""
    document = yaml.safe_load(path.read_text())
    notes = {"kafka_version": document["kafka"]} if "kafka" in document else {}
    settings = {id: NodeSettings(values, notes) for id, values in document["settings"].items()}
    return ClusterFacts(plan=None, settings=settings), document["findings"]
