"""A service: its container and command, and the settings that its image passes to Kafka.

`earshot.listeners.images` maps an image's variables to settings. For an unknown image only the
settings in its variables are known.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from earshot.facts.settings import NEWEST, BrokerSettings
from earshot.listeners.images import (
    APACHE_DEFAULTS,
    Family,
    family_of,
    is_broker,
    is_new_bitnami,
    is_old_of_bitnami,
    is_redpanda,
    patch_of,
    release_of,
    repository_of,
)
from earshot.listeners.placeholders import is_known
from earshot.listeners.properties import read_properties
from earshot.sources.commented import Commented
from earshot.sources.image_settings import effective_properties, image_properties
from earshot.topology.container import MOUNTED, PLACEHOLDER, Container

_OPTION = re.compile(
    r"--(?:add-host|detach|env|env-file|hostname|link|name|net|network|publish|restart|rm|volume)"
    r"(?==|$)|-[dit]+$|-[epv]",
    re.ASCII,
)
"""An option of `docker run` that no image takes."""
_RUNS_BROKER = re.compile(
    r"kafka-server-start|docker/run|start-kafka|entrypoint|/run\.sh|launch|kafka-run|start\b", re.I
)
_CLIENT = re.compile(
    r"kafka-(?:topics|console|configs|acls|consumer-groups|broker-api|verifiable|producer-perf)"
    r"|\bkcat\b|\bkafkacat\b|\bcub\b|\bsleep (?:infinity|\d)|\btail -f /dev/null",
    re.ASCII,
)
_SET_IN_COMMAND = re.compile(r"\b(KAFKA_[A-Z_]+)=", re.ASCII)
_OVERRIDE = re.compile(r"--override[= ]([A-Za-z0-9.]+)=(\S*)", re.ASCII)
BASE_FILE = "the file that it is laid over"
"""In `Container.unknown`, for a service without an image."""
_AS_GIVEN = (Family.APACHE, Family.CONFLUENT, Family.WURSTMEISTER)
"""Images that add no listeners, roles or protocols to the given settings."""
UNREAD = {
    BASE_FILE,
    MOUNTED,
    PLACEHOLDER,
    "env",
    "envFrom",
    "env_file",
    "environmentFiles",
    "extends",
    "options",
    "variables",
}
"""Values of `Container.unknown` that may set further variables."""
_INJECTED = ("/bitnami/kafka/config", "/opt/bitnami/kafka", "/docker-entrypoint-initdb.d")
"""Mount targets that may replace the configuration which bitnami's script generates."""
_PASSED_BESIDE = {"KAFKA_EXTRA_FLAGS", "KAFKA_MOUNTED_CONF_DIR"}
"""Variables by which bitnami's Kafka receives properties that no other variable contains."""
_SERVERS_OF_BITNAMI = "localhost:9093"
"""The default of `controller.quorum.bootstrap.servers` in bitnami's `kafka-env.sh` of 4.1 on."""


@dataclass(frozen=True)
class Service:
    """One service: its container, and its command if the file sets one."""

    name: str
    container: Container
    command: tuple[str, ...] = ()
    replicas: str = ""
    """`deploy.replicas` or `scale` as written."""
    properties: str = ""
    """The text of a broker's properties file that is mounted from the Compose file's folder."""
    redpanda: str = ""
    """The text of a mounted redpanda.yaml."""
    files: Mapping[str, str] = field(default_factory=dict)
    """The texts of other mounted files that mention Kafka, by target path."""
    is_built: bool = False
    """Its image is built from a Dockerfile, which is not read."""
    release: tuple[int, int] | None = None
    """The Kafka release that the user states, for an image that does not show it."""
    commented: Commented = field(default_factory=dict)
    """Its commented-out advertised addresses."""
    health_check: tuple[str, ...] = ()
    is_machine: bool = False
    """It is the machine itself, whose hosts file is `Container.extra_hosts`."""

    @property
    def names_of_machine(self) -> Mapping[str, str]:
        """The names in the machine's hosts file with their addresses."""
        return self.container.extra_hosts if self.is_machine else {}

    @property
    def is_plain(self) -> bool:
        """Whether it runs the start script of an image that is not built here."""
        return not (self.command or self.is_built)

    @property
    def option_as_program(self) -> str:
        """The option of `docker run` with which the command of a Kafka image begins; such an image
        runs the first word, and does not start."""
        if self.is_built or self.container.family is Family.UNKNOWN:
            return ""
        option = _OPTION.match((*self.command, "")[0])
        return option[0] if option else ""

    @cached_property
    def settings(self) -> BrokerSettings:
        """The properties that the image of a broker passes to Kafka."""
        return _settings(self)

    @cached_property
    def runs_broker(self) -> bool:
        """Whether it runs a broker or controller of Kafka, and not only the image's tools."""
        return _runs_broker(self)


