"""Whether brokers in containers serve clients, listener by listener, with a real login."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from docker import DockerClient
from docker.errors import DockerException

from earshot.engine import root_cause
from earshot.errors import EarshotError
from earshot_pulumi.docker import kafka_protocol
from earshot_pulumi.docker.container_address import ContainerAddress, Engines, runs
from earshot_pulumi.docker.kafka_protocol import InnerListener, NoAnswer, NotEnabled, Refused

GiveAgain = Callable[[int], None]
"""Gives the users of the cluster their passwords again, which a broker with that id has lost."""


class ClientListeners:
    """Whether brokers serve clients, listener by listener. One that does is not asked again."""

    def __init__(
        self,
        engines: Engines,
        asked: Sequence[ContainerAddress],
        progress: Callable[[str], None],
        give_again: GiveAgain | None,
    ) -> None:
        """``asked`` are the brokers to compare with, ``give_again`` is as in `wait_for`."""
        self._engines, self._asked = engines, asked
        self._progress, self._give_again = progress, give_again
        self._served: set[tuple[int, str]] = set()
        self._given: set[int] = set()

    def problem(self, address: ContainerAddress, id: str) -> str | None:
        """Why a client of the broker in the container ``id`` is not served, or None."""
        for listener in address.clients:
            if (address.node_id, listener.name) in self._served:
                continue
            if reason := self._problem(address, id, listener):
                return f"{listener.name}: {reason}"
            self._served.add((address.node_id, listener.name))
        return None

    def _problem(self, address: ContainerAddress, id: str, listener: InnerListener) -> str | None:
        client = self._engines.of(address)
        try:
            if listener.answers:
                kafka_protocol.metadata(client, id, listener)
            elif listener.keys is not None:
                kafka_protocol.log_in(client, id, listener)
            else:
                return accepts(client, id, listener)
        except Refused as reason:
            known = self._is_known_elsewhere(address, listener)
            if known is None:
                return f"refuses a user, and another broker gives no answer ({reason})"
            if not known:
                return None  # users may be made by the end of this update
            if self._give_again is not None and address.node_id not in self._given:
                self._given.add(address.node_id)
                self._progress(
                    f"{address.name} does not know its users any more: they get their passwords "
                    "again"
                )
                self._give_again(address.node_id)
            return f"refuses a user that other brokers accept ({reason})"
        except NotEnabled:
            return None
        except NoAnswer as reason:
            return short(str(reason))
        return None

    def _is_known_elsewhere(
        self, address: ContainerAddress, listener: InnerListener
    ) -> bool | None:
        """Whether another broker accepts the login; None where one that runs gives no answer."""
        known: bool | None = False
        for other in self._asked:
            for same in other.clients:
                if other.node_id == address.node_id or same.name != listener.name:
                    continue
                try:
                    kafka_protocol.log_in(self._engines.of(other), other.name, same)
                except (Refused, NotEnabled):
                    continue
                except (NoAnswer, EarshotError):
                    known = None if runs(self._engines, other) else known
                else:
                    return True
        return known


def accepts(client: DockerClient, id: str, listener: InnerListener) -> str | None:
    """Why the health check of ``listener`` fails, or None."""
    kind, *command = listener.health()
    assert kind == "CMD"
    try:
        code, output = client.containers.get(id).exec_run(command)
    except (DockerException, OSError) as reason:
        return short(root_cause(reason))
    return None if code == 0 else short(output.decode(errors="replace"))


def short(text: str) -> str:
    """``text`` in one line of at most 80 characters."""
    words = " ".join(text.split())
    if "Connection refused" in words:
        return "not listening yet"
    return words if len(words) <= 80 else f"{words[:77]}..."
