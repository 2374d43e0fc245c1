"""What a request to a Docker engine raises; a module of its own, as Docker's SDK imports slowly."""

from typing import Final

from docker.errors import DockerException

from earshot.engine.connection import UNREADABLE

FAILURES: Final = (DockerException, OSError, *UNREADABLE)
"""The exceptions if the engine fails, or answers in another form than Docker's."""