def brokers_among(services: Sequence[Service]) -> tuple[Service, ...]:
    """The services that run a broker or controller, and not only the image's tools."""
    return tuple(service for service in services if service.runs_broker)


def _settings(service: Service) -> BrokerSettings:
    container = service.container
    text = " ".join(service.command)
    family = container.family
    release = _release(service)
    has_old_settings = family is Family.WURSTMEISTER or (release or NEWEST) < (3, 0)
    values = (
        effective_properties(_with_port(container))
        if has_old_settings
        else dict(image_properties(container))
    )
    if values == APACHE_DEFAULTS and (service.is_built or _has_unread_variables(container)):
        values = {}  # with any further variable none of the defaults is set
    if service.properties:
        if container.has_file and values == APACHE_DEFAULTS:
            values = {}  # apache/kafka reads the mounted file instead
        values = dict(read_properties(service.properties).values) | values
    elif "kafka-server-start" in text:
        values = dict(_OVERRIDE.findall(text))
    values = {key: value for key, value in values.items() if value != ""}
    scripted = set(map(container.property_of, _SET_IN_COMMAND.findall(text)))
    if derives_no_more(container) or "advertised.listeners" in scripted:
        scripted |= {"listeners"} - container.settings.values.keys()
    values = {key: value for key, value in values.items() if key not in scripted}
    if family is Family.BITNAMI:
        if _advertises_its_id(service, values) and "advertised.listeners" not in scripted:
            values["advertised.listeners"] = "PLAINTEXT://:9092"
        # the default of every release is PLAINTEXT at 9092
        advertised = values.get("advertised.listeners", "")
        if re.fullmatch(r"PLAINTEXT://[^,]*", advertised, re.IGNORECASE):
            values.setdefault("listeners", "PLAINTEXT://:9092")
        has_servers = (release or (0, 0)) >= (4, 1) and _starts_by_variables(service)
        if has_servers and "controller.quorum.voters" not in values:
            values.setdefault("controller.quorum.bootstrap.servers", _SERVERS_OF_BITNAMI)
    complete = (
        (family in _AS_GIVEN or _is_plain_bitnami(container, release))
        and not _is_confluent_local(container.image)
        and "CUSTOM_INIT_SCRIPT" not in container.env
        and not container.has_own_script
        and service.is_plain
        and not (container.unknown or container.has_file)
        and not any("properties" in path or path.startswith(_INJECTED) for path in container.mounts)
    )
    by_tag = is_known(container.image) and not service.is_built and release_of(container.image)
    patch = patch_of(container.image) if by_tag else None
    return BrokerSettings(values, complete, release, patch)


def with_empty(service: Service, settings: BrokerSettings) -> BrokerSettings:
    """``settings`` with the empty properties that the image passes to Kafka.

    apache/kafka and cp-kafka pass them, except for those that their scripts derive, or unset on a
    controller; cp-kafka derives nothing on a controller.
    """
    container = service.container
    family = container.family
    as_given = family in (Family.APACHE, Family.CONFLUENT) or is_new_bitnami(container.image)
    if not (as_given and service.is_plain) or _is_confluent_local(container.image):
        return settings
    empty = (name for name, value in container.env.items() if value == "")
    keys = set(map(container.property_of, empty)) - {"", "log.dirs"}
    is_controller = settings.values.get("process.roles", "").strip() == "controller"
    if not is_controller or family is Family.APACHE:
        keys -= {"listeners"}
    if is_controller:
        keys -= {"advertised.listeners"}
    if not keys:
        return settings
    return replace(settings, values={**settings.values, **dict.fromkeys(keys, "")})


def _is_plain_bitnami(container: Container, release: tuple[int, int] | None) -> bool:
    """Whether bitnami's script of 2023 sets only what variables contain.

    With TLS and SASL it adds key stores, users and mechanisms.
    """
    env = container.env.items()
    sets = any(
        name.endswith(("_COMMAND", "_FILE"))
        or name in _PASSED_BESIDE
        or "SSL" in value
        or "SASL" in value
        for name, value in env
    )
    return release is not None and is_new_bitnami(container.image) and not sets


