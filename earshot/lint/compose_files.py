"""Checks Compose files, alone or merged."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from earshot.checks.deployment import advice_on_services, mistakes
from earshot.errors import EarshotError
from earshot.lint.containers import unknown_images
from earshot.lint.files import published_by_siblings
from earshot.lint.model import FileOptions, FileReport, Mistake
from earshot.lint.places import in_files
from earshot.lint.unread_kinds import why_unread
from earshot.listeners.problems import shown
from earshot.rules import kl014_image
from earshot.rules.rule import Finding
from earshot.sources.bootstraps import bootstraps, bootstraps_alone, uses_msk
from earshot.sources.compose import (
    Compose,
    is_compose,
    may_be_merged,
    read_compose,
    started_services,
)
from earshot.sources.compose_files import documents_of
from earshot.sources.deployment import all_brokers
from earshot.sources.files import beside, text_of, variables_for
from earshot.sources.open_listeners import open_listeners
from earshot.sources.service import Service
from earshot.yaml_reading.document import repeated_keys
from earshot.yaml_reading.tags import Keys

NOT_COMPOSE = ("is not a Compose file",)
_HELM_VALUES = re.compile(r"values[\w.-]*\.ya?ml", re.IGNORECASE)
_MENTIONS_BROKER = re.compile("kafka|redpanda", re.IGNORECASE)
_REDPANDA_KEY = re.compile(r"^\ufeff?redpanda:", re.MULTILINE)


def check_compose(
    text: str,
    file: Path,
    variables: Mapping[str, str],
    options: FileOptions,
    over: Sequence[tuple[str, str]] = (),
    *,
    is_whole: bool = False,
) -> FileReport:
    """Checks ``text`` as the content of a Compose ``file``, into which the files of ``over`` (text
    and name) are merged: no other ones if it ``is_whole``. Raises EarshotError."""
    file_name = str(file)
    text, over = _in_documents(text, file_name, over)
    for content, name in _other_files(text, file_name, over):
        return _report_without_compose(content, name)
    compose = _compose(text, file, variables, over)
    services = _started_services(compose, options)
    if not is_whole:
        services = _with_ports_of_siblings(services, file)
    has_broker = bool(all_brokers(services))
    texts = [(text, file_name), *over]
    has_msk_client = not has_broker and uses_msk(services)
    may_fail = has_broker or has_msk_client or bootstraps_alone(services)
    findings = mistakes(services) if may_fail else ()
    repeated = () if compose.has_unique_keys else _repeated(texts)
    is_hidden = any(map(_hides_service, repeated))
    may_hide_broker = is_hidden and any(_MENTIONS_BROKER.search(part) for part, _ in texts)
    images = [reason for _, reason in unknown_images(services, "service")]
    if not (findings or may_hide_broker or has_broker or has_msk_client):
        no_broker = "no service of it is known to run a Kafka broker"
        reasons = (*images, *_not_included(compose), no_broker)
        return FileReport(file_name, "", unchecked=reasons)
    findings = (*map(_repeated_key, repeated[:1]), *findings)
    findings = (*_misspelt(compose, services), *findings)
    unchecked = [*_unknown_values(compose), *_not_included(compose), *images]
    included = [(content, str(file.parent / path)) for content, path in compose.included]
    files = (*texts, *included)
    places = in_files(files, (*findings, *advice_on_services(services, findings)))
    placed_mistakes = tuple(Mistake(finding, place) for finding, place in places)
    other_files = [name for _, name in files if name != file_name]
    kind = f"Compose file, with {', '.join(other_files)}" if other_files else "Compose file"
    open_ends = tuple(f"service {name}: {reason}" for name, reason in open_listeners(services))
    return FileReport(file_name, kind, placed_mistakes, tuple(unchecked), open_listeners=open_ends)


def check_together(
    files: Sequence[Path], variables: Mapping[str, str], options: FileOptions
) -> FileReport:
    """Checks Compose ``files`` as one: each is merged into those before it.

    The report has the name of the first. Raises EarshotError if a file cannot be read.
    """
    base, *overlays = files
    over = [(text_of(overlay), str(overlay)) for overlay in overlays]
    return check_compose(text_of(base), base, variables, options, over, is_whole=True)


def services_in(
    text: str,
    file: Path,
    variables: Mapping[str, str],
    options: FileOptions,
    over: Sequence[tuple[str, str]] = (),
) -> tuple[Service, ...]:
    """The started services of a Compose ``file`` with content ``text``, into which the files of
    ``over`` (text and name) are merged. Raises EarshotError."""
    text, over = _in_documents(text, str(file), over)
    for _, name in _other_files(text, str(file), over):
        raise EarshotError(name, observed="is not a Compose file", allowed="a Compose file")
    return _started_services(_compose(text, file, variables, over), options)


def _in_documents(
    text: str, file_name: str, over: Sequence[tuple[str, str]]
) -> tuple[str, Sequence[tuple[str, str]]]:
    """The first document of ``text``, and the others as overriding files before those of ``over``:
    Compose merges the documents of a file in their order."""
    (first, _), *rest = (
        (document, name)
        for content, name in ((text, file_name), *over)
        for document in documents_of(content)
    )
    return first, rest


def _other_files(
    text: str, file_name: str, over: Sequence[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    """Those of the files (text and name) that are no Compose files."""
    if not is_compose(text, file_name):
        yield text, file_name
    yield from (overlay for overlay in over if not may_be_merged(*overlay))


def _compose(
    text: str, file: Path, variables: Mapping[str, str], over: Sequence[tuple[str, str]]
) -> Compose:
    return read_compose(
        text,
        file.name,
        variables_for(file, variables, keep=True),
        beside(file),
        lenient=True,
        over=over,
    )


def _started_services(compose: Compose, options: FileOptions) -> tuple[Service, ...]:
    services = started_services(compose.services, options.profiles)
    if options.release is None:
        return services
    return tuple(replace(service, release=options.release) for service in services)


def _with_ports_of_siblings(services: Sequence[Service], file: Path) -> tuple[Service, ...]:
    """``services``, marked if a file next to ``file`` publishes the ports of one without any."""
    brokers = {broker.name for broker in all_brokers(services)}
    unpublished = {service.name for service in services if not service.container.published}
    elsewhere = {*published_by_siblings(file, brokers & unpublished)}
    return tuple(
        replace(service, container=replace(service.container, is_published_elsewhere=True))
        if service.name in elsewhere
        else service
        for service in services
    )


def _repeated(texts: Iterable[tuple[str, str]]) -> Sequence[Keys]:
    """The paths of `services` and of keys below it that occur twice in one of ``texts``, so that
    Compose refuses the file. Those that hide services are first."""
    paths = (path for text, name in texts for path in repeated_keys(text, name))
    of_services = (path for path in paths if path[0] == "services")
    return sorted(of_services, key=lambda path: not _hides_service(path))


def _hides_service(path: Keys) -> bool:
    """Whether the first of two keys at ``path`` is a service, or all of them."""
    return len(path) <= 2


def _repeated_key(path: Keys) -> Finding:
    section, *below = path
    key = ".".join(below[1:] or below) or section
    return kl014_image.RULE.finding(
        f"{key} occurs twice, and docker compose refuses the file",
        "every key once",
        container=below[0] if below else "",
        remedy=f"delete one {path[-1]}",
        inputs=(path[-1],),
        source="https://docs.docker.com/reference/compose-file/",
    )


def _misspelt(compose: Compose, services: Sequence[Service]) -> Iterator[Finding]:
    """A finding for the first key of a broker or client that no service may have: Compose refuses
    the file."""
    if not compose.misspelt:
        return
    of_kafka = {service.name for service in all_brokers(services)}
    of_kafka |= {client.service for client in bootstraps(services, of_kafka)}
    misspelt = (entry for entry in compose.misspelt if entry[0] in of_kafka)
    for service, key, similar in sorted(misspelt)[:1]:
        yield kl014_image.RULE.finding(
            f"{shown(key)} is no key of a service, and docker compose refuses the file",
            similar or "a key of the Compose Specification",
            container=service,
            remedy=f"write {similar}" if similar else f"delete {shown(key)}, or write x-...",
            inputs=(key,),
            source="https://docs.docker.com/reference/compose-file/services/",
        )


def _report_without_compose(text: str, file_name: str) -> FileReport:
    if _REDPANDA_KEY.search(text):
        from earshot.lint import other_files

        return other_files.redpanda(text, file_name)
    if _HELM_VALUES.fullmatch(Path(file_name).name):
        reason = "has values of a Helm chart: check what it renders (`helm template`)"
        return FileReport(file_name, "", unchecked=(reason,))
    return FileReport(file_name, "", unchecked=(why_unread(text, NOT_COMPOSE[0]),))


def _not_included(compose: Compose) -> list[str]:
    """A reason for each file under `include` that was not read."""
    remedy = "check it separately, or the output of `docker compose config`"
    return [f"includes {path}, which is not read here: {remedy}" for path in compose.not_included]


def _unknown_values(compose: Compose) -> list[str]:
    """A reason for each unknown value of the file."""
    notes = [f"{name} is not set: values that depend on it are unknown" for name in compose.missing]
    notes += [
        f"{expression}: unknown, because another tool replaces it"
        for expression in compose.malformed
    ]
    for service in compose.services:
        notes += [
            f"service {service.name}: {setting} could not be read"
            for setting in service.container.unknown
        ]
    return notes
