"""Users and permissions of brokers that only containers on their network reach."""

from __future__ import annotations

from typing import Final

from earshot.errors import EarshotError
from earshot.remote.container import FOLDER, DockerHostSession, Say, ended
from earshot.users.order import Order
from earshot.validation.deadline import Deadline

FILE: Final = "order.json"
PROGRAM: Final = ("python", "-m", "earshot.users")


def carry_out_on(
    session: DockerHostSession, cluster: str, order: Order, end: Deadline, say: Say
) -> None:
    """Carries out ``order`` in a container of ``session``, by ``end``.

    The order reaches it as a file, which goes with the container. Raises EarshotError.
    """
    files = {FILE: order.model_dump_json().encode()}
    command = [f"{FOLDER}/{FILE}"]
    with ended(session, cluster, command, files, end, say, program=PROGRAM) as (container, said):
        if code := container.attrs["State"]["ExitCode"]:
            told = "".join(f"\n    {line}" for line in said)
            raise EarshotError(
                "users and permissions",
                observed=f"are not settled (status {code}){':' if told else ''}{told}",
            )
