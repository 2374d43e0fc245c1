"""Whether a broker of this machine serves clients; see `earshot_pulumi.client_listeners`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from earshot.listeners.properties import read_properties
from earshot.listeners.security import FOLDER, own_access
from earshot.users.access import login_failure
from earshot.validation.client import Failure
from earshot_pulumi.client_listeners import ClientListeners
from earshot_pulumi.local.access import of_clients
from earshot_pulumi.local.changes import started_with
from earshot_pulumi.local.quorum import node_directory
from earshot_pulumi.local.record import running

_NOT_SERVING = ("refused", "timeout", "disconnected", "unreachable", "unresolvable")
"""Failures of a listener whose credentials are not earshot's; with any other one, it answers."""


class LocalClientListeners(ClientListeners):
    """The listeners of one broker of this machine, asked from this process."""

    def __init__(
        self,
        root: Path,
        id: int,
        bootstrap: str,
        client: Mapping[str, str],
        progress: Callable[[str], None],
    ) -> None:
        """``bootstrap`` is where the other brokers of the cluster under ``root`` reach it."""
        self._root, self._id, self._bootstrap, self._client = root, id, bootstrap, client
        self._values = _started_with(root, id)
        self._ways = of_clients(self._values, client, root / FOLDER)
        self._secured = bool(own_access(self._values))
        super().__init__(f"broker {id}", self._ways, progress)

    def shown(self, name: str) -> str:
        return f"{name} at {self._ways[name]['bootstrap.servers']}"

    def asked(self, name: str) -> Failure | None:
        failure = login_failure(self._ways[name])
        if failure is None or self._secured or failure.error in _NOT_SERVING:
            return failure
        return None

    def elsewhere(self, name: str) -> Iterator[Failure | None]:
        for directory in sorted(self._root.glob("node-*")):
            id = int(directory.name.removeprefix("node-"))
            if id != self._id and running(directory) is not None:
                values = _started_with(self._root, id)
                others = of_clients(values, self._client, self._root / FOLDER)
                if name in others:
                    yield login_failure(others[name])

    def give_again(self) -> None:
        from earshot.certificates.store import Store
        from earshot_pulumi.local.users import give_again  # slow to import

        super().give_again()
        give_again(Store(self._root / FOLDER), self._bootstrap, self._values)


def _started_with(root: Path, id: int) -> Mapping[str, str]:
    return read_properties(started_with(node_directory(root, id))).values
