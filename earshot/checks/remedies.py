"""Lines to write against the findings of a file, each proved by another check of the file: the
finding is gone, there is no new one, and published ports still lead to listeners.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from earshot.checks.remedy_candidates import candidates
from earshot.checks.remedy_lines import CheckedFile, RemedyLines, obstacle, protocols_of
from earshot.errors import EarshotError
from earshot.rules.kl002_kafka import unusable
from earshot.rules.rule import Finding, LineToWrite
from earshot.sources.compose_ports import read_port
from earshot.sources.deployment import deployment
from earshot.sources.service import Service
from earshot.topology.broker import Broker
from earshot.topology.container import PublishedPort
from earshot.topology.model import Deployment

Check = Callable[[Sequence[Service], Deployment], tuple[Finding, ...]]
"""Returns the findings about services and their deployment."""
MAX_SERVICES = 1000
"""The services that all trials of one file may check; each trial checks all services again."""
_BY_LISTENER = ("KL015", "KL016", "KL017")
"""Rules that an additional listener may satisfy."""
_Kind = tuple[str, str, str | None, str]


def with_lines(
    services: Sequence[Service], findings: tuple[Finding, ...], check: Check
) -> tuple[Finding, ...]:
    """``findings`` of ``services`` with proved ``lines``; in a large file only the first ones."""
    if not findings:
        return ()
    file = CheckedFile(services, deployment(services))
    before = {_kind(finding) for finding in findings}
    trials = MAX_SERVICES // len(services)
    tried: dict[tuple[LineToWrite, ...], set[_Kind] | None] = {}
    """Results of trials, as the same lines may fix many findings."""
    with_remedies = []
    for finding in findings:
        proved: list[RemedyLines] = []
        for candidate in candidates(file, finding) if len(tried) < trials else ():
            if candidate.lines not in tried:
                tried[candidate.lines] = _trial(file, candidate.lines, check)
            if _cures(finding, before, tried[candidate.lines]):
                proved.append(candidate)
            if len(tried) == trials:
                break
        with_remedies.append(_with_best(finding, proved) if proved else _with_reason(file, finding))
    return tuple(with_remedies)


def _trial(file: CheckedFile, lines: Sequence[LineToWrite], check: Check) -> set[_Kind] | None:
    """The findings with ``lines`` written; None if they lose a published port, or write an
    unusable address."""
    services = with_lines_written(file.services, lines)
    if _writes_unusable(services, {line.service for line in lines}):
        return None
    later = deployment(services)
    remaining = {_kind(finding) for finding in check(services, later)}
    return None if _loses_a_port(file, later) else remaining


def _writes_unusable(services: Iterable[Service], names: set[str]) -> bool:
    """Whether a service of these ``names`` has an unusable address."""
    written = (service for service in services if service.name in names)
    return any(any(unusable(service.settings.read())) for service in written)


def _cures(finding: Finding, kinds: set[_Kind], later_kinds: set[_Kind] | None) -> bool:
    """Whether ``finding`` is gone and every other finding existed before, perhaps reworded."""
    cured_kind = _kind(finding)
    elsewhere = {kind[:3] for kind in kinds} - {cured_kind[:3]}
    return later_kinds is not None and all(
        kind in kinds - {cured_kind} or kind[:3] in elsewhere for kind in later_kinds
    )


def _loses_a_port(file: CheckedFile, later: Deployment) -> bool:
    """Whether a published port no longer leads to a listener, as an image may derive `listeners`
    from the advertised list."""
    return any(
        port in after.container.published
        for before in file.deployment.brokers
        for after in (later.by_service[before.service],)
        for port in _with_listener(before) - _with_listener(after)
    )


def _with_listener(broker: Broker) -> set[PublishedPort]:
    """The published ports that lead to its listeners."""
    return {port for bind in broker.ports for port in broker.container.published_at(bind)}


def _with_reason(file: CheckedFile, finding: Finding) -> Finding:
    """``finding`` with the reason for missing lines, if a new listener needs more settings."""
    broker = file.deployment.by_service.get(finding.container)
    if broker is None or not broker.is_kafka or finding.rule not in _BY_LISTENER:
        return finding
    endpoints = broker.for_clients
    matching = [
        endpoint for endpoint in endpoints if endpoint.name == finding.listener
    ] or endpoints
    protocols = protocols_of(file, broker)
    reasons = [
        obstacle(file, broker, endpoint.name, protocols.get(endpoint.name.upper(), ""))
        for endpoint in matching
    ]
    if not matching or not all(reasons):
        return finding
    return replace(finding, remedy=f"{finding.remedy} (no lines are shown: {reasons[0]})")


def with_lines_written(
    services: Sequence[Service], lines: Iterable[LineToWrite]
) -> tuple[Service, ...]:
    """``services`` with ``lines`` applied."""
    by_name = {service.name: service for service in services}
    for line in lines:
        by_name[line.service] = _with_line_written(by_name[line.service], line)
    return tuple(by_name.values())


def _with_line_written(service: Service, line: LineToWrite) -> Service:
    container = service.container
    if line.setting == "ports":
        published = tuple(_republished(container.published, line))
        return replace(service, container=replace(container, published=published))
    if line.setting == "command":
        words = tuple(word.replace(line.replaces, line.value) for word in service.command)
        return replace(service, command=words)
    if line.setting.islower():
        return replace(service, properties=f"{service.properties}\n{line.setting}={line.value}\n")
    value = line.value
    if line.replaces:
        value = container.env.get(line.setting, "").replace(line.replaces, line.value)
    env = {**container.env, line.setting: value}
    return replace(service, container=replace(container, env=env))


def _republished(published: Iterable[PublishedPort], line: LineToWrite) -> Iterator[PublishedPort]:
    try:
        old_ports, new_ports = read_port(line.replaces, "ports"), read_port(line.value, "ports")
    except EarshotError:  # a port of a node in a Swarm
        old_ports, new_ports = [], []
    for port in published:
        yield from new_ports if port in old_ports else (port,)


def _with_best(finding: Finding, proved: Sequence[RemedyLines]) -> Finding:
    best = min(proved, key=lambda candidate: len(candidate.lines))
    equally_short = {
        candidate.lines for candidate in proved if len(candidate.lines) == len(best.lines)
    }
    is_only_way = len(equally_short) == 1 and not best.is_choice and finding.is_certain_error
    remedy = best.remedy if is_only_way else finding.remedy
    return replace(finding, remedy=remedy, lines=best.lines, is_only_way=is_only_way)


def _kind(finding: Finding) -> _Kind:
    return finding.rule, finding.container, finding.listener, finding.observed
