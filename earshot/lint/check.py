"""Checks one file by its form: YAML, properties, variables, user data, unit, devcontainer.json."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from earshot.checks.deployment import advice_on_services, mistakes
from earshot.checks.lone_settings import (
    advice_in_properties,
    is_of_broker,
    mistakes_in_properties,
    open_in_properties,
)
from earshot.errors import EarshotError
from earshot.lint.files import overlays_of, published_by_siblings
from earshot.lint.forms import Form, by_content, by_name
from earshot.lint.model import NO_OPTIONS, FileOptions, FileReport, Mistake
from earshot.lint.places import in_files, in_properties
from earshot.rules import kl014_image
from earshot.rules.registry import Finding
from earshot.sources.bootstraps import bootstraps_alone, uses_msk
from earshot.sources.compose import Compose, Service, is_compose, read_compose, started_services
from earshot.sources.deployment import brokers_among
from earshot.sources.drop_ins import is_drop_in, units_of
from earshot.sources.files import beside, text_of, variables_for
from earshot.sources.open_listeners import open_listeners
from earshot.sources.other_images import may_be_broker
from earshot.sources.redpanda import redpanda_among
from earshot.sources.user_data import is_user_data
from earshot.yaml_document import read_yaml_documents, read_yaml_texts, repeated_keys
from earshot.yaml_tags import untagged

_NOT_COMPOSE = ("is not a Compose file",)
_BOUNDARY = re.compile(r"(?:---|\.\.\.)[ \t]*")
"""A line that begins or ends a document."""
_TEMPLATE = re.compile(
    r"^[ \t]*\{\{-? *(?:if|range|with|end|define|include|else)\b|^[ \t]*\{%", re.MULTILINE
)
"""A statement of Helm or Jinja on its own line."""
_CI_KEYS = re.compile(r"^jobs[ \t]*:|^[ \t]+script[ \t]*:", re.MULTILINE)
"""Keys of CI files."""
_REDPANDA_KEY = re.compile(r"^redpanda:", re.MULTILINE)
_MANIFEST_SIGN = re.compile(r"^---(?:\s|$)|\bapiVersion\b", re.MULTILINE)
"""Signs of a Kubernetes manifest, or of several documents."""


def check(
    file: Path, variables: Mapping[str, str], options: FileOptions = NO_OPTIONS
) -> FileReport:
    """Checks ``file``. ``variables`` are those of the environment.

    Override files are merged into a Compose file as `docker compose` does. The report of a file
    without Kafka has no `kind`. Raises EarshotError if the file cannot be read.
    """
    text = text_of(file)
    form = by_name(file.name)
    is_boot = form in (None, Form.YAML, Form.SCRIPT) and is_user_data(text)
    if form is Form.SCRIPT or (form is None and is_boot):
        from earshot.lint import script_files

        return script_files.check_script(text, file, options, is_boot=is_boot)
    if form is None:
        form = by_content(text)
        if form is None and is_drop_in(file) and not units_of(file):
            reason = "is a drop-in of a Podman unit that is not next to its folder"
            return FileReport(str(file), "", unchecked=(reason,))
    if form is Form.PROPERTIES:
        return _properties(text, str(file), options)
    if form is Form.VARIABLES:
        from earshot.lint import other_files  # slow to import

        return other_files.variables(text, str(file), variables, options.release)
    if is_boot:
        from earshot.lint import other_files

        return other_files.user_data(text, str(file), options.release)
    if form is Form.UNIT:
        from earshot.lint import ci_files

        return ci_files.check_units(file, text, options)
    if form is Form.DEVELOPMENT_CONTAINER:
        return _development_container(text, file, variables, options)
    if form is Form.YAML:
        return _yaml(text, file, variables, options)
    return _unknown_form(text, file, variables, options)


def _development_container(
    text: str, file: Path, variables: Mapping[str, str], options: FileOptions
) -> FileReport:
    """Checks the Compose files that a devcontainer.json names."""
    from earshot.lint import ci_files

    files = ci_files.compose_files(file, text)
    if files is None:
        return FileReport(str(file), "", unchecked=("is not JSON, with or without comments",))
    if not files:
        reason = "names no Compose file, so it starts no broker"
        return FileReport(str(file), "", unchecked=(reason,))
    report = check_together(files, variables, options)
    kind = f"development container, with {', '.join(compose_file.name for compose_file in files)}"
    return replace(report, file=str(file), kind=kind if report.kind else "")


def _unknown_form(
    text: str, file: Path, variables: Mapping[str, str], options: FileOptions
) -> FileReport:
    """Checks a file of unknown form as YAML. Other content is not checked."""
    try:
        report = _yaml(text, file, variables, options)
    except EarshotError:
        report = FileReport(str(file), "")
    if report.kind or report.unchecked not in ((), _NOT_COMPOSE):
        return report
    reason = "contains no properties, variables, services or resources of a broker"
    return FileReport(str(file), "", unchecked=(reason,))


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
    for content, name in ((text, file_name), *over):
        if not is_compose(content, name):
            return _report_without_compose(content, name)
    compose = _compose(text, file, variables, over)
    services = _started_services(compose, options)
    if not is_whole:
        services = _with_ports_of_siblings(services, file)
    has_msk_client = ".amazonaws.com" in text and uses_msk(services)
    findings = mistakes(services) if bootstraps_alone(services) else ()
    if not (findings or brokers_among(services) or redpanda_among(services) or has_msk_client):
        no_broker = "no service of it is known to run a Kafka broker"
        reasons = (*_unknown_images(services), *_not_included(compose), no_broker)
        return FileReport(file_name, "", unchecked=reasons)
    findings = findings or mistakes(services)
    if not compose.has_unique_keys:
        findings = (*_repeated(text, file_name), *findings)
    unchecked = [*_unknown_values(compose), *_not_included(compose), *_unknown_images(services)]
    included = [(content, str(file.parent / path)) for content, path in compose.included]
    files = ((text, file_name), *over, *included)
    places = in_files(files, (*findings, *advice_on_services(services, findings)))
    placed_mistakes = tuple(Mistake(finding, place) for finding, place in places)
    other_files = [name for _, name in files[1:]]
    kind = f"Compose file, with {', '.join(other_files)}" if other_files else "Compose file"
    open_ends = tuple(f"service {name}: {reason}" for name, reason in open_listeners(services))
    return FileReport(file_name, kind, placed_mistakes, tuple(unchecked), open_listeners=open_ends)


def _repeated(text: str, file_name: str) -> Iterator[Finding]:
    """A finding for the first key below `services` that occurs twice: Compose refuses the file."""
    for section, *path in repeated_keys(text, file_name):
        if section == "services" and path:
            key = ".".join(path[1:] or path)
            yield kl014_image.RULE.finding(
                f"{key} occurs twice, and docker compose refuses the file",
                "every key once",
                container=path[0],
                remedy=f"delete one {path[-1]}",
                inputs=(path[-1],),
                source="https://docs.docker.com/reference/compose-file/",
            )
            return


def services_in(
    text: str,
    file: Path,
    variables: Mapping[str, str],
    options: FileOptions,
    over: Sequence[tuple[str, str]] = (),
) -> tuple[Service, ...]:
    """The started services of a Compose ``file`` with content ``text``, into which the files of
    ``over`` (text and name) are merged. Raises EarshotError."""
    for content, name in ((text, str(file)), *over):
        if not is_compose(content, name):
            raise EarshotError(name, observed="is not a Compose file", allowed="a Compose file")
    return _started_services(_compose(text, file, variables, over), options)


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
    return tuple(
        replace(service, release=options.release)
        for service in started_services(compose.services, options.profiles)
    )


def _with_ports_of_siblings(services: Sequence[Service], file: Path) -> tuple[Service, ...]:
    """``services``, marked if a file next to ``file`` publishes the ports of one without any."""
    brokers = {broker.name for broker in (*brokers_among(services), *redpanda_among(services))}
    unpublished = {service.name for service in services if not service.container.published}
    elsewhere = {*published_by_siblings(file, brokers & unpublished)}
    return tuple(
        replace(service, container=replace(service.container, is_published_elsewhere=True))
        if service.name in elsewhere
        else service
        for service in services
    )


def check_together(
    files: Sequence[Path], variables: Mapping[str, str], options: FileOptions
) -> FileReport:
    """Checks Compose ``files`` as one: each is merged into those before it.

    The report has the name of the first. Raises EarshotError if a file cannot be read.
    """
    base, *overlays = files
    over = [(text_of(overlay), str(overlay)) for overlay in overlays]
    return check_compose(text_of(base), base, variables, options, over, is_whole=True)


def _properties(text: str, file_name: str, options: FileOptions) -> FileReport:
    if not is_of_broker(text):
        return FileReport(file_name, "", unchecked=("is not a broker configuration",))
    findings = mistakes_in_properties(text, options.release) or advice_in_properties(
        text, options.release
    )
    placed_mistakes = tuple(
        Mistake(finding, in_properties(text, file_name, finding)) for finding in findings
    )
    open_ends = tuple(open_in_properties(text))
    return FileReport(file_name, "properties file", placed_mistakes, open_listeners=open_ends)


def _without_empty_end(text: str) -> str:
    """``text`` without empty documents at its end. A regular expression takes quadratic time."""
    lines = text.splitlines(keepends=True)
    kept = len(lines)
    for index in range(len(lines) - 1, -1, -1):
        if _BOUNDARY.fullmatch(lines[index].rstrip("\r\n")):
            kept = index
        elif lines[index].strip():
            break
    return "".join(lines[:kept])


def _yaml(text: str, file: Path, variables: Mapping[str, str], options: FileOptions) -> FileReport:
    file_name, text = str(file), _without_empty_end(text)
    if _TEMPLATE.search(text) or _is_cut_by_braces(text, file_name):
        reason = "is a template: check what it renders (`helm template`, `docker compose config`)"
        return FileReport(file_name, "", unchecked=(reason,))
    if _MANIFEST_SIGN.search(text):
        from earshot.lint.other_files import check_manifest, is_manifest  # slow to import

        documents = read_yaml_documents(text, file_name, unique=False)
        if is_manifest(documents):
            return check_manifest(text, file_name, documents, options)
        if len(documents) > 1:
            return FileReport(
                file_name, "", unchecked=("contains several YAML documents: not a Compose file",)
            )
    if _CI_KEYS.search(text):
        from earshot.lint import ci_files

        document = untagged(read_yaml_texts(text, file_name, unique=False, lenient=True))
        if ci_files.is_workflow(file.name, document):
            return ci_files.check_workflow(text, file_name, document, options)
    overlays = overlays_of(file)
    if overlays and not is_compose(text, file_name):
        overlays = ()
    over = [(text_of(overlay), str(overlay)) for overlay in overlays]
    compose_overlays = [overlay for overlay in over if is_compose(*overlay)]
    report = check_compose(text, file, variables, options, compose_overlays)
    skipped_overlays = tuple(
        f"{Path(overlay[1]).name} names no service: it is not read, although `docker compose` "
        "merges it into this file"
        for overlay in over
        if overlay not in compose_overlays
    )
    return (
        replace(report, unchecked=(*report.unchecked, *skipped_overlays)) if report.kind else report
    )


def _is_cut_by_braces(text: str, file_name: str) -> bool:
    """True if ``text`` is not YAML and contains `{{`: a template."""
    if "{{" not in text:
        return False
    try:
        read_yaml_documents(text, file_name, unique=False)
    except EarshotError:
        return True
    return False


def _report_without_compose(text: str, file_name: str) -> FileReport:
    if _REDPANDA_KEY.search(text):
        from earshot.lint import other_files

        return other_files.redpanda(text, file_name)
    return FileReport(file_name, "", unchecked=_NOT_COMPOSE)


def _not_included(compose: Compose) -> list[str]:
    """A reason for each file under `include` that was not read."""
    remedy = "check it separately, or the output of `docker compose config`"
    return [f"includes {path}, which is not read here: {remedy}" for path in compose.not_included]


def _unknown_images(services: Sequence[Service]) -> list[str]:
    """A reason for each service whose image looks like a broker that earshot does not know."""
    return [
        f"service {service.name}: {service.container.image} looks like a broker, but how it reads "
        "its variables is unknown"
        for service in services
        if not service.command and may_be_broker(service.container)
    ]


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
