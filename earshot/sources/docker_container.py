"""Reads the inputs of a `docker.Container`.

Other resources of the stack show the image's name and the networks that the stack creates.
"""

import base64
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from earshot.listeners.images import IMAGE_NOTE, is_unnamed, repository_of, spellings, tag_of
from earshot.sources.compose import LISTENERS
from earshot.sources.other_images import with_derived
from earshot.sources.service import Service
from earshot.sources.stack_resources import RegisteredStack
from earshot.sources.values import as_map, list_of
from earshot.topology.container import (
    DEFAULT_BRIDGES,
    HOST_NETWORK,
    MOUNTED,
    Container,
    JoinedNetwork,
    PublishedPort,
    configures_proxy,
    is_routed_network,
    may_be_configuration,
)

NETWORK = "docker:index/network:Network"
REMOTE_IMAGE = "docker:index/remoteImage:RemoteImage"
BUILT_IMAGES = frozenset(
    {
        "docker:index/image:Image",
        "docker:index/registryImage:RegistryImage",
        "docker-build:index:Image",
        "docker-build:index:Index",
    }
)
TYPES = frozenset({NETWORK, REMOTE_IMAGE, *BUILT_IMAGES})
"""Types of resources whose outputs are inputs of containers."""
Envs = Mapping[str, str | None] | Iterable[str | None]
"""By name, or as `NAME=value` texts; None is an unknown value."""
Inputs = Iterable[Mapping[str, object] | None]
"""Objects among the properties of `docker.Container`; None, or a value of None, is unknown."""
_HIDDEN = "${WORD}"
_FILLED_IN = "__defaults"
"""The key of an object of inputs for those that the provider set by default."""


def read_container(inputs: Mapping[str, object] | None, name: str = "") -> Container:
    return read_service(inputs, name).container


def read_service(inputs: Mapping[str, object] | None, name: str = "") -> Service:
    """The service of the properties of a `docker.Container`.

    Values of None and of a type that the provider refuses are unknown, and named in
    `Container.unknown`; a variable with a known name stays as `${NAME}`. ``name`` is the default
    name.
    """
    if inputs is None:
        return Service(name, Container(name, unknown=("its inputs",)))
    unknown: list[str] = []
    envs = inputs.get("envs")
    entries = _listed(inputs, "envs", "variables", unknown)
    env = read_variables(envs if isinstance(envs, Mapping) else entries, unknown)
    published = tuple(read_ports(_listed(inputs, "ports", "ports", unknown), unknown))
    network_inputs = _listed(inputs, "networksAdvanced", "networks", unknown)
    all_networks = [*read_networks(network_inputs, unknown)]
    networks = [network for network in all_networks if network.name not in DEFAULT_BRIDGES]
    mode = _text(inputs, "networkMode", "the network mode", unknown)
    by_mode = mode not in {*DEFAULT_BRIDGES, HOST_NETWORK, "none"} and ":" not in mode
    if by_mode and not all_networks:
        networks.append(JoinedNetwork(mode))
    mounts = tuple(_mounts(inputs))
    own_name = _text(inputs, "name", "its name", unknown) or name
    hostname = _text(inputs, "hostname", "its hostname", unknown)
    properties = _uploaded(inputs)
    hidden = inputs.get("uploads", []) is None or any(map(may_be_configuration, mounts))
    if hidden and not properties:
        unknown.append(MOUNTED)
    container = Container(
        name=own_name,
        # an unknown image usually becomes an id, which does not show the name either
        image=env.get(IMAGE_NOTE) or str(inputs.get("image") or ""),
        hostname=hostname,
        networks=tuple(networks),
        published=() if mode == HOST_NETWORK else published,
        env=env,
        mounts=mounts,
        network_mode=mode,
        unknown=tuple(dict.fromkeys(unknown)),
        extra_hosts=dict(_hosts(inputs)),
        has_proxy_labels=any(
            configures_proxy(str(label.get("label"))) for label in _maps(inputs, "labels")
        ),
    )
    return Service(own_name, with_derived(container), words(inputs), properties=properties)


