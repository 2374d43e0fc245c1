"""The output `client_properties`: how each user connects to each listener, and no secret.

A state is encrypted by a passphrase that may be the well-known one, so passwords and
keys never enter it: the output names the files that hold them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
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


@dataclass(frozen=True)
class ClientOutputs:
    """What users of a cluster need to log in."""

    file: Path | None = None
    """The client properties with which the validator logs in; None without `security`."""
    outputs: Mapping[str, Any] = field(default_factory=dict)
    """Outputs of the cluster's component; none without `security`."""


def client_outputs(
    spec: ClusterSpec,
    security: SecurityPlan | None,
    contract: Contract | pulumi.Output[Contract],
    root: Path,
    expires: pulumi.Output[str] | None,
) -> ClientOutputs:
    """What a cluster with ``security`` has for its clients.

    ``root`` is the folder of the cluster on this machine, ``expires`` when its first certificate
    ends. Paths in the output start at the project's folder, so that all checkouts say the same.
    """
    if spec.security is None or security is None:
        return ClientOutputs()
    listed = partial(_by_user, spec, spec.security)
    own, folder = Project.find().root, root / FOLDER
    if folder.is_relative_to(own):
        folder = folder.relative_to(own)
    trusted = trusted_by(security)
    properties = applied(contract, lambda it: listed(it, folder, trusted))
    outputs = {"certificates_expire": expires, OUTPUT: properties}
    return ClientOutputs(root / FOLDER / VALIDATOR_FILE, outputs)


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
