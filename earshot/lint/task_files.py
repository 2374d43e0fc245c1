"""Checks task definitions of ECS, as `aws ecs register-task-definition` reads them.

Only the settings of each broker are checked: how the containers of a task reach each other depends
on its network mode and on the services that run it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from earshot.checks.deployment import advice_on_services
from earshot.checks.lone_settings import mistakes_in_task
from earshot.lint.containers import Containers
from earshot.lint.model import FileOptions, FileReport, Mistake, Place
from earshot.lint.places import at_paths, of_resource
from earshot.rules.rule import Finding
from earshot.sources.pod_variables import Keys
from earshot.sources.task_definition import TaskContainer, task_containers
from earshot.sources.values import as_map

_KEY = "containerDefinitions"
Findings = Sequence[tuple[Finding, TaskContainer]]
"""Findings, each with its container."""


def check_task(text: str, file_name: str, document: object, options: FileOptions) -> FileReport:
    """Checks the brokers of a task definition, or of the answer to `describe-task-definition`."""
    outer = as_map(document)
    is_answer = "taskDefinition" in outer
    task = as_map(outer.get("taskDefinition")) if is_answer else outer
    root: Keys = (0, "taskDefinition") if is_answer else (0,)

    def placed(findings: Findings) -> Iterable[tuple[Finding, Place]]:
        paths = [(finding, _paths(root, container, finding)) for finding, container in findings]
        return at_paths(text, file_name, paths)

    containers = task_containers(task.get(_KEY))
    return report_on(containers, file_name, "ECS task definition", placed, options)


def report_on(
    containers: Iterable[TaskContainer],
    file_name: str,
    kind: str,
    placed: Callable[[Findings], Iterable[tuple[Finding, Place]]],
    options: FileOptions,
) -> FileReport:
    """The report on the ``containers`` of one task; ``placed`` adds the place of each finding."""
    by_name = {
        container.service.name: replace(
            container, service=replace(container.service, release=options.release)
        )
        for container in containers
    }
    run = Containers([container.service for container in by_name.values()])
    if not run.brokers:
        images = (reason for _, reason in run.unknown_images())
        reasons = (*images, "no container of it runs a Kafka broker")
        return FileReport(file_name, "", unchecked=reasons)
    findings = mistakes_in_task(by_name.values())
    findings = (*findings, *advice_on_services(run.services, findings))
    with_containers = [(finding, by_name[finding.container]) for finding in findings]
    return FileReport(
        file_name,
        kind,
        tuple(Mistake(finding, place) for finding, place in placed(with_containers)),
        tuple(reason for _, reason in run.unread()),
        open_listeners=tuple(reason for _, reason in run.open_listeners()),
    )


def _paths(root: Keys, container: TaskContainer, finding: Finding) -> Iterator[Keys]:
    place = container.place(finding.inputs)
    yield from of_resource(root, replace(finding, inputs=(f"{place}.value", place, container.path)))
