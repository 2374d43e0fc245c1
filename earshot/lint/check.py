"""One file, checked by what it is: YAML of four kinds, properties, variables, or user data."""

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
from earshot.lint.files import laid_over
from earshot.lint.forms import Form, by_content, by_name
from earshot.lint.model import NO_OPTIONS, FileOptions, FileReport, Mistake
from earshot.lint.places import in_files, in_properties
from earshot.rules import kl014_image
from earshot.rules.registry import Finding
from earshot.sources.bootstraps import bootstraps_alone, uses_msk
from earshot.sources.compose import Compose, Service, is_compose, read_compose, started_services
from earshot.sources.deployment import brokers_among
from earshot.sources.files import beside, text_of, variables_for
from earshot.sources.open_listeners import open_listeners
from earshot.sources.other_images import may_be_broker
from earshot.sources.redpanda import redpanda_among
from earshot.sources.user_data import is_user_data
from earshot.yaml_document import (
    read_yaml_documents,
    read_yaml_texts,
    repeated_keys,
    untagged,
)

_NOT_COMPOSE = ("is no Compose file",)
_ENDS = re.compile(r"(?:^(?:---|\.\.\.)[ \t]*(?:\n\s*|\Z))+\Z", re.MULTILINE)
"""Empty documents at the end of a file."""
_TEMPLATE = re.compile(
    r"^[ \t]*\{\{-? *(?:if|range|with|end|define|include|else)\b|^[ \t]*\{%", re.MULTILINE
)
"""Of Helm, or of Jinja, on a line of its own."""
_CI = re.compile(r"^jobs[ \t]*:|^[ \t]+script[ \t]*:", re.MULTILINE)
"""In what may be a workflow."""
_OF_REDPANDA = re.compile(r"^redpanda:", re.MULTILINE)
_IN_DOCUMENTS = re.compile(r"^---(?:\s|$)|\bapiVersion\b", re.MULTILINE)
"""In what may be a manifest, or several documents."""


def check(
    file: Path, variables: Mapping[str, str], options: FileOptions = NO_OPTIONS
) -> FileReport:
    """What is wrong in ``file``; ``variables`` are those of the environment.

    What `docker compose` lays over it by itself is laid over it here, too. A file that has nothing
    of Kafka has no kind. Raises EarshotError where it cannot be read.
    """
    text = text_of(file)
    form = by_name(file.name)
    is_boot = form in (None, Form.YAML) and is_user_data(text)
    if form is None and not is_boot:
        form = by_content(text)
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
    return _of_unknown_form(text, file, variables, options)


def _development_container(
    text: str, file: Path, variables: Mapping[str, str], options: FileOptions
) -> FileReport:
    """What is wrong in the Compose files that a devcontainer.json names."""
    from earshot.lint import ci_files

    files = ci_files.compose_files(file, text)
    if files is None:
        return FileReport(str(file), "", unchecked=("is no JSON, with or without comments",))
    if not files:
        return FileReport(str(file), "", unchecked=("names no Compose file: it starts no broker",))
    linted = check_together(files, variables, options)
    kind = f"development container, with {', '.join(item.name for item in files)}"
    return replace(linted, file=str(file), kind=kind if linted.kind else "")


def _of_unknown_form(
    text: str, file: Path, variables: Mapping[str, str], options: FileOptions
) -> FileReport:
    """A file whose name and content say nothing: YAML, or not read."""
    try:
        linted = _yaml(text, file, variables, options)
    except EarshotError:
        linted = FileReport(str(file), "")
    if linted.kind or linted.unchecked not in ((), _NOT_COMPOSE):
        return linted
    why = "holds no properties, variables, services or resources of a broker that earshot reads"
    return FileReport(str(file), "", unchecked=(why,))


def check_compose(
    text: str,
    file: Path,
    variables: Mapping[str, str],
    options: FileOptions,
    over: Sequence[tuple[str, str]] = (),
) -> FileReport:
    """What is wrong in ``text``, were it the content of a Compose ``file`` below those ``over`` it,
    each as its text and name. Raises EarshotError."""
    shown = str(file)
    for content, name in ((text, shown), *over):
        if not is_compose(content, name):
            return _other_than_compose(content, name)
    compose = _compose(text, file, variables, over)
    services = _running(compose, options)
    asks_cloud = ".amazonaws.com" in text and uses_msk(services)
    findings = mistakes(services) if bootstraps_alone(services) else ()
    if not (findings or brokers_among(services) or redpanda_among(services) or asks_cloud):
        none = "no service of it is known to run a Kafka broker"
        why = (*_unknown_images(services), *_not_included(compose), none)
        return FileReport(shown, "", unchecked=why)
    findings = findings or mistakes(services)
    if not compose.has_unique_keys:
        findings = (*_repeated(text, shown), *findings)
    unknown = [*_unknown(compose), *_not_included(compose), *_unknown_images(services)]
    included = [(content, str(file.parent / path)) for content, path in compose.included]
    files = ((text, shown), *over, *included)
    places = in_files(files, (*findings, *advice_on_services(services, findings)))
    placed = tuple(Mistake(item, place) for item, place in places)
    others = [name for _, name in files[1:]]
    kind = f"Compose file, with {', '.join(others)}" if others else "Compose file"
    open_ends = tuple(f"service {name}: {why}" for name, why in open_listeners(services))
    return FileReport(shown, kind, placed, tuple(unknown), open_listeners=open_ends)


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
    """The services that run of a Compose ``file`` with ``text``. Raises EarshotError."""
    for content, name in ((text, str(file)), *over):
        if not is_compose(content, name):
            raise EarshotError(name, observed="is no Compose file", allowed="a Compose file")
    return _running(_compose(text, file, variables, over), options)


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


