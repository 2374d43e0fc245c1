"""Waiting for containers: running, on their network, answering, in sync.

Everything is asked through the engine, from inside the containers: this machine may reach none of
their ports. Listeners with TLS or SASL can be asked nothing without keys; a node that has no other
counts as ready when it accepts connections.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

from components.docker import inquiry
from components.docker.inquiry import CAUGHT_UP_MS, NoAnswer
from components.docker.place import Engines, Place, check_engine, inspected, is_up
from earshot.engine import said
from earshot.errors import EarshotError

DEADLINE: Final = 180.0
"""Seconds; a lone voter of three gives up after 67 s, so nothing sensible takes longer."""
POLL: Final = 0.5
SAY_SECONDS: Final = 5.0
RESTARTS: Final = 2
"""More than these during one wait are a loop."""
LINES: Final = 12
SETTLE: Final = 0.1
"""Seconds; an engine takes down a container's last line about when it ends."""
_SCANNED: Final = 300
_AGAIN: Final = "mend what the log names, then run the same command again"
_NO_ROOM: Final = ("No space left on device", "unsafe memory access")
"""The second is Java's word for a page of a mapped file (Kafka's indexes) that has no room."""
_MAKE_ROOM: Final = (
    "the disk that its data is on seems to be full; make room there, then run the same command "
    "again"
)


def mend(engines: Engines, place: Place, id: str) -> dict[str, Any]:
    """Sees to it that the container runs on its network, and says what the engine knows of it.

    A provider knows whether the container exists; a killed, paused or disconnected one it leaves
    alone unless a refresh has noticed. Raises EarshotError.
    """
    from docker.errors import DockerException

    found = inspected(engines, place, id)
    api = engines.of(place).api
    try:
        if place.network not in found["NetworkSettings"]["Networks"]:
            api.connect_container_to_network(id, place.network, aliases=[place.name])
        if found["State"]["Paused"]:
            api.unpause(id)
        if not is_up(found):
            api.start(id)
    except (DockerException, OSError) as reason:
        raise EarshotError(
            str(place),
            observed=f"cannot be started: {said(reason)}",
            remedy="mend what the engine names, then run the same command again",
        ) from None
    return inspected(engines, place, id)


def fits(found: dict[str, Any], place: Place) -> bool:
    """Whether there is nothing to mend."""
    state = found["State"]
    return (
        is_up(found)
        and not state["Paused"]
        and place.network in found["NetworkSettings"]["Networks"]
    )


def majority_runs(engines: Engines, voters: Sequence[Place]) -> bool:
    """Whether enough voters run for a quorum; a lone voter of three never answers."""
    return sum(_runs(engines, place) for place in voters) * 2 > len(voters)


def _runs(engines: Engines, place: Place) -> bool:
    try:
        return is_up(inspected(engines, place, place.name))
    except EarshotError:
        return False


def wait_for(
    engines: Engines,
    nodes: Sequence[tuple[Place, str]],
    tellers: Sequence[Place],
    whole: bool = False,
    deadline: float = DEADLINE,
    progress: Callable[[str], None] = lambda _: None,
) -> None:
    """Returns when each of ``nodes`` (with its container's id) answers and is in sync.

    ``tellers`` are brokers that know the quorum. With ``whole``, partitions without a leader are
    waited for too. Raises EarshotError with the last lines of a container's log where it died,
    restarts in a loop, or is not ready when ``deadline`` (s) has passed.
    """
    began = shown = time.monotonic()
    restarts = {id: inspected(engines, place, id)["RestartCount"] for place, id in nodes}
    waiting = dict(nodes)
    missing: dict[Place, str] = {}
    while True:
        before, missing = missing, {}
        everyone = time.monotonic() - shown > SAY_SECONDS
        for place, id in waiting.items():
            _check_alive(engines, place, id, restarts[id])
            if missing and place in before and not everyone:
                # one is enough to wait for, and asking takes from what starts in the containers
                missing[place] = before[place]
                continue
            reason = _hindrance(engines, place, id, tellers, whole)
            if reason is not None:
                missing[place] = reason
        waiting = {place: id for place, id in waiting.items() if place in missing}
        now = time.monotonic()
        if not waiting:
            return
        if now - began > deadline:
            raise _late(engines, waiting, missing, deadline)
        if now - shown > SAY_SECONDS:
            shown = now
            told = "; ".join(f"{place.name} ({reason})" for place, reason in missing.items())
            progress(f"waiting for {told}, {now - began:.0f} s")
        time.sleep(POLL)


