"""Running nodes whose certificates have expired: a restarted node cannot connect to them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from earshot.certificates import authority
from earshot.listeners.listed import numbered
from earshot.transition.refusal import STOP_FIRST
from earshot_pulumi.node_links import Links


def read_text(path: str) -> str:
    """The text of a file of this machine. Raises OSError or ValueError."""
    return Path(path).read_text()


Running = tuple[int, Mapping[str, str], Callable[[str], str]]
"""The id of a running node, its Kafka settings, and a function that reads its files (see
`end_of`)."""


def of_running(nodes: Iterable[Running]) -> dict[int, datetime]:
    """The ends of those certificates that ``nodes`` show to other nodes and that have expired, by
    node id."""
    return expired(
        {
            id: end_of(values.get("ssl.keystore.location", ""), read)
            for id, values, read in nodes
            if Links.of_settings(values).show_certificates
        }
    )


def expired(ends: Mapping[int, datetime | None]) -> dict[int, datetime]:
    """Those of the ``ends`` of certificates that have passed, by node id. None is unknown."""
    now = datetime.now(UTC)
    return {id: end for id, end in sorted(ends.items()) if end and end <= now}


def problems(ends: Mapping[int, datetime], *, can_go_first: bool) -> Iterator[str]:
    """Why no node can be restarted while the nodes run whose certificates ended at ``ends``.

    A single one of them can be, if it ``can_go_first``.
    """
    if len(ends) > 1 or (ends and not can_go_first):
        yield (
            f"the certificates of {numbered('node', sorted(ends))} expired (the first on "
            f"{min(ends.values()):%Y-%m-%d %H:%M} UTC): a restarted node could not connect to "
            f"them, and would never get in sync. {STOP_FIRST[0].upper()}{STOP_FIRST[1:]}, then run "
            "the same command again"
        )


def end_of(path: str, read: Callable[[str], str] = read_text) -> datetime | None:
    """The end of the certificates in the file at ``path``; None if it is unknown.

    ``read`` returns the text of a file, or raises OSError or ValueError.
    """
    with suppress(OSError, ValueError):
        return authority.ends(read(path))
    return None
