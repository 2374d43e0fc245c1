"""Users and permissions of brokers that only containers on their network reach."""

from __future__ import annotations

from typing import Final

from earshot.errors import EarshotError
from earshot.remote.container import FOLDER, DockerHostSession, Say, ended, quoted
from earshot.users.order import UsersOrder
from earshot.validation.deadline import Deadline

FILE: Final = "order.json"
PROGRAM: Final = ("python", "-m", "earshot.users")
_WHAT: Final = "users and permissions"
_AGAIN: Final = "see that the engine runs, and the brokers' logs, then run the same command again"


def carry_out_on(
    session: DockerHostSession, cluster: str, order: UsersOrder, end: Deadline, say: Say
) -> None:
    """Carries out ``order`` in a container of ``session``, by ``end``.

    The order reaches it as a file, which goes with the container. Raises EarshotError.
    """
    files = {FILE: order.model_dump_json().encode()}
    command = [f"{FOLDER}/{FILE}"]
    try:
        with ended(session, cluster, command, files, end, say, program=PROGRAM) as (made, said):
            code = made.attrs["State"]["ExitCode"]
    except EarshotError as error:
        observed = f"are not settled ({error.line})"
        raise EarshotError(_WHAT, observed=observed, remedy=_AGAIN) from None
    if code:
        observed = f"are not settled (status {code}){quoted(said)}"
        raise EarshotError(_WHAT, observed=observed)
