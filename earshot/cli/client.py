"""`earshot client`: writes the client properties of a user of a secured stack."""

from contextlib import suppress
from pathlib import Path

from earshot.certificates.client import client_properties
from earshot.certificates.store import Store
from earshot.cli.output import refuse_read, refuse_replacing, save
from earshot.cli.target import stack_contract
from earshot.errors import EarshotError
from earshot.files.reading import open_regular
from earshot.files.stack_files import stack_name
from earshot.project import Project

HEADER = "# Written by `earshot client`, which replaces this file when it is named again."
"""The first line of files that the command may replace."""


def run(stack: str, user: str, listener: str, output: Path, *, force: bool = False) -> int:
    """Writes Kafka's client properties of ``user`` for ``listener`` to ``output``; the exit code.

    Raises EarshotError for a stack without `security`, for an unknown user or listener, if
    ``output`` is a file of the stack, and, without ``force``, if it is any other file that this
    command has not written.
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
    listeners = {
        listener_of_contract.name: listener_of_contract
        for listener_of_contract in stack_contract(project, stack).listeners
    }
    if listener not in listeners:
        allowed = ", ".join(listeners)
        raise EarshotError("--listener", observed=f"found {listener!r}", allowed=allowed)
    chosen = listeners[listener]
    folder = project.credentials_file(stack).parent
    refuse_read((output,), (project.stack_file(stack), *_of_stack(output, project, stack)))
    if not force and not _was_written_by_earshot(output):
        refuse_replacing(output, "a file that `earshot client` wrote")
    text = client_properties(
        Store(folder),
        user,
        cluster.mechanism(listener, security),
        chosen.protocol,
        chosen.bootstrap,
        certified=cluster.asks_for_certificates(listener),
    )
    save(output, f"{HEADER}\n{text}", mode=0o600)
    return 0


def _was_written_by_earshot(file: Path) -> bool:
    with suppress(OSError), open_regular(file) as stream:
        return stream.readline().rstrip() == HEADER.encode()
    return False


def _of_stack(file: Path, project: Project, stack: str) -> tuple[Path, ...]:
    """``file``, if updates of ``stack`` write it, such as a key store; otherwise empty."""
    is_in_stack = file.resolve().is_relative_to(project.state_dir(stack).resolve())
    return (file,) if is_in_stack and not _was_written_by_earshot(file) else ()
