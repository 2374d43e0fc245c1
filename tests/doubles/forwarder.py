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
    """The forwarded ports and their targets. A test may change them while it runs."""

    host: str = "127.0.0.1"
    by_port: dict[int, list[Target]] = field(default_factory=dict)
    """The targets by port. Several targets get connections in turn."""
    idle_seconds: float = 600.0
    connections: int = 0
    """The number of forwarded connections."""
    dropped: int = 0
    """The number of connections that it ended because nothing was sent in `idle_seconds`."""
    healthy: dict[Target, bool] = field(default_factory=dict)
    """The results of health checks."""
    _turn: int = 0

    async def _checks(self) -> None:
        while True:
            for target in {target for targets in self.by_port.values() for target in targets}:
                self.healthy[target] = await _answers(target)
            await asyncio.sleep(_CHECK_SECONDS)

    async def _serve_connection(
        self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with contextlib.closing(writer), contextlib.suppress(OSError, TimeoutError):
            targets = self.by_port[port]
            # a balancer without a healthy target does not forward
            healthy = [target for target in targets if self.healthy.get(target, True)]
            if not healthy:
                return
            self._turn += 1
            target = healthy[self._turn % len(healthy)]
            target_reader, target_writer = await asyncio.open_connection(*target)
            self.connections += 1
            with contextlib.closing(target_writer):
                await self._forward((reader, target_writer), (target_reader, writer))

    async def _forward(self, *ways: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
        loop = asyncio.get_running_loop()
        last_traffic = loop.time()

        async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal last_traffic
            while data := await reader.read(65_536):
                last_traffic = loop.time()
                writer.write(data)
                await writer.drain()

        tasks = [asyncio.create_task(pipe(*way)) for way in ways]
        while True:
            remaining_seconds = last_traffic + self.idle_seconds - loop.time()
            finished, _ = await asyncio.wait(
                tasks, timeout=max(0.01, remaining_seconds), return_when=asyncio.FIRST_COMPLETED
            )
            if finished or loop.time() >= last_traffic + self.idle_seconds:
                self.dropped += not finished
                break
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.contextmanager
def forwarding(forwarder: Forwarder) -> Iterator[Forwarder]:
    """Listens at its ports until the block ends."""
    has_started = threading.Event()
    ends: list[Callable[[], object]] = []

    async def serve() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        ends.append(lambda: loop.call_soon_threadsafe(stop.set))
        async with contextlib.AsyncExitStack() as cleanup:
            for port in forwarder.by_port:
                serve_connection = functools.partial(forwarder._serve_connection, port)
                server = await asyncio.start_server(serve_connection, forwarder.host, port)
                cleanup.callback(server.close)
            checks = asyncio.create_task(forwarder._checks())
            has_started.set()
            await stop.wait()
            checks.cancel()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert has_started.wait(60)
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
    return {base: [*bases.values()], **{base + id: [target] for id, target in bases.items()}}
