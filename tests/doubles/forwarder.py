"""A double of a balancer, which forwards TCP unchanged, by port, to healthy targets, with an idle
time-out."""

import asyncio
import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

Target = tuple[str, int]
_CHECK_SECONDS = 0.2


@dataclass
class Forwarder:
    """What is forwarded where; a test may change it while it runs."""

    host: str = "127.0.0.1"
    by_port: dict[int, list[Target]] = field(default_factory=dict)
    """By port, the targets; several are taken in turn."""
    idle_seconds: float = 600.0
    connections: int = 0
    """How many it has forwarded."""
    dropped: int = 0
    """How many it has ended, for nothing was sent in `idle_seconds`."""
    healthy: dict[Target, bool] = field(default_factory=dict)
    """The results of health checks."""
    _turn: int = 0

    async def _checks(self) -> None:
        while True:
            for target in {it for targets in self.by_port.values() for it in targets}:
                self.healthy[target] = await _answers(target)
            await asyncio.sleep(_CHECK_SECONDS)

    async def _accepted(
        self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with contextlib.closing(writer), contextlib.suppress(OSError, TimeoutError):
            targets = self.by_port[port]
            # a balancer without a healthy target does not forward
            healthy = [it for it in targets if self.healthy.get(it, True)]
            if not healthy:
                return
            self._turn += 1
            there, back = await asyncio.open_connection(*healthy[self._turn % len(healthy)])
            self.connections += 1
            with contextlib.closing(back):
                await self._piped((reader, back), (there, writer))

    async def _piped(self, *ways: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
        loop = asyncio.get_running_loop()
        last = loop.time()

        async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal last
            while data := await reader.read(65_536):
                last = loop.time()
                writer.write(data)
                await writer.drain()

        tasks = [asyncio.create_task(pipe(*way)) for way in ways]
        while True:
            left = last + self.idle_seconds - loop.time()
            done, _ = await asyncio.wait(
                tasks, timeout=max(0.01, left), return_when=asyncio.FIRST_COMPLETED
            )
            if done or loop.time() >= last + self.idle_seconds:
                self.dropped += not done
                break
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.contextmanager
def forwarding(forwarder: Forwarder) -> Iterator[Forwarder]:
    """Listens at its ports; closed at the end."""
    started = threading.Event()
    ends: list[Callable[[], object]] = []

    async def serve() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        ends.append(lambda: loop.call_soon_threadsafe(stop.set))
        async with contextlib.AsyncExitStack() as cleanup:
            for port in forwarder.by_port:
                accepted = functools.partial(forwarder._accepted, port)
                server = await asyncio.start_server(accepted, forwarder.host, port)
                cleanup.callback(server.close)
            checks = asyncio.create_task(forwarder._checks())
            started.set()
            await stop.wait()
            checks.cancel()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert started.wait(60)
    try:
        yield forwarder
    finally:
        ends[0]()
        thread.join(60)
        assert not thread.is_alive()


async def _answers(target: Target) -> bool:
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(*target), 1)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


def ports_of(bases: Mapping[int, Target], base: int) -> dict[int, list[Target]]:
    """A port per broker, and ``base`` for all of them; ``bases`` are the brokers by their ids."""
    return {base: [*bases.values()], **{base + id: [it] for id, it in bases.items()}}
