"""Puts back the former container of a node that did not come up after a change.

Pulumi's engine removes a container before it creates the next one. So the definition of the former
one is stored in the stack's folder until the new one serves. It contains the secrets of the
container's environment. Only this user may read it.
"""

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from docker.errors import NotFound

from earshot.engine.connection import DockerObject, root_cause
from earshot.engine.failures import FAILURES
from earshot.errors import EarshotError
from earshot.files import cache
from earshot_pulumi.docker import labels
from earshot_pulumi.docker.container_address import ContainerAddress, Engines, is_up
from earshot_pulumi.docker.rolling_restart import GRACE, NO_QUORUM_GRACE
from earshot_pulumi.driver import start_with_former_settings
from earshot_pulumi.file_access import writing
from earshot_pulumi.provider.kind import Properties

FOLDER: Final = "containers"
"""Folder of the definitions in the stack's folder."""
FAILED_SUFFIX: Final = "-failed"
"""Suffix of the name of a container that did not come up, after the former one was put back."""
_DEFAULT_NETWORK: Final = "bridge"

Definition = Properties
"""A container's `Id`, `Config` and `HostConfig`, and its aliases by network (`Networks`)."""


def keep(state: Path, name: str, container: DockerObject) -> None:
    """Save the definition of the inspected container ``name`` in ``state``, its stack's folder.

    The definition of a container that its engine has restarted does not replace the saved one: that
    container served. Raises EarshotError if the file cannot be written.
    """
    path = _path(state, name)  # the engine's own name of it may be any path
    if container["RestartCount"] and path.exists():
        return
    networks = {
        network_name: [
            alias for alias in network.get("Aliases") or () if alias != container["Id"][:12]
        ]
        for network_name, network in container["NetworkSettings"]["Networks"].items()
    }
    definition = {key: container[key] for key in ("Id", "Config", "HostConfig")} | {
        "Networks": networks
    }
    with writing(f"container {name}", path):
        cache.write(path, json.dumps(definition), mode=0o600)


def saved_definition(state: Path, name: str, except_id: str) -> Definition | None:
    """The saved definition of the container ``name``; None if there is none, or if it is of the
    container with the id ``except_id``."""
    try:
        definition: Definition = json.loads(_path(state, name).read_bytes())
    except (OSError, ValueError):
        return None
    is_complete = isinstance(definition, dict) and definition.keys() >= {
        "Id",
        "Config",
        "HostConfig",
        "Networks",
    }
    return definition if is_complete and definition["Id"] != except_id else None


def kept_texts(state: Path) -> Iterator[str]:
    """The variables (`NAME=value`) of every container with a saved definition."""
    for path in sorted((state / FOLDER).glob("*.json")):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            yield from json.loads(path.read_bytes())["Config"]["Env"] or ()


def forget(state: Path, name: str) -> None:
    """Delete the saved definition of the container ``name``, whose successor serves."""
    with contextlib.suppress(OSError):
        _path(state, name).unlink(missing_ok=True)


def put_back(
    engines: Engines,
    address: ContainerAddress,
    failed_id: str,
    definition: Definition,
    serves: Callable[[str], None],
) -> str:
    """Create and start a container by ``definition``. Returns the node's state as text.

    ``failed_id`` is the id of the container that did not come up. It is renamed, so that its log
    stays. ``serves`` takes the new container's id. It returns when that serves, or raises
    EarshotError.
    """

    def start() -> str:
        try:
            _set_aside(engines, address, failed_id)
            return _start(engines, address, definition)
        except FAILURES as reason:
            raise EarshotError(f"container {address.name}", observed=root_cause(reason)) from None

    addition = f". The one that did not come up is container {address.name}{FAILED_SUFFIX}"
    return start_with_former_settings(start, serves, "made", addition)


def restore_name(engines: Engines, address: ContainerAddress, container: DockerObject) -> None:
    """Give an inspected container its name again, if it was set aside."""
    if name_of(container) == address.name:
        return
    api = engines.of(address).api
    remove_substitute(engines, address)
    api.rename(container["Id"], address.name)


def remove_substitute(engines: Engines, address: ContainerAddress) -> None:
    """Remove the container that was put back, which is not in Pulumi's state."""
    api = engines.of(address).api
    with contextlib.suppress(NotFound):
        container = api.inspect_container(address.name)
        if labels.PUT_BACK in (container["Config"]["Labels"] or {}):
            if is_up(container):
                api.stop(container["Id"], timeout=GRACE)
            api.remove_container(container["Id"], force=True, v=True)


def name_of(container: DockerObject) -> str:
    """The name of an inspected container."""
    return str(container["Name"]).lstrip("/")


def _set_aside(engines: Engines, address: ContainerAddress, failed_id: str) -> None:
    api, new_name = engines.of(address).api, address.name + FAILED_SUFFIX
    with contextlib.suppress(NotFound):
        # an earlier attempt may have left one
        container = api.inspect_container(new_name)
        if container["Id"] != failed_id and labels.NODE in (container["Config"]["Labels"] or {}):
            api.remove_container(container["Id"], force=True, v=True)
    with contextlib.suppress(NotFound):
        api.stop(failed_id, timeout=NO_QUORUM_GRACE)
        api.rename(failed_id, new_name)


def _start(engines: Engines, address: ContainerAddress, definition: Definition) -> str:
    """Create and start a container by ``definition``; returns its id."""
    api = engines.of(address).api
    config = dict(definition["Config"])
    config["Labels"] = {**(config.get("Labels") or {}), labels.PUT_BACK: definition["Id"][:12]}
    config["HostConfig"] = definition["HostConfig"]
    container = api.create_container_from_config(config, name=address.name)
    id, networks = str(container["Id"]), definition["Networks"]
    if definition["HostConfig"]["NetworkMode"] == _DEFAULT_NETWORK != next(iter(networks), ""):
        api.disconnect_container_from_network(id, _DEFAULT_NETWORK)
    for name, aliases in networks.items():
        if name != _DEFAULT_NETWORK:
            api.connect_container_to_network(id, name, aliases=aliases)
    api.start(id)
    return id


def _path(state: Path, name: str) -> Path:
    return state / FOLDER / f"{name}.json"
