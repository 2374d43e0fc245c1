"""The output `client_properties`: how each user connects to each listener, and no secret.

A state is encrypted by a passphrase that may be the well-known one, so passwords and
keys never enter it: the output names the files that hold them.
"""

from functools import partial
from pathlib import Path
from typing import Any

import pulumi

from earshot.certificates.client import public_properties
from earshot.certificates.store import numbered
from earshot.config.cluster import ClusterSpec
from earshot.config.security import SecuritySpec
from earshot.listeners.model import SecurityPlan
from earshot.listeners.security import FOLDER, VALIDATOR_FILE, trusted_by
from earshot.project import Project
from earshot.validation.contract import Contract
from earshot_pulumi.outputs import applied

OUTPUT = "client_properties"


def announce_clients(
    spec: ClusterSpec,
    security: SecurityPlan | None,
    contract: Contract | pulumi.Output[Contract],
    root: Path,
    expires: pulumi.Output[str] | None,
) -> Path | None:
    """The file with which the validator comes in to a secured stack, whose outputs are exported.

    ``root`` is the folder of the stack's cluster, ``expires`` when its first certificate ends.
    Paths in the output start at the project's folder, so that all checkouts say the same.
    """
    if spec.security is None or security is None:
        return None
    pulumi.export("certificates_expire", expires)
    listed = partial(_by_user, spec, spec.security)
    own, folder = Project.find().root, root / FOLDER
    if folder.is_relative_to(own):
        folder = folder.relative_to(own)
    trusted = trusted_by(security)
    pulumi.export(OUTPUT, applied(contract, lambda it: listed(it, folder, trusted)))
    return root / FOLDER / VALIDATOR_FILE


def _by_user(
    cluster: ClusterSpec, spec: SecuritySpec, contract: Contract, folder: Path, trusted: str
) -> dict[str, Any]:
    """By user and listener, properties, and where the password lies if one is asked for."""
    found: dict[str, Any] = {}
    for user in spec.user_names:
        password = numbered(f"{user}.password", spec.password_numbers.get(user, 1))
        found[user] = {
            item.name: {
                "properties": public_properties(
                    folder,
                    trusted,
                    user,
                    cluster.mechanism(item.name, spec),
                    item.protocol,
                    item.bootstrap,
                    certified=cluster.asks_for_certificates(item.name),
                )
            }
            | ({"password_file": str(folder / password)} if item.protocol.sasl else {})
            for item in contract.listeners
            if item.protocol.tls
        }
    return found
