"""Service containers of CI jobs: `services:` of GitHub workflows and GitLab CI.

Each job is one group, with the job's own commands as a client. On GitHub the steps run on the
machine and use published ports, or run in the job's `container`, on one network with the services,
whose names are their keys. On GitLab the job is a container that resolves each service by alias and
image name; whether services resolve each other depends on the runner and is unknown. Values from
templates, other files and expressions are unknown. Sources:
https://docs.github.com/en/actions/using-containerized-services/about-service-containers and
https://docs.gitlab.com/ci/services/.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from earshot.listeners.placeholders import is_known
from earshot.sources.bootstraps import is_client_setting
from earshot.sources.compose_ports import read_known_ports
from earshot.sources.docker_run import hosts_written, machine, parse_options
from earshot.sources.other_images import with_derived
from earshot.sources.pod_variables import Keys
from earshot.sources.service import Service
from earshot.sources.values import as_map, list_of
from earshot.topology.container import Container, JoinedNetwork
from earshot.yaml_reading.tags import UnknownValue

STEPS = "steps"
"""The name of the service that represents a GitHub job's own commands on the machine."""
JOB = "job"
"""The name of the service that represents a job's commands in a container, and on GitLab."""
_NETWORK = "the job's network"
_ELSEWHERE = re.compile(r"\b(?:docker|podman|kubectl|ssh|nerdctl)\b")
"""Commands that run others elsewhere."""
_ENGINE = re.compile(
    r"\b(?:docker|podman|nerdctl)(?:[ -]compose|\s+(?:container\s+|network\s+|pod\s+)?"
    r"(?:run|create|connect))\b|\bservices:"
)
_OWN_KEYS = frozenset(
    {"default", "include", "stages", "variables", "workflow", "image", "services", "cache", "spec"}
)
"""Keys of GitLab's top level that are not jobs."""


@dataclass(frozen=True)
class CiJob:
    """One job: its containers, and the place of each container's section in the file.

    ``variables`` are the places of variables that the sections inherit. ``scripts`` are the places
    of its commands that use an engine, each with the variables of its environment.
    """

    name: str
    services: tuple[Service, ...]
    places: Mapping[str, Keys]
    variables: tuple[Keys, ...] = ()
    scripts: tuple[tuple[Keys, Mapping[str, str]], ...] = ()


def github_jobs(document: object) -> tuple[CiJob, ...]:
    """The jobs of a workflow that have services or use an engine; empty for other documents."""
    workflow = as_map(document)
    return tuple(
        _github_job(name, as_map(job), _texts(workflow.get("env")))
        for name, job in as_map(workflow.get("jobs")).items()
        if isinstance(as_map(job).get("services"), Mapping)
        or any(
            uses_engine(step.get("run")) for step in map(as_map, list_of(as_map(job).get("steps")))
        )
    )


def uses_engine(commands: object) -> bool:
    """Whether commands start containers, create networks for them, or write a Compose file."""
    return isinstance(commands, str) and bool(_ENGINE.search(commands))


def _github_job(name: str, job: Mapping[str, object], env: Mapping[str, str]) -> CiJob:
    path: Keys = (0, "jobs", name, "services")
    sections = as_map(job.get("services"))
    services = [_github_service(key, _section(section)) for key, section in sections.items()]
    if job.get("container"):
        services = [*without_host(services)]
    places = {service.name: (*path, service.name) for service in services}
    job_env = {**env, **_texts(job.get("env"))}
    client = _github_client(job, job_env)
    places[client.name] = (0, "jobs", name)
    scripts: list[tuple[Keys, Mapping[str, str]]] = [
        ((0, "jobs", name, "steps", i, "run"), _known({**job_env, **_texts(step.get("env"))}))
        for i, step in enumerate(map(as_map, list_of(job.get("steps"))))
        if uses_engine(step.get("run")) and not str(step.get("shell")).startswith("python")
    ]
    variables: tuple[Keys, ...] = ((0, "jobs", name), (0,))
    return CiJob(name, (*services, client), places, variables, tuple(scripts))


def without_host(services: Iterable[Service]) -> Iterator[Service]:
    """Services of a job whose commands run in a container, so that none runs on the machine."""
    for service in services:
        yield replace(service, container=replace(service.container, published=()))


def _github_service(key: str, section: Mapping[str, object]) -> Service:
    options = _options(str(section.get("options") or ""))
    unknown: list[str] = []
    ports = (*list_of(section.get("ports")), *options.get("publish", ()))
    published = tuple(read_known_ports(ports, unknown))
    aliases = (key, *options.get("network-alias", ()))
    env_of_options = dict(option.partition("=")[::2] for option in options.get("env", ()))
    container = Container(
        name=(*options.get("name", ()), key)[0],
        image=str(section.get("image") or ""),
        hostname=(*options.get("hostname", ()), "")[0],
        networks=(JoinedNetwork(_NETWORK, aliases, is_shown=True),),
        published=published,
        env={**_texts(section.get("env")), **env_of_options},
        mounts=tuple(
            volume.split(":")[1] for volume in _list(section.get("volumes")) if ":" in volume
        ),
        unknown=tuple(unknown),
    )
    return Service(key, with_derived(container))


