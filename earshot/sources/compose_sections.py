"""Sections of services in a Compose file: normalized, merged, and read by key.

The functions raise EarshotError for a value of a type that Compose does not allow.
"""

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches

from earshot.errors import EarshotError
from earshot.sources.values import as_map
from earshot.sources.values import list_of as known_list_of
from earshot.topology.container import DEFAULT_BRIDGES, JoinedNetwork, is_routed_network

Section = Mapping[str, object]
_INLINE = "./earshot's configs/"
"""The path prefix of configs with inline content."""
_LISTS = ("ports", "volumes", "env_file", "profiles")
_MAPS = ("environment", "networks", "extra_hosts")

_NAMES = (
    "annotations attach blkio_config build cap_add cap_drop cgroup cgroup_parent command configs "
    "container_name cpu_count cpu_percent cpu_period cpu_quota cpu_rt_period cpu_rt_runtime "
    "cpu_shares cpus cpuset credential_spec depends_on deploy develop device_cgroup_rules devices "
    "dns dns_opt dns_search domainname entrypoint env_file environment expose extends "
    "external_links extra_hosts gpus group_add healthcheck hostname image init ipc isolation "
    "label_file labels links logging mac_address mem_limit mem_reservation mem_swappiness "
    "memswap_limit models network_mode networks oom_kill_disable oom_score_adj pid pids_limit "
    "platform ports post_start pre_start pre_stop privileged profiles provider pull_policy "
    "pull_refresh_after read_only restart runtime scale secrets security_opt shm_size stdin_open "
    "stop_grace_period stop_signal storage_opt sysctls tmpfs tty ulimits umask use_api_socket user "
    "userns_mode uts volume_driver volumes volumes_from working_dir"
)
_KEYS = frozenset(_NAMES.split())
"""The keys of a service in the schema of the Compose Specification."""
_SHAPE = re.compile(r"[a-z_]+|x-.*|<<|.*[{}$<>@].*", re.DOTALL)
"""A key that Compose may know, or that a template replaces."""


def misspelt_keys(section: Section) -> Iterator[tuple[str, str]]:
    """The keys of a service that no Compose knows, each with the similar one, or an empty text.

    A key that is not similar to any may be one of a later Compose.
    """
    for key in sorted(map(str, section.keys() - _KEYS)):
        (similar,) = get_close_matches(key[:40], _KEYS, 1, 0.8) or ("",)
        if not _SHAPE.fullmatch(key) or (similar and not key.startswith("x-")):
            yield key, similar


def normalized_section(section: Section, where: str, folder: str) -> dict[str, object]:
    """The section with maps for environment, networks and extra_hosts, and lists for the rest."""
    normalized = dict(section)
    normalized.pop("extends", None)
    if "environment" in normalized:
        normalized["environment"] = _pairs(normalized["environment"], f"{where}.environment")
    if "networks" in normalized and not isinstance(normalized["networks"], Mapping):
        names = list_of(normalized["networks"], f"{where}.networks")
        normalized["networks"] = {str(name): None for name in names}
    if "extra_hosts" in normalized:
        normalized["extra_hosts"] = dict(extra_hosts_of(normalized, where))
    for key in _LISTS:
        if key in normalized:
            read = texts_of if key == "env_file" else list_of
            normalized[key] = read(normalized[key], f"{where}.{key}")
    files = normalized.get("env_file")
    if folder and isinstance(files, list):  # a file's own paths are relative to itself
        normalized["env_file"] = [_moved(file, folder) for file in files]
    return normalized


def _moved(entry: object, folder: str) -> object:
    if isinstance(entry, Mapping):
        return {**entry, "path": posixpath.join(folder, str(entry.get("path") or ""))}
    return posixpath.join(folder, str(entry))


def merged_section(base: Section, overriding: Section) -> dict[str, object]:
    """Merges as Compose does: maps by key, lists appended, other values replaced."""
    result = {**base, **overriding}
    for key in _MAPS:
        if key in base and key in overriding:
            result[key] = merged_maps(map_of(base[key], key), map_of(overriding[key], key))
    for key in _LISTS:
        if key in base and key in overriding:
            result[key] = [*list_of(base[key], key), *list_of(overriding[key], key)]
    return result


def merged_maps(base: Section, overriding: Section) -> dict[str, object]:
    """Merges nested maps by key; other values are replaced."""
    result = {**base, **overriding}
    for key in result:
        if isinstance(before := base.get(key), Mapping):
            after = overriding.get(key)
            result[key] = (
                merged_maps(before, after) if isinstance(after, Mapping) else after or before
            )
    return result


def _pairs(value: object, where: str) -> dict[str, object]:
    if isinstance(value, Mapping):
        return {str(key): _scalar(item, f"{where}.{key}") for key, item in value.items()}
    if value not in (None, "") and not isinstance(value, list):
        raise EarshotError(where, observed=_shape(value), allowed="a map, or a list of NAME=value")
    values: dict[str, object] = {}
    for i, item in enumerate(list_of(value, where)):
        if not isinstance(item, str):
            raise EarshotError(f"{where}[{i}]", observed=_shape(item), allowed="NAME=value")
        name, sign, text = item.partition("=")
        values[name] = text if sign else None
    return values


def _scalar(value: object, where: str) -> object:
    if value is not None and not isinstance(value, str):
        raise EarshotError(where, observed=_shape(value), allowed="one value")
    return value


