"""The output `client_properties`: how each user connects to each listener, without secrets.

A state may be encrypted with a well-known passphrase. So the output has the paths of the files with
passwords and keys, not their contents.
"""

from functools import partial
from pathlib import Path

import pulumi

from earshot.certificates.client import public_properties
from earshot.certificates.target import numbered
from earshot.config.cluster import ClusterSpec
from earshot.config.security import SecuritySpec
from earshot.listeners.model import SecurityPlan
from earshot.listeners.security import FOLDER, trusted_by
from earshot.project import Project
from earshot.validation.contract import Contract
from earshot_pulumi.outputs import applied
from earshot_pulumi.provider.kind import Outputs, Properties

OUTPUT = "client_properties"


def client_outputs(
    spec: ClusterSpec,
    security: SecurityPlan | None,
    contract: Contract | pulumi.Output[Contract],
    root: Path,
    expires: pulumi.Output[str] | None,
) -> Outputs:
    """The outputs for the clients of a cluster; empty without `security`.

    ``root`` is the folder of the cluster on this machine, ``expires`` the earliest expiry of a
    certificate. Paths are relative to the project's folder, so that all checkouts have the same.
    """
    if spec.security is None or security is None:
        return {}
    properties_of = partial(_by_user, spec, spec.security)
    project, folder = Project.of_program().root, root / FOLDER
    if folder.is_relative_to(project):
        folder = folder.relative_to(project)
    trusted = trusted_by(security)
    properties = applied(
        contract, lambda known_contract: properties_of(known_contract, folder, trusted)
    )
    return {"certificates_expire": expires, OUTPUT: properties}


def _by_user(
    cluster: ClusterSpec, spec: SecuritySpec, contract: Contract, folder: Path, trusted: str
) -> Properties:
    """Properties by user and listener, with the password's file if the listener needs one."""
    clients: Properties = {}
    for user in spec.user_names:
        password_file = numbered(f"{user}.password", spec.password_numbers.get(user, 1))
        clients[user] = {
            listener.name: {
                "properties": public_properties(
                    folder,
                    trusted,
                    user,
                    cluster.mechanism(listener.name, spec),
                    listener.protocol,
                    listener.bootstrap,
                    certified=cluster.asks_for_certificates(listener.name),
                )
            }
            | ({"password_file": str(folder / password_file)} if listener.protocol.sasl else {})
            for listener in contract.listeners
            if listener.protocol.tls
        }
    return clients
