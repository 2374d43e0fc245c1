"""Checks task definitions of ECS, as `aws ecs register-task-definition` reads them.

Only the settings of each broker are checked: how the containers of a task reach each other depends
on its network mode and on the services that run it.
"""

from collections.abc import Iterator
from dataclasses import replace

from earshot.checks.deployment import advice_on_services
from earshot.checks.lone_settings import mistakes_in_task
from earshot.lint.containers import Containers
from earshot.lint.model import FileOptions, FileReport, Mistake
from earshot.lint.places import at_paths, of_resource
from earshot.rules.rule import Finding
from earshot.sources.pod_variables import Keys
from earshot.sources.task_definition import TaskContainer, task_containers
from earshot.sources.values import as_map

_KEY = "containerDefinitions"


def check_task(text: str, file_name: str, document: object, options: FileOptions) -> FileReport:
    """Checks the brokers of a task definition, or of the answer to `describe-task-definition`."""
    outer = as_map(document)
    is_answer = "taskDefinition" in outer
    task = as_map(outer.get("taskDefinition")) if is_answer else outer
    containers = [
        replace(container, service=replace(container.service, release=options.release))
        for container in task_containers(task.get(_KEY))
    ]
    run = Containers([container.service for container in containers])
    if not run.brokers:
        return FileReport(file_name, "", unchecked=("no container of it runs a Kafka broker",))
    findings = mistakes_in_task(containers)
    findings = (*findings, *advice_on_services(run.services, findings))
    root: Keys = (0, "taskDefinition") if is_answer else (0,)
    by_name = {container.service.name: container for container in containers}
    placed = at_paths(
        text,
        file_name,
        [(finding, _paths(root, by_name[finding.container], finding)) for finding in findings],
    )
    return FileReport(
        file_name,
        "ECS task definition",
        tuple(Mistake(finding, place) for finding, place in placed),
        tuple(reason for _, reason in run.unread()),
        open_listeners=tuple(reason for _, reason in run.open_listeners()),
    )


def _paths(root: Keys, container: TaskContainer, finding: Finding) -> Iterator[Keys]:
    place = container.place(finding.inputs)
    yield from of_resource(root, replace(finding, inputs=(f"{place}.value", place, container.path)))
