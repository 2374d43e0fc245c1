"""Waits until containers run, are on their network, answer and are in sync.

All requests run inside the containers, through the engine, because this machine may reach none of
their ports. Listeners with TLS or SASL do not answer without keys. If the stack has no keys, a node
with no other listener is ready when it accepts connections.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from earshot.engine.connection import MAX_SHOWN, DockerObject, root_cause
from earshot.engine.failures import FAILURES
from earshot.errors import EarshotError
from earshot.jvm.broker_log import cause_of_end, without_frames
from earshot.listeners.listed import clipped
from earshot.validation.cluster_state import CAUGHT_UP_MS, Quorum
from earshot.validation.failure import Failure
from earshot.validation.wire import ExchangeError
from earshot_pulumi import driver
from earshot_pulumi.docker import inner_listener
from earshot_pulumi.docker.container_address import (
    ContainerAddress,
    Engines,
    check_engine,
    failure,
    inspected,
    is_up,
    runs,
)
from earshot_pulumi.docker.put_back import restore_name
from earshot_pulumi.driver import DisturbedNode, ListeningNode, NodeDriver, Say, short

ResetPasswords = Callable[[int], None]
"""Sets the passwords of the cluster's users again. The argument is the broker that lost them."""
DEADLINE: Final = 180.0
"""Seconds to wait. A single voter of three gives up after 67 s, so a longer wait is useless."""
RESTARTS: Final = 2
"""Maximum number of restarts during one wait. More restarts are a crash loop."""
LINES: Final = 12
SETTLE: Final = 0.1
"""Seconds within which an engine logs a container's last line after its end."""
_LOG_LINES: Final = 300
_AGAIN: Final = (
    "revert the change in the stack's file, or fix the cause in the log, then run the same "
    "command again"
)
_DISK_FULL_TEXTS: Final = ("No space left on device", "unsafe memory access")
"""The second is Java's message for a mapped file (Kafka's indexes) on a full disk."""
_FREE_DISK: Final = (
    "the disk of its data seems to be full; free space there, then run the same command again"
)


def repair(engines: Engines, address: ContainerAddress, id: str) -> DockerObject:
    """Connects, unpauses, starts and renames a container if necessary. Returns its description.

    The official provider does not repair a killed, paused or disconnected container unless a
    refresh was run. Raises EarshotError.
    """
    container = inspected(engines, address, id)
    api = engines.of(address).api
    try:
        restore_name(engines, address, container)
        if address.network not in container["NetworkSettings"]["Networks"]:
            api.connect_container_to_network(id, address.network, aliases=[address.name])
        if container["State"]["Paused"]:
            api.unpause(id)
        if not is_up(container):
            api.start(id)
    except FAILURES as reason:
        raise EarshotError(
            str(address),
            observed=f"cannot be started: {root_cause(reason)}",
            remedy="fix the cause in the engine's message, then run the same command again",
        ) from None
    return inspected(engines, address, id)


def is_intact(container: DockerObject, address: ContainerAddress) -> bool:
    """True if an inspected container needs no repair."""
    state = container["State"]
    return (
        is_up(container)
        and not state["Paused"]
        and address.network in container["NetworkSettings"]["Networks"]
    )


def majority_runs(engines: Engines, voters: Sequence[ContainerAddress]) -> bool:
    """True if enough voters run for a quorum."""
    return sum(runs(engines, address) for address in voters) * 2 > len(voters)


@dataclass
class RunningCluster:
    """The containers of a cluster, and how to wait for them."""

    engines: Engines
    brokers: Sequence[ContainerAddress]
    """Brokers that report the quorum."""
    cluster_id: str
    whole: bool = False
    """True: partitions without a leader must be in sync, too."""
    say: Say = lambda _: None
    """Gets the progress of a wait."""
    deadline: float = DEADLINE
    reset_passwords: ResetPasswords | None = None

    def wait_for(self, nodes: Sequence[tuple[ContainerAddress, str]]) -> None:
        """Returns when each of ``nodes`` (address, container id) answers and is in sync.

        A broker must also serve clients through each of its listeners, with a login where required.
        If it refuses a login that another broker accepts, it has lost its users (KAFKA-20774), and
        `reset_passwords` sets their passwords again.

        A broker of another cluster is not ready. Raises EarshotError with the last lines of a
        container's log if it ended, restarts in a loop, or is not ready in time.
        """
        drivers = [ContainerDriver(self, address, id) for address, id in nodes]
        driver.wait_for(drivers, self.deadline, self.say, _AGAIN, self._begin_round)

    def _begin_round(self, waiting: Sequence[NodeDriver]) -> None:
        names = [node.name for node in waiting]
        self.brokers = sorted(self.brokers, key=lambda broker: broker.name not in names)
        # requested at most once in each round
        self.quorum = functools.cache(self._request_quorum)

    def _request_quorum(self) -> Quorum | None:
        """The quorum by the first broker that answers; None if there is no broker to ask.

        Raises ExchangeError if none answers.
        """
        last_error: ExchangeError | None = None
        for broker in self.brokers:
            try:
                client = self.engines.of(broker)
                return inner_listener.quorum(client, broker.name, broker.endpoint)
            except ExchangeError as reason:
                last_error = reason
            except EarshotError as reason:
                last_error = ExchangeError("engine", reason.line)
        if last_error is not None:
            raise last_error
        return None


