"""Whether a broker in a container serves clients; see `earshot_pulumi.client_listeners`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from docker import DockerClient
from docker.errors import DockerException

from earshot.engine import root_cause
from earshot.errors import EarshotError
from earshot_pulumi.client_listeners import ClientListeners, RefusedUser
from earshot_pulumi.docker import kafka_protocol
from earshot_pulumi.docker.container_address import ContainerAddress, Engines, runs
from earshot_pulumi.docker.kafka_protocol import InnerListener, NoAnswer, NotEnabled, Refused

GiveAgain = Callable[[int], None]
"""Gives the users of the cluster their passwords again, which a broker with that id has lost."""


class DockerClientListeners(ClientListeners):
    """The listeners of one broker in a container, asked from inside containers."""

    def __init__(
        self,
        engines: Engines,
        address: ContainerAddress,
        id: str,
        asked: Sequence[ContainerAddress],
        progress: Callable[[str], None],
        give_again: GiveAgain | None,
    ) -> None:
        """``id`` is the container's; ``asked`` are the brokers to compare with."""
        self._engines, self._address, self._id, self._others = engines, address, id, asked
        self._listeners = {it.name: it for it in address.clients}
        self._give = give_again
        super().__init__(address.name, self._listeners, progress)

    def asked(self, name: str) -> str:
        client, listener = self._engines.of(self._address), self._listeners[name]
        try:
            if listener.answers:
                kafka_protocol.metadata(client, self._id, listener)
            elif listener.keys is not None:
                kafka_protocol.log_in(client, self._id, listener)
            else:
                return accepts(client, self._id, listener) or ""
        except Refused as reason:
            raise RefusedUser(str(reason)) from None
        except NotEnabled:
            return ""
        except NoAnswer as reason:
            return short(str(reason))
        return ""

    def elsewhere(self, name: str) -> Iterator[bool | None]:
        for other in self._others:
            if other.node_id != self._address.node_id:
                for same in (it for it in other.clients if it.name == name):
                    yield self._accepts(other, same)

    def _accepts(self, other: ContainerAddress, listener: InnerListener) -> bool | None:
        try:
            kafka_protocol.log_in(self._engines.of(other), other.name, listener)
        except (Refused, NotEnabled):
            return False
        except (NoAnswer, EarshotError):
            return None if runs(self._engines, other) else False
        return True

    def give_again(self) -> None:
        if self._give is not None:
            super().give_again()
            self._give(self._address.node_id)


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
