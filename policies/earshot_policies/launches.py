"""Evaluates what launches brokers later: templates of EC2 instances, task definitions of ECS."""

from collections.abc import Mapping

from earshot.checks.lone_settings import (
    mistakes_in_task,
    mistakes_in_user_data,
    open_in_user_data,
)
from earshot.checks.names_not_looked_up import names_not_looked_up
from earshot.rules import kl002_kafka
from earshot.rules.rule import Finding, FindingState
from earshot.sources.open_listeners import open_listeners
from earshot.sources.service import brokers_among
from earshot.sources.task_definition import read_task
from earshot.sources.user_data import broker_files
from earshot_policies.evaluation import Evaluation
from earshot_policies.instances import ENCODED, unread, user_data

LAUNCH_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
TASK_DEFINITION = "aws:ecs/taskDefinition:TaskDefinition"
TEMPLATES = {
    LAUNCH_TEMPLATE: ("userData",),
    "aws:ec2/launchConfiguration:LaunchConfiguration": ENCODED,
    "aws:ec2/spotInstanceRequest:SpotInstanceRequest": ENCODED,
}
"""Types that launch instances, each with its properties in base64."""
_DEFINITIONS = "containerDefinitions"


def evaluate_template(type: str, inputs: Mapping[str, object]) -> Evaluation:
    """What Kafka refuses in the user data of what launches instances, one of `TEMPLATES`."""
    try:
        text = user_data(inputs, encoded=TEMPLATES[type])
    except ValueError as reason:
        return Evaluation(remarks=(f"user data in base64: {reason}; not checked",))
    if text is None:
        return Evaluation((_not_known("userData"),) if _is_named_after_kafka(inputs) else ())
    written = broker_files(text)
    remarks = [f"{why}; not checked" for why in open_in_user_data(written)]
    remarks += filter(None, (names_not_looked_up(file.written) for file in written))
    return Evaluation(mistakes_in_user_data(written), (*unread(text, written), *remarks))


def evaluate_task(inputs: Mapping[str, object]) -> Evaluation:
    """The settings in the containers of a task that Kafka or its image refuses."""
    text = inputs.get(_DEFINITIONS, "[]")
    if text is None:
        return Evaluation((_not_known(_DEFINITIONS),) if _is_named_after_kafka(inputs) else ())
    try:
        containers = read_task(str(text))
    except ValueError as reason:
        return Evaluation(remarks=(f"{_DEFINITIONS} is not JSON: {reason}; not checked",))
    services = [container.service for container in containers]
    remarks = [f"container {name}: {why}; not checked" for name, why in open_listeners(services)]
    remarks += [
        f"container {service.name}: {remark}"
        for service in brokers_among(services)
        if (remark := names_not_looked_up(service.settings.values))
    ]
    return Evaluation(mistakes_in_task(containers), tuple(remarks))


def place_in_task(inputs: Mapping[str, object], finding: Finding) -> str:
    """The path of the property that ``finding`` reports."""
    text = inputs.get(_DEFINITIONS)
    for container in read_task(text) if isinstance(text, str) else ():
        if container.service.name == finding.container:
            return container.place(finding.inputs)
    return _DEFINITIONS


def _is_named_after_kafka(inputs: Mapping[str, object]) -> bool:
    """True if the resource's name contains `kafka`. Most unknown values do not concern Kafka."""
    names = (inputs.get(key) for key in ("name", "namePrefix", "family"))
    return any("kafka" in str(name).lower() for name in names)


def _not_known(path: str) -> Finding:
    return kl002_kafka.RULE.finding(
        f"{path}: not known yet, so it is not clear whether a broker runs here",
        "its value, checked again when it is known",
        state=FindingState.UNKNOWN,
        remedy="nothing yet: the update checks it",
        inputs=(path,),
    )
