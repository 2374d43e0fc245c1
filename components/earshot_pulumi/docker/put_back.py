"""Making a container again as it was, where its node did not come up after a change.

Pulumi's engine removes a container before it makes the next one. So what the old one was made with
is kept in the stack's folder until the new one serves; it has the secrets of its environment, and
only this user may read it.
"""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from docker.errors import DockerException, NotFound

from earshot import cache
from earshot.engine import root_cause
from earshot.errors import EarshotError
from earshot_pulumi.docker import labels
from earshot_pulumi.docker.container_address import ContainerAddress, Engines, is_up
from earshot_pulumi.docker.in_turn import GRACE, NO_QUORUM_GRACE
from earshot_pulumi.driver import as_it_was
from earshot_pulumi.writing import writing

FOLDER: Final = "containers"
"""Below the stack's folder."""
ASIDE: Final = "-failed"
"""After the name of a container that did not come up, once the one before it is back."""
_DEFAULT_NETWORK: Final = "bridge"

Definition = dict[str, Any]
"""Of a container: `Id`, `Config`, `HostConfig`, and `Networks` with its aliases by their name."""


def keep(state: Path, found: Mapping[str, Any]) -> None:
    """Keep what the inspected container ``found`` was made with, in ``state``, its stack's folder.

    One that the engine has had to start again does not take the place of one that served. Raises
    EarshotError where that cannot be written.
    """
    path = _path(state, name_of(found))
    if found["RestartCount"] and path.exists():
        return
    networks = {
        name: [it for it in network.get("Aliases") or () if it != found["Id"][:12]]
        for name, network in found["NetworkSettings"]["Networks"].items()
    }
    kept = {key: found[key] for key in ("Id", "Config", "HostConfig")} | {"Networks": networks}
    with writing(f"container {name_of(found)}", path):
        cache.write(path, json.dumps(kept), mode=0o600)


def kept(state: Path, name: str, but: str) -> Definition | None:
    """What the container ``name`` was made with before it got the id ``but``; None: not known."""
    try:
        found: Definition = json.loads(_path(state, name).read_bytes())
    except (OSError, ValueError):
        return None
    whole = isinstance(found, dict) and found.keys() >= {"Id", "Config", "HostConfig", "Networks"}
    return found if whole and found["Id"] != but else None


def kept_texts(state: Path) -> Iterator[str]:
    """The environment of every container that may be made again, a text for each variable."""
    for path in sorted((state / FOLDER).glob("*.json")):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            yield from json.loads(path.read_bytes())["Config"]["Env"] or ()


def forget(state: Path, name: str) -> None:
    """Keep nothing of the container ``name``: it serves as it is."""
    with contextlib.suppress(OSError):
        _path(state, name).unlink(missing_ok=True)


def put_back(
    engines: Engines,
    address: ContainerAddress,
    failed: str,
    definition: Definition,
    serves: Callable[[str], None],
) -> str:
    """How the node is left, after an attempt to make its container again by ``definition``.

    ``failed`` is the id of the one that did not come up, which stays under another name, for its
    log. ``serves`` returns once the container with the id that it is given serves, or raises
    EarshotError.
    """

    def start() -> str:
        try:
            _set_aside(engines, address, failed)
            return _made(engines, address, definition)
        except (DockerException, OSError) as reason:
            raise EarshotError(f"container {address.name}", observed=root_cause(reason)) from None

    aside = f". What did not come up is container {address.name}{ASIDE}"
    return as_it_was(start, serves, "made", aside)


def take_back(engines: Engines, address: ContainerAddress, found: Mapping[str, Any]) -> None:
    """Give the inspected container ``found`` its place again, where it was set aside."""
    if name_of(found) == address.name:
        return
    api = engines.of(address).api
    remove_stand_in(engines, address)
    api.rename(found["Id"], address.name)


def remove_stand_in(engines: Engines, address: ContainerAddress) -> None:
    """Remove the container that was made again as it was; Pulumi's state knows nothing of it."""
    api = engines.of(address).api
    with contextlib.suppress(NotFound):
        found = api.inspect_container(address.name)
        if labels.PUT_BACK in (found["Config"]["Labels"] or {}):
            if is_up(found):
                api.stop(found["Id"], timeout=GRACE)
            api.remove_container(found["Id"], force=True, v=True)


def name_of(found: Mapping[str, Any]) -> str:
    """The name of an inspected container."""
    return str(found["Name"]).lstrip("/")


def _set_aside(engines: Engines, address: ContainerAddress, failed: str) -> None:
    api, aside = engines.of(address).api, address.name + ASIDE
    with contextlib.suppress(NotFound):
        # of an earlier attempt
        found = api.inspect_container(aside)
        if found["Id"] != failed and labels.NODE in (found["Config"]["Labels"] or {}):
            api.remove_container(found["Id"], force=True, v=True)
    with contextlib.suppress(NotFound):
        api.stop(failed, timeout=NO_QUORUM_GRACE)
        api.rename(failed, aside)


def _made(engines: Engines, address: ContainerAddress, definition: Definition) -> str:
    """The id of a container by ``definition``, started."""
    api = engines.of(address).api
    config = dict(definition["Config"])
    config["Labels"] = {**(config.get("Labels") or {}), labels.PUT_BACK: definition["Id"][:12]}
    made = api.create_container_from_config(
        {**config, "HostConfig": definition["HostConfig"]}, name=address.name
    )
    id, networks = str(made["Id"]), definition["Networks"]
    if definition["HostConfig"]["NetworkMode"] == _DEFAULT_NETWORK != next(iter(networks), ""):
        api.disconnect_container_from_network(id, _DEFAULT_NETWORK)
    for name, aliases in networks.items():
        if name != _DEFAULT_NETWORK:
            api.connect_container_to_network(id, name, aliases=aliases)
    api.start(id)
    return id


def _path(state: Path, name: str) -> Path:
    return state / FOLDER / f"{name}.json"
