"""Checks the containers of CI workflows, development containers and Podman units.

They are checked like containers in a Compose file.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from earshot.lint.containers import Containers
from earshot.lint.model import FileOptions, FileReport, Mistake, Place, together
from earshot.lint.places import at_paths, in_command
from earshot.lint.script_files import cut_commands, written_compose_files
from earshot.listeners.images import spellings
from earshot.listeners.placeholders import is_known
from earshot.rules.rule import Finding
from earshot.sources.bootstraps import bootstraps_alone
from earshot.sources.ci_services import JOB, CiJob, github_jobs, gitlab_jobs, without_host
from earshot.sources.ci_steps import scripts_of, started_by
from earshot.sources.deployment import deployment
from earshot.sources.docker_run import StartedContainers
from earshot.sources.drop_ins import UNIT_ENDINGS, drop_ins
from earshot.sources.files import text_of
from earshot.sources.pod_variables import Keys
from earshot.sources.quadlet import merged_text, name_of, read_units
from earshot.sources.service import Service
from earshot.sources.values import as_map
from earshot.topology.container import is_loopback
from earshot.topology.model import Deployment
from earshot.yaml_reading.document import yaml_nodes_of_documents

_NO_BROKER = ("no service of it is known to run a Kafka broker",)
_NO_BROKER_IN_JOBS = "no service and no command of its jobs is known to start a Kafka broker"
_COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_COMMA = re.compile(r",(\s*[}\]])")


def is_workflow(name: str, document: object) -> bool:
    """True if a YAML file of this name and content is a GitHub workflow or a GitLab CI file."""
    workflow = as_map(document)
    keys = {"services", "steps"} if "on" in workflow else {"services"}  # others have jobs, too
    jobs = as_map(workflow.get("jobs")).values()
    return ".gitlab-ci" in name or any(keys & as_map(job).keys() for job in jobs)


def check_workflow(text: str, file_name: str, document: object, options: FileOptions) -> FileReport:
    """Checks the services of each job, and the Compose files that its commands write."""
    is_gitlab = ".gitlab-ci" in Path(file_name).name
    jobs = gitlab_jobs(document) if is_gitlab else github_jobs(document)
    lines = text.splitlines()
    has_scripts = any(job.scripts for job in jobs)
    documents = yaml_nodes_of_documents(text, file_name) if has_scripts else []
    findings_by_place: dict[tuple[str, Keys], tuple[Finding, list[Keys]]] = {}
    in_commands: list[Mistake] = []
    not_read: list[str] = []
    unchecked: list[str] = []
    open_ends: list[str] = []
    has_broker = False
    written: list[FileReport] = []
    for job in jobs:
        scripts = scripts_of(job.scripts, documents, lines)
        for script in scripts:
            written += written_compose_files(script, Path(file_name), options, lines)
        started = started_by(scripts)
        in_commands += cut_commands(started, file_name)
        commands = {container.service.name: container for container in started.containers}
        not_read += (f"job {job.name}, {reason}" for reason in started.not_read)
        for group in _groups(job, started, is_gitlab=is_gitlab):
            services = _with_release(group, options)
            containers = Containers(services, f"job {job.name}, service")
            # in GitLab CI with Kubernetes all services of a job have one loopback
            is_alone = not (is_gitlab or started.not_read) and bootstraps_alone(services)
            if not (is_alone or containers.brokers):
                unchecked += (reason for _, reason in containers.unknown_images())
                continue
            has_broker = True
            for finding in containers.findings:
                if command := commands.get(finding.container):
                    place = in_command(lines, file_name, command, finding)
                    in_commands.append(Mistake(finding, place))
                    continue
                paths = list(_paths(job, finding))
                findings_by_place.setdefault((finding.line, paths[0]), (finding, paths))
            unchecked += (reason for _, reason in containers.unread())
            unchecked += _unusable_brokers(job.name, deployment(services))
            open_ends += (reason for _, reason in containers.open_listeners())
    kind = "GitLab CI" if is_gitlab else "GitHub workflow"
    written = [report for report in written if report.kind]
    if not (has_broker or in_commands or written):
        reasons = dict.fromkeys([*not_read, *unchecked, _NO_BROKER_IN_JOBS])
        return FileReport(file_name, "", unchecked=tuple(reasons))
    placed_mistakes = tuple(
        Mistake(finding, place)
        for finding, place in at_paths(text, file_name, findings_by_place.values())
    )
    report = FileReport(
        file_name,
        kind,
        (*placed_mistakes, *in_commands),
        tuple(dict.fromkeys([*not_read, *unchecked])),
        open_listeners=tuple(dict.fromkeys(open_ends)),
    )
    return together([report, *written], kind)


def _groups(
    job: CiJob, started: StartedContainers, *, is_gitlab: bool
) -> Iterator[tuple[Service, ...]]:
    """The containers of a job that one engine runs, with the job's own commands.

    On GitLab a job may use an engine elsewhere (`docker:dind`): whether its commands reach the
    containers that they start is unknown.
    """
    containers = tuple(container.service for container in started.containers)
    if is_gitlab:
        yield job.services
        yield containers
    else:
        services = job.services
        names = [joined.name for service in containers for joined in service.container.networks]
        if started.not_read or not all(map(is_known, names)):  # it may be the job's network
            services = tuple(
                replace(service, container=replace(service.container, open_networks=True))
                for service in services
            )
        is_boxed = any(service.name == JOB for service in services)
        yield (*services, *(without_host(containers) if is_boxed else containers))


def _unusable_brokers(job: str, job_deployment: Deployment) -> Iterator[str]:
    """A reason for each broker that a job in a container could not use, if the job names no broker.

    The job's program may contain the address. Jobs that run on the machine are not concerned: for
    them loopback leads to published ports.
    """
    if JOB not in job_deployment.containers or any(
        bootstrap.service == JOB for bootstrap in job_deployment.bootstraps
    ):
        return
    for broker in job_deployment.brokers:
        hosts = [
            endpoint.advertised and endpoint.advertised.host for endpoint in broker.for_clients
        ]
        if hosts and all(host and is_loopback(host) for host in hosts):
            yield (
                f"job {job}: names no broker; {broker.service} sends a client in its container to "
                f"{hosts[0]}, which is that container itself"
            )


def _paths(job: CiJob, finding: Finding) -> Iterator[Keys]:
    section = job.places.get(finding.container, (0,))
    for name in finding.inputs:
        for variable in spellings(name):
            for base in (section, *job.variables):
                yield (*base, "env", variable)
                yield (*base, "variables", variable)
        yield (*section, name)
    yield section


def check_units(file: Path, text: str, options: FileOptions) -> FileReport:
    """Checks a Podman unit, with its drop-ins merged into it.

    The other units of its folder are the containers around it.
    """
    file_name = str(file)
    files = [(file_name, text), *((str(path), text_of(path)) for path in drop_ins(file))]
    units = {file.name: merged_text([content for _, content in files])}
    for sibling in sorted(file.parent.glob("*")):
        if sibling.suffix in UNIT_ENDINGS and sibling.name != file.name and sibling.is_file():
            units[sibling.name] = merged_text(
                [text_of(path) for path in (sibling, *drop_ins(sibling))]
            )
    containers = Containers(_with_release(read_units(units), options))
    container_name = name_of(file.name, units[file.name])
    if not containers.brokers:
        images = (reason for name, reason in containers.unknown_images() if name == container_name)
        return FileReport(file_name, "", unchecked=(*images, *_NO_BROKER))
    placed_mistakes = tuple(
        Mistake(finding, _place_of(files, finding))
        for finding in containers.findings
        if finding.container == container_name
    )
    unchecked = [reason for name, reason in containers.unread() if name == container_name]
    open_ends = tuple(
        reason for name, reason in containers.open_listeners() if name == container_name
    )
    drop_in_names = [Path(name).name for name, _ in files[1:]]
    kind = f"Podman unit, with {', '.join(drop_in_names)}" if drop_in_names else "Podman unit"
    return FileReport(file_name, kind, placed_mistakes, tuple(unchecked), open_listeners=open_ends)


def _place_of(files: Sequence[tuple[str, str]], finding: Finding) -> Place:
    """The place of ``finding`` in a unit or in the drop-ins after it, whose last setting counts."""
    names = {name for key in finding.inputs for name in spellings(key)}
    keys = {"ports": "PublishPort", "command": "Exec", "image": "Image"}
    prefixes = [f"{name}=" for name in names] + [
        f"{keys[name]}=" for name in finding.inputs if name in keys
    ]
    for file_name, text in (*reversed(files[1:]), files[0]):
        for number, line in enumerate(text.splitlines(), 1):
            if any(prefix in line for prefix in prefixes):
                return Place(file_name, number, len(line) - len(line.lstrip()) + 1)
    return Place(files[0][0], 1, 1)


def compose_files(file: Path, text: str) -> tuple[Path, ...] | None:
    """The Compose files that a devcontainer.json (JSON with comments) names; None if it cannot be
    read."""
    without_comments = _COMMA.sub(
        r"\1", _COMMENT.sub(lambda match: match[1] or "", text.removeprefix("\ufeff"))
    )
    try:
        document = json.loads(without_comments)
    except (ValueError, RecursionError):
        return None
    value = document.get("dockerComposeFile") if isinstance(document, dict) else None
    names = value if isinstance(value, list) else [value] if isinstance(value, str) else []
    return tuple(file.parent / str(name) for name in names)


def _with_release(services: Iterable[Service], options: FileOptions) -> tuple[Service, ...]:
    return tuple(replace(service, release=options.release) for service in services)