def property_path(inputs: Mapping[str, object], names: Iterable[str]) -> str:
    """The path in ``inputs`` of the first of ``names``: broker properties, variables, inputs.

    Empty if none of them is set.
    """
    for name in names:
        variables = spellings(name)
        for i, variable in enumerate(list_of(inputs.get("envs"))):
            if isinstance(variable, str) and variable.partition("=")[0] in variables:
                return f"envs[{i}]"
        if inputs.get(name):
            return name
    return ""


def words(inputs: Mapping[str, object]) -> tuple[str, ...]:
    """The container's entrypoint and command; an unknown word is `${WORD}`."""
    entries: list[object] = []
    for key in ("entrypoints", "command"):
        value = inputs.get(key, [])
        entries += value if isinstance(value, list) else [None]
    return tuple(_HIDDEN if word is None else str(word) for word in entries)


def _hosts(inputs: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Names in its hosts file with their addresses; an unknown address is `${WORD}`."""
    for entry in _maps(inputs, "hosts"):
        if entry.get("host"):
            yield str(entry["host"]).lower(), str(entry.get("ip") or _HIDDEN)


def _uploaded(inputs: Mapping[str, object]) -> str:
    """The text of a broker's properties file among the uploads, or an empty string."""
    for upload in _maps(inputs, "uploads"):
        if str(upload.get("file")).endswith(".properties"):
            content = upload.get("content") or _decoded(upload.get("contentBase64"))
            if isinstance(content, str) and LISTENERS.search(content):
                return content
    return ""


def _decoded(content: object) -> str:
    """The decoded base64 text, or an empty string."""
    try:
        return base64.b64decode(str(content or ""), validate=True).decode()
    except ValueError:  # from binascii, and for invalid UTF-8
        return ""


def _listed(inputs: Mapping[str, object], key: str, label: str, unknown: list[str]) -> list[Any]:
    value = inputs.get(key, [])
    if value is None:
        unknown.append(label)
    return list_of(value)


def _text(inputs: Mapping[str, object], key: str, label: str, unknown: list[str]) -> str:
    value = inputs.get(key, "")
    if value is None:
        unknown.append(label)
    return str(value or "")


def _mounts(inputs: Mapping[str, object]) -> Iterator[str]:
    """The target paths of mounts and uploads."""
    for key, path in (("volumes", "containerPath"), ("mounts", "target"), ("uploads", "file")):
        for mount in _maps(inputs, key):
            if mount.get(path):
                yield str(mount[path])


def _maps(inputs: Mapping[str, object], key: str) -> Iterator[Mapping[str, object]]:
    """The objects of a list of inputs."""
    return map(as_map, list_of(inputs.get(key)))


def read_variables(envs: Envs, unknown: list[str]) -> dict[str, str]:
    """The variables, with `${NAME}` for a value that is unknown or no text."""
    pairs = [*(envs.items() if isinstance(envs, Mapping) else map(_pair, envs))]
    if any(value is None and not name for name, value in pairs):
        unknown.append("variables")
    return {
        name: value if isinstance(value, str) else f"${{{name}}}"
        for name, value in pairs
        if name or value is not None
    }


def _pair(text: str | None) -> tuple[str, str | None]:
    return text.partition("=")[::2] if isinstance(text, str) else ("", None)


def read_ports(ports: Inputs, unknown: list[str]) -> Iterator[PublishedPort]:
    """Published ports: maps with `internal`, `external`, `ip` and `protocol`."""
    for port in ports:
        internal = _whole(port.get("internal")) if isinstance(port, Mapping) else None
        if not isinstance(port, Mapping) or internal is None:
            unknown.append("ports")
            continue
        external = _whole(port.get("external", 0))
        if external is None:
            unknown.append("ports")
        filled_in = port.get(_FILLED_IN)
        has_default_ip = isinstance(filled_in, (list, tuple)) and "ip" in filled_in
        yield PublishedPort(
            internal,
            external or None,  # 0: Docker chooses one
            "" if has_default_ip else str(port.get("ip") or ""),
            str(port.get("protocol") or "tcp"),
        )


def read_networks(networks: Inputs, unknown: list[str]) -> Iterator[JoinedNetwork]:
    """Networks: maps with `name`, `aliases` and `ipv4Address`."""
    for network in networks:
        if not isinstance(network, Mapping) or network.get("name") is None:
            unknown.append("a network")
            continue
        for key in ("aliases", "ipv4Address"):
            if key in network and network[key] is None:
                unknown.append(f"{key} on network {network['name']}")
        aliases = list_of(network.get("aliases"))
        if None in aliases:
            unknown.append(f"aliases on network {network['name']}")
        yield JoinedNetwork(
            str(network["name"]),
            tuple(str(alias) for alias in aliases if alias is not None),
            str(network.get("ipv4Address") or ""),
        )


def _whole(value: object) -> int | None:
    """The number; None if it is unknown or the provider refuses it."""
    try:
        return int(str(value).removesuffix(".0"))  # Pulumi passes numbers as floats
    except ValueError:
        return None


def built_names(props: Mapping[str, object]) -> Iterator[str]:
    """The names of a built image, in the properties of one of `BUILT_IMAGES`."""
    tags = props.get("tags")
    name_properties = [props.get(key) for key in ("imageName", "name", "tag")]
    for name in (*name_properties, *(tags if isinstance(tags, (list, tuple)) else ())):
        if isinstance(name, str) and name:
            yield name


def is_one_of(image: str, names: Iterable[str]) -> bool:
    """Whether ``image`` is one of ``names``; no tag is `latest`, a digest fits any tag."""
    repository, tag = repository_of(image), tag_of(image) or "latest"
    return any(
        repository_of(name) == repository and ("@" in image or (tag_of(name) or "latest") == tag)
        for name in names
    )


def in_stack(service: Service, urn: str, stack: RegisteredStack) -> Service:
    """``service`` with the image name of a resource of ``stack`` in place of an id.

    Networks that the stack does not create may have further names.
    """
    holder = stack.get(urn)
    sources = holder.depends.get("image", ()) if holder is not None else ()
    images = [resource for resource in map(stack.get, sources) if resource is not None]
    container = service.container
    if is_unnamed(container.image) and IMAGE_NOTE not in container.env:
        names = [image.text("name") for image in images if image.type == REMOTE_IMAGE]
        container = replace(container, image=next(filter(None, names), container.image))
    networks_by_name = {network.text("name"): network.props for network in stack.all(NETWORK)}
    networks = tuple(
        _of_resource(network, networks_by_name.get(network.name, {}))
        for network in container.networks
    )
    is_open = any(network.name not in networks_by_name for network in container.networks)
    built = [name for image in stack.all(*BUILT_IMAGES) for name in built_names(image.props)]
    return replace(
        service,
        container=replace(container, open_networks=is_open, networks=networks),
        is_built=any(image.type in BUILT_IMAGES for image in images)
        or is_one_of(container.image, built),
    )


def _of_resource(network: JoinedNetwork, props: Mapping[str, object]) -> JoinedNetwork:
    """``network`` with the properties of the resource that creates it."""
    pools = [pool for pool in list_of(props.get("ipamConfigs")) if isinstance(pool, Mapping)]
    return replace(
        network,
        internal=props.get("internal") is True,
        is_routed=is_routed_network(
            props.get("driver", "bridge") or "unknown", props.get("options")
        ),
        subnets=tuple(str(pool.get("subnet")) for pool in pools),
        gateways=tuple(str(pool.get("gateway")) for pool in pools),
    )
