"""Whether a broker of this machine serves clients, listener by listener, with a real login."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from earshot.listeners.properties import read_properties
from earshot.listeners.security import FOLDER, own_access
from earshot.users.access import UNKNOWN_TO_BROKER, login_failure
from earshot.validation.client import Failure
from earshot_pulumi.local.access import of_clients
from earshot_pulumi.local.changes import started_with
from earshot_pulumi.local.quorum import node_directory
from earshot_pulumi.local.record import running

_NOT_SERVING = ("refused", "timeout", "disconnected", "unreachable", "unresolvable")
"""Failures of a listener whose credentials are not earshot's; with any other one, it answers."""
_BEFORE_USERS = ("mechanism", UNKNOWN_TO_BROKER)
"""Failures that leave a secured broker ready: this update may make the users at its end."""


class ClientListeners:
    """The listeners of one broker beside the one between brokers."""

    def __init__(
        self,
        root: Path,
        id: int,
        bootstrap: str,
        client: Mapping[str, str],
        progress: Callable[[str], None],
    ) -> None:
        """``bootstrap`` is where the other brokers of the cluster under ``root`` reach it."""
        self._root, self._id, self._bootstrap = root, id, bootstrap
        self._client, self._progress = client, progress
        self._values = _started_with(root, id)
        self._folder = root / FOLDER
        self._waiting = of_clients(self._values, client, self._folder)
        self._secured = bool(own_access(self._values))
        self._given_again = False

    def problem(self) -> str:
        """Why a client is not served; empty where all are. One that was is not asked again.

        If another broker accepts the login that this one refuses, this broker has lost its users
        (KAFKA-20774), and they get their passwords again.
        """
        for name, settings in [*self._waiting.items()]:
            failure = login_failure(settings)
            if failure is not None and (reason := self._problem(name, failure)):
                return f"{name} at {settings['bootstrap.servers']}: {reason}"
            del self._waiting[name]
        return ""

    def _problem(self, name: str, failure: Failure) -> str:
        if not self._secured:
            return failure.text if failure.error in _NOT_SERVING else ""
        known = failure.error == UNKNOWN_TO_BROKER and self._is_known_elsewhere(name)
        if known is None:
            return f"refuses a user, and another broker gives no answer ({failure.text})"
        if known:
            if not self._given_again:
                self._give_again()
            return f"refuses a user that other brokers accept ({failure.text})"
        return "" if failure.error in _BEFORE_USERS else failure.text

    def _is_known_elsewhere(self, name: str) -> bool | None:
        """Whether another broker accepts the login; None where one that runs gives no answer."""
        known: bool | None = False
        for settings in self._elsewhere(name):
            failure = login_failure(settings)
            if failure is None:
                return True
            known = None if failure.error in _NOT_SERVING else known
        return known

    def _elsewhere(self, name: str) -> Iterator[Mapping[str, Any]]:
        """The way into listener ``name`` of each other broker that runs."""
        for directory in sorted(self._root.glob("node-*")):
            id = int(directory.name.removeprefix("node-"))
            if id != self._id and running(directory) is not None:
                others = of_clients(_started_with(self._root, id), self._client, self._folder)
                if name in others:
                    yield others[name]

    def _give_again(self) -> None:
        from earshot.certificates.store import Store
        from earshot_pulumi.local.users import give_again  # slow to import

        self._progress(
            f"broker {self._id} does not know its users any more: they get their passwords again"
        )
        give_again(Store(self._folder), self._bootstrap, self._values)
        self._given_again = True


def _started_with(root: Path, id: int) -> Mapping[str, str]:
    return read_properties(started_with(node_directory(root, id))).values
