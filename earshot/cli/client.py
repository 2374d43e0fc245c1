"""`earshot client`: a file with which a user of a secured stack comes in."""

from pathlib import Path

from earshot.certificates.client import client_properties
from earshot.certificates.store import Store
from earshot.cli.output import refuse_read, save
from earshot.cli.target import stack_contract
from earshot.errors import EarshotError
from earshot.project import Project
from earshot.stack_files import stack_name


def run(stack: str, user: str, listener: str, output: Path) -> int:
    """Writes Kafka's client properties of ``user`` for ``listener`` to ``output``; the exit code.

    Raises EarshotError for a stack without `security`, for a user or a listener that it does not
    have, and for a file of the stack as ``output``.
    """
    project = Project.find()
    cluster = project.read_cluster(stack)
    security = cluster.security
    if security is None:
        raise EarshotError(
            f"stack {stack_name(stack)}",
            observed="has no `security`, so that it has no users",
            remedy="`security: {}` in its file; see docs/security.md",
        )
    if user not in security.user_names:
        allowed = ", ".join(security.user_names)
        raise EarshotError("--user", observed=f"found {user!r}", allowed=allowed)
    listeners = {item.name: item for item in stack_contract(project, stack).listeners}
    if listener not in listeners:
        allowed = ", ".join(listeners)
        raise EarshotError("--listener", observed=f"found {listener!r}", allowed=allowed)
    chosen = listeners[listener]
    folder = project.credentials_file(stack).parent
    files = folder.iterdir() if folder.is_dir() else ()
    refuse_read((output,), (project.stack_file(stack), project.contract_file(stack), *files))
    text = client_properties(
        Store(folder),
        user,
        cluster.mechanism(listener, security),
        chosen.protocol,
        chosen.bootstrap,
        certified=cluster.asks_for_certificates(listener),
    )
    save(output, text, mode=0o600)
    return 0
