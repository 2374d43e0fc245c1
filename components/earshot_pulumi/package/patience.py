"""Waiting for readiness while the package's cluster is constructed."""

import asyncio
import contextvars
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial

import pulumi
from pulumi.errors import InputPropertiesError

from earshot.errors import EarshotError
from earshot_pulumi.aws.credentials import history, reader
from earshot_pulumi.aws.machines import starts
from earshot_pulumi.aws.reports import Awaited, have_served, wait_for
from earshot_pulumi.aws_settings import StackSettings


async def in_sync(
    nodes: Sequence[Awaited], voters: Sequence[str], region: str, deadline: float, *, whole: bool
) -> None:
    """Returns when ``nodes`` have reported as deployed; at once in a preview.

    Single nodes, not the ``whole`` cluster, are not waited for where the cluster is new and none of
    ``voters`` has ever reported that it serves: they would wait for each other. ``voters`` are the
    parameters in which the quorum reports; without any, only the whole is waited for. Raises
    InputPropertiesError, which the host shows without a stack trace.
    """
    if pulumi.runtime.is_dry_run():
        return
    loop, context = asyncio.get_running_loop(), contextvars.copy_context()

    def log(text: str) -> None:
        loop.call_soon_threadsafe(partial(pulumi.log.info, text), context=context)

    def wait() -> None:
        settings = StackSettings()
        if whole or have_served(history(settings, region, voters)):
            read = reader(settings, region)
            wait_for(nodes, read, deadline, starts(settings, region), progress=log)

    try:
        # in a copy of the context, which has the stack's settings; `log` runs in the other one
        await aside(partial(contextvars.copy_context().run, wait))
    except EarshotError as error:
        raise InputPropertiesError(str(error), []) from None


async def aside(act: Callable[[], None]) -> None:
    """Runs ``act`` in a thread that does not delay the end of this process."""
    done: Future[None] = Future()

    def run() -> None:
        done.set_running_or_notify_cancel()  # from here on nobody else settles it
        try:
            act()
            done.set_result(None)
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    await asyncio.wrap_future(done)
