"""Checks on this machine before any instance changes.

They compare the stack with its last run, and check that Kafka's archive is at the URL from which
instances fetch it, and that Kafka accepts the settings of every node. A preview does not check the
settings while a node's name is unknown.
"""

from collections.abc import Callable, Iterator, Mapping

from earshot.config.aws_sections import KafkaRelease
from earshot.errors import EarshotError
from earshot.jvm.broker_settings import ask_kafka, lacks_class
from earshot.jvm.jars import kafka_broker_jars
from earshot.jvm.java import find_java
from earshot.listeners.model import ClusterPlan
from earshot.listeners.properties import without_references
from earshot.listeners.render import server_properties
from earshot.user_data.boot import NodeReport
from earshot_pulumi.aws import archive, changes
from earshot_pulumi.aws.changes import HeldStack
from earshot_pulumi.aws.credentials import reader
from earshot_pulumi.aws_settings import SETTINGS, AwsKind
from earshot_pulumi.properties import read
from earshot_pulumi.provider.kind import UNKNOWN, Operation, Properties
from earshot_pulumi.provider.resource import InternalResource
from earshot_pulumi.refusals import refused_settings

Say = Callable[[str], None]


class ChangePreflightKind(AwsKind):
    """Compares its inputs with those of the last run, checks the archive's URL, and runs Kafka's
    parser on this machine.

    Inputs in addition to those of `HeldStack`: `region`; `reports`, the nodes' parameters there;
    the `archive`; and `properties`, the text of each node's settings by id.
    """

    ID = "held"
    interrupted = "interrupted: nothing was changed"
    IDLE = ("written", SETTINGS)
    """Inputs whose difference alone is no change. The next change stores them."""

    def problems(self, operation: Operation, olds: Properties, news: Properties) -> Iterator[str]:
        if olds:
            news["written"] = olds.get("written") or self._served_version(operation, olds)
            yield from changes.problems(read(HeldStack, olds), read(HeldStack, news))
        yield from _archive_problems(olds, news, operation.log)
        yield from _settings_problems(olds, news, operation.log)

    def _served_version(self, operation: Operation, olds: Properties) -> str:
        """The Kafka version of the last run, if a node has served with it and so has formatted the
        data; empty if none has, or if that is unknown."""
        try:
            values = reader(self.settings(operation), olds["region"])(olds["reports"])
        except EarshotError as reason:
            operation.log(f"whether a node has served is not known: {reason.line}")
            return ""
        reports = map(NodeReport.read, values.values())
        has_served = any(report is not None and report.serves for report in reports)
        return str(olds["kafka_version"]) if has_served else ""


class ChangePreflight(InternalResource):
    """The checks before an instance changes, as a resource."""

    FORMER_NAMES = ("ChangePreflight", "AwsGround")


def settings_of(plan: ClusterPlan) -> dict[str, str]:
    """The input `properties`: the text of each node's settings by id."""
    return {str(node.id): server_properties(plan, node) for node in plan.nodes}


def _archive_problems(olds: Properties, news: Properties, say: Say) -> list[str]:
    if news["archive"] == olds.get("archive"):
        return []
    try:
        problem = archive.problem(KafkaRelease.model_validate(news["archive"]), progress=say)
    except EarshotError as reason:
        say(reason.line)
        return []
    return [problem] if problem else []


def _settings_problems(olds: Properties, news: Properties, say: Say) -> list[str]:
    version, new_texts = news["kafka_version"], news["properties"]
    if new_texts is UNKNOWN:  # because a name in them is
        return []
    old_texts = olds.get("properties", {}) if version == olds.get("kafka_version") else {}
    changed_texts = {int(id): text for id, text in new_texts.items() if old_texts.get(id) != text}
    return list(refused_settings(version, _refusals(version, changed_texts, say)))


def _refusals(version: str, properties: Mapping[int, str], say: Say) -> dict[int, str]:
    if not properties:
        return {}
    texts = {id: without_references(text) for id, text in properties.items()}
    try:
        refusals = ask_kafka(find_java(), kafka_broker_jars(version), texts).refusals
    except EarshotError as reason:
        say(f"Kafka has not checked the settings: {reason.line}")
        return {}
    # the archive may have more classes than the published jars
    return {id: text for id, text in refusals.items() if not lacks_class(text)}
