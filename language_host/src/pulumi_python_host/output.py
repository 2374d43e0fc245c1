"""A child's output for the engine: chunks in the order of arrival, then the exit code."""

import math
import os
import selectors
import subprocess
import time
from collections.abc import Callable, Iterator

from pulumi.runtime.proto import language_pb2

from pulumi_python_host.children import Children

Chunk = language_pb2.RunPluginResponse
READ_BYTES = 65536
POLL_SECONDS = 0.5
# A grandchild may hold the pipes open; the plugin's own output has arrived well before.
DRAIN_SECONDS = 1.0


def output_of(
    child: subprocess.Popen[bytes],
    children: Children,
    first_line: Callable[[bytes], None] | None = None,
) -> Iterator[Chunk]:
    """Everything that ``child`` prints, as it comes, then its exit code.

    The code for a signal is 128 + its number, as in a shell. ``first_line`` gets the first line of
    stdout instead, stripped; it is empty if the child ended without one.
    """
    assert child.stdout is not None and child.stderr is not None
    line, end = b"", math.inf
    with child.stdout, child.stderr, selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ, "stdout")
        selector.register(child.stderr, selectors.EVENT_READ, "stderr")
        while selector.get_map() and time.monotonic() < end:
            for key, _ in selector.select(POLL_SECONDS):
                data = os.read(key.fd, READ_BYTES)
                if not data:
                    selector.unregister(key.fileobj)
                elif first_line is not None and key.data == "stdout":
                    line, newline, data = (line + data).partition(b"\n")
                    if newline:
                        first_line(line.strip())
                        first_line = None
                if data:
                    is_stdout = key.data == "stdout"
                    yield Chunk(stdout=data) if is_stdout else Chunk(stderr=data)
            if end == math.inf and child.poll() is not None:
                end = time.monotonic() + DRAIN_SECONDS
    if first_line is not None:
        first_line(line.strip())
    code = children.wait(child)
    yield Chunk(exitcode=code if code >= 0 else 128 - code)
