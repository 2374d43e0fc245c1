"""Workflows, development containers and Podman's units: what is wrong in the containers they start.

Each is checked as the same containers in a Compose file are.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from earshot.checks.deployment import advice_on_services, mistakes
from earshot.lint.model import FileOptions, FileReport, Mistake, Place
from earshot.lint.places import at_paths
from earshot.listeners.images import spellings
from earshot.rules.registry import Finding
from earshot.sources.bootstraps import bootstraps_alone
from earshot.sources.ci_services import JOB, CiJob, github_jobs, gitlab_jobs
from earshot.sources.compose import Service
from earshot.sources.deployment import brokers_among, deployment
from earshot.sources.files import text_of
from earshot.sources.open_listeners import open_listeners
from earshot.sources.pod_variables import Keys
from earshot.sources.quadlet import ENDINGS, name_of, read_units
from earshot.sources.redpanda import redpanda_among
from earshot.topology.container import is_loopback
from earshot.topology.model import Deployment

_NO_BROKER = ("no service of it is known to run a Kafka broker",)
_COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_COMMA = re.compile(r",(\s*[}\]])")


def is_workflow(name: str, document: object) -> bool:
    """Whether a YAML file of this name is a GitHub workflow, or GitLab's CI."""
    return ".gitlab-ci" in name or bool(github_jobs(document))


def check_workflow(text: str, file_name: str, document: object, options: FileOptions) -> FileReport:
    """What is wrong in the services of each job."""
    is_gitlab = ".gitlab-ci" in Path(file_name).name
    jobs = gitlab_jobs(document) if is_gitlab else github_jobs(document)
    by_place: dict[tuple[str, Keys], tuple[Finding, list[Keys]]] = {}
    unknown: list[str] = []
    open_ends: list[str] = []
    has_broker = False
    for job in jobs:
        services = _of_release(job.services, options)
        # in GitLab CI with Kubernetes all services of a job have one loopback
        is_alone = not is_gitlab and bootstraps_alone(services)
        if not (is_alone or _has_broker(services)):
            continue
        has_broker = True
        findings = mistakes(services)
        for finding in (*findings, *advice_on_services(services, findings)):
            paths = list(_paths(job, finding))
            by_place.setdefault((finding.line, paths[0]), (finding, paths))
        unknown += (
            f"job {job.name}, service {service.name}: {what} could not be read"
            for service in services
            for what in service.container.unknown
        )
        unknown += _without_client(job.name, deployment(services))
        open_ends += (
            f"job {job.name}, service {name}: {why}" for name, why in open_listeners(services)
        )
    if not has_broker:
        return FileReport(file_name, "", unchecked=_NO_BROKER)
    placed = tuple(
        Mistake(item, place) for item, place in at_paths(text, file_name, by_place.values())
    )
    kind = "GitLab CI" if is_gitlab else "GitHub workflow"
    return FileReport(
        file_name,
        kind,
        placed,
        tuple(dict.fromkeys(unknown)),
        open_listeners=tuple(dict.fromkeys(open_ends)),
    )


def _without_client(job: str, whole: Deployment) -> Iterator[str]:
    """For a job in a container that names no broker: the brokers that it could not use.

    Its program may have the address in its code. Steps on the machine are no such job: loopback
    leads them to published ports.
    """
    if JOB not in whole.containers or any(it.service == JOB for it in whole.bootstraps):
        return
    for broker in whole.brokers:
        hosts = [it.advertised and it.advertised.host for it in broker.for_clients]
        if hosts and all(host and is_loopback(host) for host in hosts):
            yield (
                f"job {job}: names no broker; a client in its container that connects to "
                f"{broker.service} is sent to {hosts[0]}, which is its own container"
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
    """What is wrong in one of Podman's units; those beside it are the containers that it meets."""
    shown = str(file)
    units = {file.name: text}
    for other in sorted(file.parent.glob("*")):
        if other.suffix in ENDINGS and other.name != file.name and other.is_file():
            units[other.name] = text_of(other)
    services = _of_release(read_units(units), options)
    container_name = name_of(file.name, text)
    brokers = {item.name for item in (*brokers_among(services), *redpanda_among(services))}
    if not brokers:
        return FileReport(shown, "", unchecked=_NO_BROKER)
    findings = mistakes(services)
    listed = [
        it
        for it in (*findings, *advice_on_services(services, findings))
        if it.container == container_name
    ]
    placed = tuple(Mistake(item, _line(text, shown, item)) for item in listed)
    unknown = [
        f"{what} could not be read"
        for service in services
        if service.name == container_name
        for what in service.container.unknown
    ]
    open_ends = tuple(why for name, why in open_listeners(services) if name == container_name)
    return FileReport(shown, "Podman unit", placed, tuple(unknown), open_listeners=open_ends)


def _line(text: str, file_name: str, finding: Finding) -> Place:
    names = {name for key in finding.inputs for name in spellings(key)}
    keys = {"ports": "PublishPort", "command": "Exec", "image": "Image"}
    prefixes = [f"{name}=" for name in names] + [
        f"{keys[name]}=" for name in finding.inputs if name in keys
    ]
    for number, line in enumerate(text.splitlines(), 1):
        if any(item in line for item in prefixes):
            return Place(file_name, number, len(line) - len(line.lstrip()) + 1)
    return Place(file_name, 1, 1)


def compose_files(file: Path, text: str) -> tuple[Path, ...] | None:
    """The Compose files of a devcontainer.json, None where it cannot be read; its comments are
    passed over."""
    plain = _COMMA.sub(r"\1", _COMMENT.sub(lambda match: match[1] or "", text))
    try:
        document = json.loads(plain)
    except ValueError:
        return None
    listed = document.get("dockerComposeFile") if isinstance(document, dict) else None
    names = listed if isinstance(listed, list) else [listed] if isinstance(listed, str) else []
    return tuple(file.parent / str(name) for name in names)


def _has_broker(services: Sequence[Service]) -> bool:
    return bool(brokers_among(services) or redpanda_among(services))


def _of_release(services: Iterable[Service], options: FileOptions) -> tuple[Service, ...]:
    return tuple(replace(service, release=options.release) for service in services)