def _hindrance(
    engines: Engines, place: Place, id: str, tellers: Sequence[Place], whole: bool
) -> str | None:
    """Why a node is not ready yet, or None."""
    client = engines.of(place)
    if not place.door.plaintext:
        return _health(engines, place, id)
    try:
        if place.broker:
            known = inquiry.metadata(client, id, place.door)
            if place.node_id not in known.brokers:
                return "does not count itself among the brokers"
            if behind := known.behind(place.node_id, led=not whole):
                return f"{len(behind)} partition(s) not in sync"
        elif (answer := _health(engines, place, id)) is not None:
            return answer
    except NoAnswer as reason:
        return _short(str(reason))
    return _quorum_hindrance(engines, place, tellers) if place.voter else None


def _quorum_hindrance(engines: Engines, place: Place, tellers: Sequence[Place]) -> str | None:
    reason: str | None = None
    for teller in sorted(tellers, key=lambda item: item.node_id != place.node_id):
        try:
            known = inquiry.quorum(engines.of(teller), teller.name, teller.door)
        except (NoAnswer, EarshotError) as error:
            reason = _short(str(error))
            continue
        lag = known.lag(place.node_id)
        return None if lag is not None and lag <= CAUGHT_UP_MS else "behind the quorum's leader"
    return reason


def _health(engines: Engines, place: Place, id: str) -> str | None:
    """What the container's own health check says against it."""
    from docker.errors import DockerException

    kind, *command = place.door.health()
    assert kind == "CMD"
    try:
        code, output = engines.of(place).containers.get(id).exec_run(command)
    except (DockerException, OSError) as reason:
        return _short(said(reason))
    return None if code == 0 else _short(output.decode(errors="replace"))


def _short(text: str) -> str:
    words = " ".join(text.split())
    if "Connection refused" in words:
        return "not listening yet"
    return words if len(words) <= 80 else f"{words[:77]}..."


def _check_alive(engines: Engines, place: Place, id: str, restarts: int) -> None:
    found = inspected(engines, place, id)
    state, until = found["State"], None
    if state["Status"] == "removing":
        return  # killed first, by whoever removes it; the next look finds it gone
    if not is_up(found):
        check_engine(place)
        reason = f"ended with status {state['ExitCode']}"
        if state["Error"]:
            reason += f" ({state['Error']})"
    elif state["Paused"]:
        reason = "was paused by somebody"
    elif place.network not in found["NetworkSettings"]["Networks"]:
        reason = f"was taken off its network {place.network}"
    elif found["RestartCount"] - restarts > RESTARTS:
        reason, until = "restarts in a loop", state["FinishedAt"]
        if state["Restarting"]:  # while it runs it has no status
            reason += f", the last time with status {state['ExitCode']}"
    else:
        return
    words = last_words(engines, place, id, until=until)
    raise EarshotError(
        str(place),
        observed=f"{reason}; the last lines of its log:\n{words}",
        remedy=_MAKE_ROOM if any(sign in words for sign in _NO_ROOM) else _AGAIN,
    )


def _late(
    engines: Engines, waiting: dict[Place, str], missing: dict[Place, str], deadline: float
) -> EarshotError:
    told = "".join(
        f"\n{place}: {missing[place]}; the last lines of its log:\n"
        + last_words(engines, place, id, 5)
        for place, id in list(waiting.items())[:3]
    )
    names = ", ".join(place.name for place in waiting)
    return EarshotError(names, observed=f"not in sync after {deadline:.0f} s{told}", remedy=_AGAIN)


def last_words(
    engines: Engines, place: Place, id: str, lines: int = LINES, until: str | None = None
) -> str:
    """The end of a container's log, without the frames of Java's stack traces.

    ``until`` is when it ended (as an engine tells time), where it has begun anew since.
    """
    from docker.errors import DockerException

    end = None if until is None else datetime.fromisoformat(until).timestamp() + SETTLE
    try:
        log = engines.of(place).api.logs(id, tail=_SCANNED, until=end)
        text = log.decode(errors="replace")
    except (DockerException, OSError, EarshotError):
        text = ""
    told = [
        line.rstrip()
        for line in text.splitlines()
        if line.strip() and not line.startswith(("\tat ", "\t... "))
    ]
    return "\n".join(f"    {line}" for line in told[-lines:]) or "    (it wrote none)"