def _advertises_its_id(service: Service, values: Mapping[str, str]) -> bool:
    """Whether bitnami's script from before 2023 advertises `PLAINTEXT://:9092`.

    Its `kafka-env.sh` does so if no variable sets `advertised.listeners`, so that clients receive
    the container's id. Listeners with other names do not start with it.
    """
    container = service.container
    default = "" if "process.roles" in values else "PLAINTEXT://"  # with a controller's in KRaft
    listeners = values.get("listeners", default).upper()
    return (
        family_of(container.image) is Family.BITNAMI
        and is_old_of_bitnami(container.image)
        and "advertised.listeners" not in values
        and re.search(r"(?:^|,)\s*PLAINTEXT://", listeners) is not None
        and _starts_by_variables(service)
    )


def leaves_unset_listeners_out(service: Service) -> bool:
    """Whether bitnami's script of 2023 runs: it comments out the listeners that its properties
    file contains, so that Kafka's defaults apply to those that no variable sets."""
    container = service.container
    return (
        is_new_bitnami(container.image)
        and not _PASSED_BESIDE & set(container.env)
        and _starts_by_variables(service)
    )


def _starts_by_variables(service: Service) -> bool:
    """Whether bitnami's script generates the properties, all from variables that are known."""
    container = service.container
    return (
        service.is_plain
        and not (_has_unread_variables(container) or container.has_file or service.properties)
        and not any(path.startswith(_INJECTED) for path in container.mounts)
    )


def _release(service: Service) -> tuple[int, int] | None:
    """Kafka's release by the image's tag, or else as the user states.

    The name of a built image does not show its content.
    """
    if service.is_built:
        return service.release
    image = service.container.image
    release = release_of(image) if is_known(image) else None
    return release or service.release or image_release(image)


def _is_confluent_local(image: str) -> bool:
    """Whether the image is confluent-local, which defines its listeners itself."""
    return repository_of(image).endswith("confluent-local")


def derives_no_more(container: Container) -> bool:
    """Whether its listeners may be set in a place that is not read."""
    return _has_unread_variables(container) or _is_confluent_local(container.image)


def _has_unread_variables(container: Container) -> bool:
    """Whether some of its variables are set in a place that is not read, or are unknown."""
    return bool(UNREAD & set(container.unknown)) or container.has_own_script


def _with_port(container: Container) -> Container:
    """``container`` with the published port, which wurstmeister's image reads from Docker's
    socket."""
    env = container.env
    names = ("KAFKA_ADVERTISED_PORT", "KAFKA_LISTENERS", "KAFKA_ADVERTISED_LISTENERS")
    if container.family is not Family.WURSTMEISTER or any(env.get(name) for name in names):
        return container
    if not any(path.endswith("docker.sock") for path in container.mounts):
        return container
    port = env.get("KAFKA_PORT", "9092")
    published = container.published_at(int(port)) if re.fullmatch(r"[0-9]{1,5}", port) else ()
    host_port = published[0].host_port if len(published) == 1 else None
    return replace(container, env={**env, "KAFKA_ADVERTISED_PORT": str(host_port or "${PORT}")})


def image_release(image: str) -> tuple[int, int] | None:
    """Kafka's release in ``image``; the newest for no tag and for `latest`."""
    if not is_known(image):
        return None
    family = family_of(image)
    if family in (Family.UNKNOWN, Family.WURSTMEISTER):
        return release_of(image)
    tag = image.rpartition("/")[2].partition(":")[2]
    if tag in ("", "latest"):
        # cp-server replaced this image, so that its latest is an older, unknown release
        return None if repository_of(image).endswith("cp-enterprise-kafka") else NEWEST
    if re.fullmatch(r"\d{1,4}", tag, re.ASCII):
        major = int(tag) - 4 if family is Family.CONFLUENT else int(tag)
        return NEWEST if major >= 4 else (3, 9) if major == 3 else (2, 8)
    return release_of(image)


def _runs_broker(service: Service) -> bool:
    if is_redpanda(service.container.image):
        return False
    if service.option_as_program:
        return True
    text = " ".join(service.command)
    if _CLIENT.search(text) and not _RUNS_BROKER.search(text):
        return False
    if "kafka-server-start" in text or service.properties:
        return True
    known = service.container.family is not Family.UNKNOWN
    if known and text and not _RUNS_BROKER.search(text):
        return False  # another command in an image that starts a broker by default
    return is_broker(service.container.image, service.container.env, service.command)
