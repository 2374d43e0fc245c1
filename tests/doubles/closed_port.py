"""An address that refuses connections."""

import contextlib
import socket
from collections.abc import Iterator

from earshot.listeners.address import Address


@contextlib.contextmanager
def closed_port() -> Iterator[Address]:
    """An address of this machine at which nothing listens.

    Its port is bound until the end, so that no other process listens there meanwhile.
    """
    with socket.socket() as bound_socket:
        bound_socket.bind(("127.0.0.1", 0))
        yield Address("127.0.0.1", bound_socket.getsockname()[1])