def joined_networks(
    name: str, section: Section, top: Section, where: str
) -> Iterator[JoinedNetwork]:
    joined = map_of(section.get("networks"), f"{where}.networks") or {"default": None}
    for key, details in joined.items():
        settings = map_of(details, f"{where}.networks.{key}")
        aliases = map(str, list_of(settings.get("aliases"), f"{where}.networks.{key}"))
        declared = as_map(top.get(key))
        pools = [*map(as_map, known_list_of(as_map(declared.get("ipam")).get("config")))]
        real = declared.get("name")
        yield JoinedNetwork(
            str(real or key),
            tuple(dict.fromkeys((name, *aliases))),
            str(settings.get("ipv4_address") or ""),
            str(declared.get("internal")).lower() == "true",
            bool(real),
            is_routed=is_routed_network(declared.get("driver"), declared.get("driver_opts")),
            subnets=tuple(str(pool["subnet"]) for pool in pools if pool.get("subnet")),
            gateways=tuple(str(pool["gateway"]) for pool in pools if pool.get("gateway")),
        )


def has_other_names(section: Section, top: Section) -> bool:
    """Whether its networks may have names that the file does not contain."""
    joined = map_of(section.get("networks"), "networks") or {"default": None}
    is_external = any(as_map(top.get(key)).get("external") for key in joined)
    mode = str(section.get("network_mode") or "")
    by_mode = mode not in (*DEFAULT_BRIDGES, "none")
    return bool(is_external or section.get("external_links") or by_mode)


def links_of(section: Section, where: str) -> Iterator[tuple[str, str]]:
    """(link name, service) of `links`."""
    for link in list_of(section.get("links"), f"{where}.links"):
        service, _, name = str(link).partition(":")
        yield (name or service).lower(), service


def extra_hosts_of(section: Section, where: str) -> Iterator[tuple[str, str]]:
    hosts = section.get("extra_hosts")
    if isinstance(hosts, Mapping):
        yield from ((str(name).lower(), str(address)) for name, address in hosts.items())
        return
    for entry in list_of(hosts, f"{where}.extra_hosts"):
        name, _, address = str(entry).replace("=", ":", 1).partition(":")
        yield name.strip().lower(), address.strip().strip("[]")


def volumes_of(section: Section, where: str) -> Iterator[tuple[str, str]]:
    """(source, target) of each volume."""
    for volume in list_of(section.get("volumes"), f"{where}.volumes"):
        if isinstance(volume, Mapping):
            yield str(volume.get("source") or ""), str(volume.get("target") or "")
        else:
            source, *rest = str(volume).split(":")
            yield source, rest[0] if rest else source


def configs_of(section: Section, declared: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """(source, target) of each config; ``declared`` are the file's configs by name.

    The source of inline content is a path that only `with_inline` reads.
    """
    for config in known_list_of(section.get("configs")):
        entry = config if isinstance(config, Mapping) else {"source": config}
        name = str(entry.get("source") or "")
        target = str(entry.get("target") or f"/{name}")
        config_section = as_map(declared.get(name))
        source = ""  # external, or from a variable
        if "content" in config_section:
            source = f"{_INLINE}{name}/{posixpath.basename(target)}"
        elif config_section.get("file"):
            file = str(config_section["file"])
            source = file if file.startswith((".", "/", "~")) else f"./{file}"
        yield source, target


def with_inline(read: Callable[[str], str], declared: Mapping[str, object]) -> Callable[[str], str]:
    """``read``, extended by the inline contents of ``declared`` at paths of `configs_of`."""

    def text_of(path: str) -> str:
        config_section = declared.get(path.removeprefix(_INLINE).rpartition("/")[0])
        if path.startswith(_INLINE) and isinstance(config_section, Mapping):
            return str(config_section["content"])
        return read(path)

    return text_of


def is_overlay(services: Mapping[str, Section]) -> bool:
    """Whether another file must complete it: a service lacks an image, or a dependency exists
    elsewhere."""
    for section in services.values():
        if not (section.get("image") or "build" in section):
            return True
        if any(name not in services for name in needs_of(section)):
            return True
    return False


def needs_of(section: Section) -> tuple[str, ...]:
    """The services that must start before this one."""
    needed = section.get("depends_on")
    return tuple(map(str, needed)) if isinstance(needed, (list, Mapping)) else ()


def words_of(value: object) -> tuple[str, ...]:
    if isinstance(value, (list, tuple)):
        return tuple(map(str, value))
    return tuple(str(value).split()) if value else ()


def map_of(value: object, where: str) -> dict[str, object]:
    if value in (None, ""):
        return {}
    if not isinstance(value, Mapping):
        raise EarshotError(where, observed=_shape(value), allowed="a map")
    return {str(key): entry for key, entry in value.items()}


def _shape(value: object) -> str:
    """The type of ``value`` for a message; the value may be a secret."""
    kind = "a map" if isinstance(value, Mapping) else "a list"
    return f"found {kind if isinstance(value, (Mapping, list)) else 'one value'}"


def list_of(value: object, where: str) -> list[object]:
    if value in (None, ""):
        return []
    if not isinstance(value, list):
        raise EarshotError(where, observed=_shape(value), allowed="a list")
    return list(value)


def texts_of(value: object, where: str) -> list[object]:
    """Like `list_of`, for keys where Compose also takes one text in place of a list."""
    return [value] if isinstance(value, str) and value else list_of(value, where)
