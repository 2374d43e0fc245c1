"""Running nodes whose certificates have expired. A restarted node cannot connect to them."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from earshot.listeners.listed import numbered
from earshot.listeners.model import Node
from earshot.listeners.properties import NodeSettings
from earshot_pulumi.local import cluster_memory
from earshot_pulumi.local.changes import settings_of_running
from earshot_pulumi.refusals import STOP_FIRST
from earshot_pulumi.rolling import Links


def expired(root: Path) -> dict[int, datetime]:
    """The expiry of the certificate of each running node under ``root`` that has expired, by id."""
    now = datetime.now(UTC)
    expiries = {id: _expiry(settings) for id, settings in settings_of_running(root).items()}
    return {id: expiry for id, expiry in sorted(expiries.items()) if expiry and expiry <= now}


def problems(root: Path) -> Iterator[str]:
    """Why no node under ``root`` can be restarted while the others run.

    A single node whose certificate has expired can be, if it is the first.
    """
    expiries = expired(root)
    if len(expiries) > 1 or (expiries and cluster_memory.ended(root, except_id=min(expiries))):
        yield (
            f"the certificates of {numbered('node', sorted(expiries))} expired (the first on "
            f"{min(expiries.values()):%Y-%m-%d %H:%M} UTC): a restarted node could not connect to "
            f"them, and would never get in sync. {STOP_FIRST[0].upper()}{STOP_FIRST[1:]}, then run "
            "the same command again"
        )


def expired_first(root: Path, nodes: Sequence[Node]) -> list[Node]:
    """``nodes`` in the order of a change: those that have ended, those whose certificate has
    expired, the others."""
    expiries = expired(root)
    in_order = sorted(nodes, key=lambda node: node.id not in expiries)
    return cluster_memory.ended_first(root, in_order)


def _expiry(settings: NodeSettings) -> datetime | None:
    """The expiry of the certificate that a node shows to other nodes; None if unknown."""
    links = Links.of_settings(settings.values)
    protocols = (links.protocols.get(name, "") for name in (links.inter_broker, links.controller))
    if any("SSL" in protocol for protocol in protocols):
        from earshot.certificates.authority import ends  # slow to import

        with suppress(OSError, ValueError, KeyError):
            return ends(Path(settings.values["ssl.keystore.location"]).read_text())
    return None