def _running(compose: Compose, options: FileOptions) -> tuple[Service, ...]:
    return tuple(
        replace(item, release=options.release)
        for item in started_services(compose.services, options.profiles)
    )


def check_together(
    files: Sequence[Path], variables: Mapping[str, str], options: FileOptions
) -> FileReport:
    """Compose files of which each is laid over those before it; the first gives the name.

    Raises EarshotError where one cannot be read.
    """
    first, *others = files
    over = [(text_of(item), str(item)) for item in others]
    return check_compose(text_of(first), first, variables, options, over)


def _properties(text: str, file_name: str, options: FileOptions) -> FileReport:
    if not is_of_broker(text):
        return FileReport(file_name, "", unchecked=("is not a broker configuration",))
    findings = mistakes_in_properties(text, options.release) or advice_in_properties(
        text, options.release
    )
    placed = tuple(
        Mistake(finding, in_properties(text, file_name, finding)) for finding in findings
    )
    open_ends = tuple(open_in_properties(text))
    return FileReport(file_name, "properties file", placed, open_listeners=open_ends)


def _yaml(text: str, file: Path, variables: Mapping[str, str], options: FileOptions) -> FileReport:
    shown, text = str(file), _ENDS.sub("", text)
    if _TEMPLATE.search(text) or _is_cut_by_braces(text, shown):
        why = "is a template: check what it renders (`helm template`, `docker compose config`)"
        return FileReport(shown, "", unchecked=(why,))
    if _IN_DOCUMENTS.search(text):
        from earshot.lint.other_files import check_manifest, is_manifest  # slow to import

        documents = read_yaml_documents(text, shown, unique=False)
        if is_manifest(documents):
            return check_manifest(text, shown, documents, options)
        if len(documents) > 1:
            return FileReport(
                shown, "", unchecked=("holds several YAML documents: no Compose file",)
            )
    if _CI.search(text):
        from earshot.lint import ci_files

        document = untagged(read_yaml_texts(text, shown, unique=False))
        if ci_files.is_workflow(file.name, document):
            return ci_files.check_workflow(text, shown, document, options)
    above = laid_over(file)
    if above and not is_compose(text, shown):
        above = ()
    over = [(text_of(item), str(item)) for item in above]
    fit = [item for item in over if is_compose(*item)]
    linted = check_compose(text, file, variables, options, fit)
    left_out = tuple(
        f"{Path(item[1]).name} names no service: it is left out, and `docker compose` lays it over "
        "this"
        for item in over
        if item not in fit
    )
    return replace(linted, unchecked=(*linted.unchecked, *left_out)) if linted.kind else linted


def _is_cut_by_braces(text: str, file_name: str) -> bool:
    """Whether it is no YAML, and `{{` says that something shall yet become of it."""
    if "{{" not in text:
        return False
    try:
        read_yaml_documents(text, file_name, unique=False)
    except EarshotError:
        return True
    return False


def _other_than_compose(text: str, file_name: str) -> FileReport:
    if _OF_REDPANDA.search(text):
        from earshot.lint import other_files

        return other_files.redpanda(text, file_name)
    return FileReport(file_name, "", unchecked=_NOT_COMPOSE)


def _not_included(compose: Compose) -> list[str]:
    """The files under `include` that were not read, each as a reason."""
    why = "check it by itself, or the output of `docker compose config`"
    return [f"includes {path}, which is not read here: {why}" for path in compose.not_included]


def _unknown_images(services: Sequence[Service]) -> list[str]:
    """Brokers, by the name of their image, whose advertised addresses are unknown."""
    return [
        f"service {service.name}: {service.container.image} looks like a broker, and what it makes "
        "of its variables is not known"
        for service in services
        if not service.command and may_be_broker(service.container)
    ]


def _unknown(compose: Compose) -> list[str]:
    """What the file leaves open, each once."""
    notes = [f"{name} is not set: what depends on it is not known" for name in compose.missing]
    notes += [
        f"{expression}: another tool has to replace it, and it is not known"
        for expression in compose.malformed
    ]
    for service in compose.services:
        notes += [
            f"service {service.name}: {what} could not be read"
            for what in service.container.unknown
        ]
    return notes
