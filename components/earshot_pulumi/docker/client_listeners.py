"""Whether a broker in a container serves clients; see `earshot_pulumi.client_listeners`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from earshot.errors import EarshotError
from earshot.validation.client import Failure
from earshot.validation.wire import ExchangeError
from earshot_pulumi.client_listeners import ClientListeners
from earshot_pulumi.docker import inner_listener
from earshot_pulumi.docker.container_address import ContainerAddress, Engines, runs
from earshot_pulumi.docker.inner_listener import InnerListener

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

    def asked(self, name: str) -> Failure | None:
        return failure(self._engines, self._address, self._id, self._listeners[name])

    def elsewhere(self, name: str) -> Iterator[Failure | None]:
        for other in self._others:
            if other.node_id != self._address.node_id and runs(self._engines, other):
                for same in (it for it in other.clients if it.name == name):
                    yield failure(self._engines, other, other.name, same)

    def give_again(self) -> None:
        if self._give is not None:
            super().give_again()
            self._give(self._address.node_id)


def failure(
    engines: Engines, address: ContainerAddress, container: str, listener: InnerListener
) -> Failure | None:
    """Why ``listener`` of the broker in ``container`` does not serve clients; None if it does."""
    try:
        client = engines.of(address)
        if listener.answers:
            inner_listener.state(client, container, listener)
        elif listener.keys is not None:
            inner_listener.log_in(client, container, listener)
        else:
            inner_listener.check_health(client, container, listener)
    except ExchangeError as error:
        return error.failure
    except EarshotError as error:
        return Failure("engine", error.line)
    return None