def _github_client(job: Mapping[str, object], env: Mapping[str, str]) -> Service:
    """The job's own steps, with their variables for clients and their commands."""
    env_of_clients = dict(env)
    words: list[str] = []
    runs: list[str] = []
    for section in map(as_map, list_of(job.get("steps"))):
        env_of_clients |= _texts(section.get("env"))
        runs.append(str(section.get("run") or ""))
        words += _commands(runs[-1])
    env_of_clients = {
        name: value for name, value in env_of_clients.items() if is_client_setting(name)
    }
    job_container = job.get("container")
    if not job_container:
        client = machine(words, "\n".join(runs), STEPS)
        return replace(client, container=replace(client.container, env=env_of_clients))
    section = _section(job_container)
    env_of_container = {k: v for k, v in _texts(section.get("env")).items() if is_client_setting(k)}
    container = Container(
        JOB,
        image=str(section.get("image") or ""),
        networks=(JoinedNetwork(_NETWORK),),
        env={**env_of_container, **env_of_clients},
        extra_hosts=hosts_written("\n".join(runs)),
    )
    return Service(JOB, container, tuple(words))


def gitlab_jobs(document: object) -> tuple[CiJob, ...]:
    """The jobs with services of a `.gitlab-ci.yml`; empty for other documents."""
    configuration = as_map(document)
    common = configuration.get("services", _section(configuration.get("default")).get("services"))
    jobs = []
    for name, section in configuration.items():
        job = _section(section)
        runs = "script" in job or "services" in job
        if name in _OWN_KEYS or not runs or (name.startswith(".") and "script" in job):
            continue
        services = job.get("services", common)
        if not isinstance(services, list):
            if not any(uses_engine(text) for _, text in _scripts(name, job)):
                continue
            services = []
        path: Keys = (0, name, "services") if "services" in job else (0, "services")
        jobs.append(_gitlab_job(name, job, services, path, configuration.get("variables")))
    return tuple(jobs)


def _gitlab_job(
    name: str,
    job: Mapping[str, object],
    entries: Sequence[object],
    path: Keys,
    common: object,
) -> CiJob:
    inherited = (common, job.get("variables"))
    env = {**_texts(common), **_texts(job.get("variables"))}
    services, places = [], {}
    has_unknown_names = False
    for i, entry in enumerate(entries):
        if isinstance(entry, UnknownValue):  # `!reference`, for the services of another job
            has_unknown_names = True
            continue
        section = {"name": entry} if isinstance(entry, str) else _section(entry)
        has_unknown_names |= isinstance(section.get("alias"), UnknownValue)
        unknown = ["extends"] if "extends" in job else []
        if any(isinstance(part, UnknownValue) for part in (*inherited, section.get("variables"))):
            unknown.append("variables")
        service = _gitlab_service(section, env, tuple(unknown))
        if service.name and service.name not in places:
            services.append(service)
            places[service.name] = (*path, i)
    scripts = tuple(_scripts(name, job))
    words = [word for _, text in scripts for word in _commands(text)]
    client_env = {key: value for key, value in env.items() if is_client_setting(key)}
    network = JoinedNetwork(_NETWORK)
    client = Container(
        JOB,
        networks=(network,),
        env=client_env,
        open_networks=has_unknown_names,
        extra_hosts=hosts_written("\n".join(text for _, text in scripts)),
    )
    places[JOB] = (0, name)
    return CiJob(
        name,
        (*services, Service(JOB, client, tuple(words))),
        places,
        ((0, name), (0,)),
        tuple((at, _known(env)) for at, text in scripts if uses_engine(text)),
    )


def _scripts(name: str, job: Mapping[str, object]) -> Iterator[tuple[Keys, str]]:
    """The commands of a job with their places."""
    for key in ("before_script", "script"):
        yield from _texts_within(job.get(key), (0, name, key))


def _texts_within(script: object, path: Keys) -> Iterator[tuple[Keys, str]]:
    """The texts of a list with their places; GitLab joins lists within it."""
    if isinstance(script, list):
        for i, entry in enumerate(script):
            yield from _texts_within(entry, (*path, i))
    elif script:
        yield path, str(script)


def _gitlab_service(
    section: Mapping[str, object], env: Mapping[str, str], unknown: tuple[str, ...]
) -> Service:
    image = str(section.get("name") or "")
    plain = re.sub(r"(?::[^:/]*)?(?:@.*)?$", "", image)
    aliases = re.split(r"[,\s]+", str(section.get("alias") or "").strip())
    names = [*filter(None, aliases), plain.replace("/", "__"), plain.replace("/", "-")]
    container = Container(
        name=names[0],
        image=image,
        networks=(JoinedNetwork(_NETWORK, tuple(names)),),
        env={**env, **_texts(section.get("variables"))},
        unknown=unknown,
        open_networks=True,
    )
    words = (*_list(section.get("entrypoint")), *_list(section.get("command")))
    return Service(names[0], container, tuple(words))


def _commands(text: str) -> Iterator[str]:
    """The words of a script, without lines that run something elsewhere."""
    for line in text.replace("\\\n", " ").splitlines():
        if not (_ELSEWHERE.search(line) or line.lstrip().startswith("#")):
            yield from line.split()


def _options(text: str) -> Mapping[str, Sequence[str]]:
    """The options of `docker create`, by long name."""
    try:
        return parse_options(shlex.split(text))[0]
    except ValueError:
        return {}


def _section(value: object) -> Mapping[str, object]:
    """A section; a text is the name of an image."""
    return {"image": value} if isinstance(value, str) else as_map(value)


def _known(env: Mapping[str, str]) -> dict[str, str]:
    """The variables whose values contain no expression and no other variable."""
    return {name: value for name, value in env.items() if is_known(value)}


def _texts(value: object) -> dict[str, str]:
    """Variables by name; GitLab's may be maps with a value."""
    values = as_map(value).items()
    plain = {k: v.get("value", "") if isinstance(v, Mapping) else v for k, v in values}
    return {k: str(v) for k, v in plain.items() if not isinstance(v, list) and v is not None}


def _list(value: object) -> list[str]:
    entries = value if isinstance(value, list) else [value] if value else []
    return [str(entry) for entry in entries]