class ContainerDriver(ListeningNode):
    """A node in its container ``id``."""

    def __init__(self, cluster: RunningCluster, address: ContainerAddress, id: str) -> None:
        self._listeners = {listener.name: listener for listener in address.clients}
        super().__init__(address.name, self._listeners, cluster.say, str(address))
        self._cluster, self._engines = cluster, cluster.engines
        self._address, self._id = address, id
        self._restarts = inspected(cluster.engines, address, id)["RestartCount"]

    def lacks(self) -> str:
        try:
            return self._node_lacks() or self.unserved()
        except ExchangeError as reason:
            return short(reason.failure)

    def _node_lacks(self) -> str:
        """Why the node is not ready, apart from its listeners; empty if it is.

        Raises ExchangeError.
        """
        address, cluster = self._address, self._cluster
        client = cluster.engines.of(address)
        if not address.can_be_asked:
            inner_listener.check_health(client, self._id, address.endpoint)
            if address.broker:
                return ""
        else:
            state = inner_listener.state(client, self._id, address.endpoint)
            if state.cluster_id not in (cluster.cluster_id, ""):
                return (
                    f"answers as a broker of cluster {state.cluster_id}, not of "
                    f"{cluster.cluster_id}"
                )
            if address.node_id not in state.brokers:
                return "does not list itself among the brokers"
            if lagging := state.lagging_partitions(address.node_id, only_led=not cluster.whole):
                return f"{len(lagging)} partition(s) not in sync"
        if not address.voter or (quorum := cluster.quorum()) is None:
            return ""
        lag = quorum.lag(address.node_id)
        return "" if lag is not None and lag <= CAUGHT_UP_MS else "behind the quorum's leader"

    def login_failure(self, listener: str) -> Failure | None:
        return failure(self._engines, self._address, self._id, self._listeners[listener])

    def other_logins(self, listener: str) -> Iterator[Failure | None]:
        for broker in self._cluster.brokers:
            if broker.node_id != self._address.node_id and runs(self._engines, broker):
                for inner in (inner for inner in broker.clients if inner.name == listener):
                    yield failure(self._engines, broker, broker.name, inner)

    def reset_passwords(self) -> None:
        if self._cluster.reset_passwords is not None:
            self._cluster.reset_passwords(self._address.node_id)

    def last_lines(self, count: int) -> str:
        return _last_lines(log_of(self._engines, self._address, self._id), count)

    def check_alive(self) -> None:
        address, container = self._address, inspected(self._engines, self._address, self._id)
        state = container["State"]
        since: str | None = None
        until: str | None = None
        error_class = EarshotError
        if state["Status"] == "removing":
            return  # the next inspection reports that it was removed
        if not is_up(container):
            check_engine(address)
            reason, since = how_ended(state), state["StartedAt"]
            # the engine restarts a container unless a user stopped it
            error_class = EarshotError if state["Error"] else DisturbedNode
        elif state["Paused"]:
            reason, error_class = "was paused by hand", DisturbedNode
        elif address.network not in container["NetworkSettings"]["Networks"]:
            reason, error_class = (
                f"was disconnected from its network {address.network}",
                DisturbedNode,
            )
        elif container["RestartCount"] - self._restarts > RESTARTS:
            reason, until = "restarts in a loop", state["FinishedAt"]
            if state["Restarting"]:  # a running container has no exit status
                reason += f", the last time with status {state['ExitCode']}"
        else:
            return
        log = log_of(self._engines, address, self._id, since, until)
        last_lines = _last_lines(log)
        if cause := cause_of_end(log) if since or until else "":
            cause = clipped(cause, MAX_SHOWN)
            observed = f"{reason}: {cause}\n  (`docker logs {self._id[:12]}` has the whole log)"
        else:
            observed = f"{reason}; the last lines of its log:\n{last_lines}"
        is_full = any(text in last_lines for text in _DISK_FULL_TEXTS)
        raise error_class(self.place, observed=observed, remedy=_FREE_DISK if is_full else _AGAIN)


def how_ended(state: DockerObject) -> str:
    """The end of a stopped container as text, from its inspected ``state``."""
    details = ["out of memory"] if state.get("OOMKilled") else []
    details += [clipped(state["Error"], MAX_SHOWN)] if state["Error"] else []
    return f"ended with status {state['ExitCode']}" + "".join(f" ({detail})" for detail in details)


def log_of(
    engines: Engines,
    address: ContainerAddress,
    id: str,
    since: str | None = None,
    until: str | None = None,
) -> str:
    """The end of a container's log, empty if its engine fails.

    ``since`` and ``until`` are the start and end of the run to show, in the engine's format.
    """
    try:
        log = engines.of(address).api.logs(
            id,
            tail=_LOG_LINES,
            since=since and datetime.fromisoformat(since).timestamp(),
            until=until and datetime.fromisoformat(until).timestamp() + SETTLE,
        )
    except (*FAILURES, EarshotError):
        return ""
    return str(log.decode(errors="replace"))


def _last_lines(log: str, lines: int = LINES) -> str:
    """The last ``lines`` of ``log`` without stack frames, indented."""
    last_lines = without_frames(log)[-lines:]
    return (
        "\n".join(f"    {clipped(line, MAX_SHOWN)}" for line in last_lines) or "    (it wrote none)"
    )
