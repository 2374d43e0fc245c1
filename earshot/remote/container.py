"""Validates from a container in the network of a scope's clients."""

from __future__ import annotations

import contextlib
import io
import secrets
import tarfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from earshot.engine.connection import (
    ANSWER_SECONDS,
    REQUEST_SECONDS,
    UNREADABLE,
    DockerObject,
    address_of,
    another_form,
    connect,
    root_cause,
)
from earshot.errors import EarshotError
from earshot.files.reading import read_bytes
from earshot.listeners.address import MAX_NAME
from earshot.listeners.listed import clipped
from earshot.listeners.properties import NodeSettings, write_properties
from earshot.placement.standpoint import HOST_NETWORK, OWN_NETWORK, CandidateEngine, Standpoint
from earshot.remote.answer import checked_report
from earshot.remote.archive import folder_archive
from earshot.remote.image import ensure_image
from earshot.remote.leftovers import labels_of, remove_leftovers
from earshot.spark.run import ValidationOptions
from earshot.validation.contract import Contract
from earshot.validation.deadline import Deadline
from earshot.validation.result import Report

if TYPE_CHECKING:
    import docker
    from docker.models.containers import Container

FOLDER: Final = "/opt/earshot/run"
JARS: Final = "/opt/earshot/jars"
UNPRIVILEGED: Final = 65534
MEMORY: Final = "2g"
PROCESSES: Final = 1024
POLL_SECONDS: Final = 0.2
MARGIN: Final = 8.0
"""Seconds of the deadline for the start of a container and for reading its report."""
LAST_LINES: Final = 5
MAX_LINE: Final = 4096
"""The maximum length of a line of progress."""
MAX_LINES: Final = 1000
"""The maximum number of lines of progress; a validation prints some dozens."""
REST_SECONDS: Final = 2.0
STOP_SECONDS: Final = 10
"""Seconds in which a stopped validation deletes its topics, before it is killed."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class DockerHostSession:
    """A connection to an engine that has the image and the network of a standpoint."""

    client: docker.DockerClient
    standpoint: Standpoint
    image: str
    where: str
    """The host name of the engine's machine."""


@contextlib.contextmanager
def docker_session(standpoint: Standpoint, cluster: str, say: Say) -> Iterator[DockerHostSession]:
    """A session for ``standpoint`` on the first usable engine of its list.

    Removes containers and networks of killed runs of the same ``cluster``. Raises EarshotError with
    the problem of each engine.
    """
    from docker.errors import DockerException

    refusals: list[EarshotError] = []
    for candidate in standpoint.engines or (CandidateEngine(),):
        with contextlib.ExitStack() as stack:
            try:
                client = stack.enter_context(connect(candidate))
                session = _prepare(client, standpoint, cluster, say)
            except EarshotError as error:
                refusals.append(error)
                continue
            except (DockerException, OSError) as reason:
                where = f"Docker engine at {address_of(candidate)}"
                refusals.append(EarshotError(where, observed=root_cause(reason)))
                continue
            except UNREADABLE as reason:
                where = f"Docker engine at {address_of(candidate)}"
                refusals.append(EarshotError(where, observed=another_form(reason)))
                continue
            yield session
            return
    if len(refusals) == 1:
        raise refusals[0]
    observed = "; ".join(f"{error.object}: {error.observed}" for error in refusals)
    raise EarshotError("its engines", observed=observed, remedy=refusals[0].remedy)


def _prepare(
    client: docker.DockerClient, standpoint: Standpoint, cluster: str, say: Say
) -> DockerHostSession:
    from docker.errors import NotFound

    if standpoint.network not in (HOST_NETWORK, OWN_NETWORK):
        try:
            client.networks.get(standpoint.network)
        except NotFound:
            subject, observed = f"network {standpoint.network}", "does not exist on this engine"
            remedy = "deploy the stack: the brokers' network is part of it"
            raise EarshotError(subject, observed=observed, remedy=remedy) from None
    image = ensure_image(client, standpoint.base, say)
    for name in remove_leftovers(client, cluster):
        say(f"removed {name}, a leftover of a killed run")
    where = clipped(str(client.info().get("Name", "")), MAX_NAME)
    return DockerHostSession(client, standpoint, image, where)


def validate_on(
    session: DockerHostSession,
    contract: Contract,
    options: ValidationOptions,
    end: Deadline,
    say: Say,
) -> Report:
    """Validates ``contract`` from ``session`` before ``end``, which can also stop it.

    ``say`` gets the lines of progress. The container and its own network are removed in any case.
    Raises EarshotError if there is no report.
    """
    files = _client_files(options.client)
    files["contract.json"] = contract.to_json().encode()
    command = _command(session.standpoint.name, options, end.left() - MARGIN)
    with ended(session, contract.cluster, command, files, end, say) as (container, last_lines):
        report = _report(container, last_lines, contract, session.standpoint.name)
    return _placed(report, session)


@contextlib.contextmanager
def ended(
    session: DockerHostSession,
    cluster: str,
    command: Sequence[str],
    files: Mapping[str, bytes],
    end: Deadline,
    say: Say,
    program: Sequence[str] = (),
) -> Iterator[tuple[Container, list[str]]]:
    """Runs ``command`` in a container. Yields the ended container and its last lines of stderr.

    The container has ``files`` in FOLDER, which only its user can read. ``program`` replaces the
    entrypoint of the image. Raises EarshotError if the engine fails, or at ``end``.
    """
    from docker.errors import DockerException

    settings = {"command": list(command), "labels": labels_of(cluster)}
    settings |= {"entrypoint": list(program)} if program else {}
    name = f"earshot-{session.standpoint.name}-{secrets.token_hex(4)}"
    _limit_requests(session, end)
    try:
        with (
            _network(session, name, labels_of(cluster)) as network,
            _container(session, network, files, name=name, **settings) as container,
        ):
            container.start()
            lines = _Lines(container, say)
            try:
                _await(session, container, end)
            finally:
                lines.finish()
            yield container, lines.last_lines
    except (DockerException, OSError) as reason:
        observed = f"ended the run: {root_cause(reason)}"
        raise EarshotError(f"Docker engine of {session.where}", observed=observed) from None
    except UNREADABLE as reason:
        observed = another_form(reason)
        raise EarshotError(f"Docker engine of {session.where}", observed=observed) from None


@contextlib.contextmanager
def _network(session: DockerHostSession, name: str, labels: Mapping[str, str]) -> Iterator[str]:
    if session.standpoint.network != OWN_NETWORK:
        yield session.standpoint.network
        return
    network = session.client.networks.create(name, driver="bridge", labels=dict(labels))
    try:
        yield name
    finally:
        with _engine_may_be_gone():
            network.remove()


@contextlib.contextmanager
def _container(
    session: DockerHostSession, network: str, files: Mapping[str, bytes], **settings: Any
) -> Iterator[Container]:
    container = session.client.containers.create(
        session.image,
        hostname=None if network == HOST_NETWORK else f"earshot-{session.standpoint.name}",
        network=network,
        dns=list(session.standpoint.dns) or None,
        mem_limit=MEMORY,
        pids_limit=PROCESSES,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges"],
        log_config={"type": "json-file"},  # the engine's default driver may not be readable
        **settings,
    )
    try:
        folder = Path(FOLDER)
        content = folder_archive(folder.name, files, 0o600, (UNPRIVILEGED, UNPRIVILEGED))
        container.put_archive(str(folder.parent), content)
        yield container
    finally:
        with _engine_may_be_gone():
            container.remove(force=True, v=True)


@contextlib.contextmanager
def _engine_may_be_gone() -> Iterator[None]:
    """Ignores errors of the engine: the next run removes leftovers."""
    from docker.errors import DockerException

    with contextlib.suppress(DockerException, OSError, *UNREADABLE):
        yield


def _command(vantage: str, options: ValidationOptions, seconds: float) -> list[str]:
    command = ["validate", "--contract", f"{FOLDER}/contract.json", "--vantage", vantage]
    command += ["--records", str(options.records), "--deadline", f"{max(1.0, seconds):.1f}"]
    command += ["--jars-dir", JARS, "--format", "json", "--output", f"{FOLDER}/report.json"]
    if options.client:
        command += ["--client-config", f"{FOLDER}/client.properties"]
    return command


def _client_files(client: Mapping[str, str]) -> dict[str, bytes]:
    """The client properties and the files in them, by file name in the container."""
    if not client:
        return {}
    values, files = dict(client), {}
    for key, value in client.items():
        if key.endswith(".location"):
            try:
                files[key] = read_bytes(Path(value).expanduser())
            except OSError as reason:
                observed = f"{value}: {reason.strerror}"
                raise EarshotError(f"client property {key}", observed=observed) from None
            values[key] = f"{FOLDER}/{key}"
    return files | {"client.properties": write_properties(NodeSettings(values)).encode()}


class _Lines:
    """Prints the container's stderr line by line, and keeps the last lines."""

    def __init__(self, container: Container, say: Say) -> None:
        self.last_lines: list[str] = []
        self._count = 0
        self._say = say
        self._stream = container.logs(stdout=False, stderr=True, stream=True, follow=True)
        self._thread = threading.Thread(target=self._read_stream, daemon=True)
        self._thread.start()

    def _read_stream(self) -> None:
        text = ""
        with _engine_may_be_gone():
            for chunk in self._stream:
                *lines, text = (text + chunk.decode(errors="replace")).split("\n")
                if len(text) > MAX_LINE:
                    lines, text = [*lines, text], ""
                for line in lines:
                    self._add(clipped(line, MAX_LINE))

    def _add(self, line: str) -> None:
        self.last_lines = [*self.last_lines, line][-LAST_LINES:]
        self._count += 1
        if self._count <= MAX_LINES:
            self._say(line)
        elif self._count == MAX_LINES + 1:
            self._say(f"more than {MAX_LINES} lines: the rest is not shown")

    def finish(self) -> None:
        """Waits until the remaining lines of the ended container are read."""
        self._thread.join(REST_SECONDS)
        self._stream.close()


def _limit_requests(session: DockerHostSession, end: Deadline) -> None:
    """Limits the next requests to the time until ``end``, or to that of a first answer."""
    seconds = max(ANSWER_SECONDS, end.left(REQUEST_SECONDS))
    session.client.api.timeout = seconds


def _await(session: DockerHostSession, container: Container, end: Deadline) -> None:
    """Waits until the container has ended. Raises EarshotError at the deadline or on a stop."""
    while True:
        _limit_requests(session, end)
        container.reload()
        if container.status in ("exited", "dead"):
            return
        if not end.left():
            container.stop(timeout=STOP_SECONDS)
            is_stopped = end.stop.is_set()
            observed = "was stopped" if is_stopped else f"did not end within {end.seconds:g} s"
            raise EarshotError("the container", observed=observed)
        end.stop.wait(POLL_SECONDS)


def _report(
    container: Container, last_lines: list[str], contract: Contract, vantage: str
) -> Report:
    """The report in the ended ``container``. Raises EarshotError unless it is whole."""
    state: DockerObject = container.attrs["State"]
    if state["ExitCode"] not in (0, 1, 3):
        memory = f"needed more memory than {MEMORY}; " if state.get("OOMKilled") else ""
        observed = f"{memory}ended with status {state['ExitCode']}{quoted(last_lines)}"
        raise EarshotError("the validation in the container", observed=observed)
    chunks, _ = container.get_archive(f"{FOLDER}/report.json")
    try:
        with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
            member = archive.extractfile("report.json")
            content = member.read() if member else b""
    except (tarfile.TarError, EOFError, KeyError, RecursionError) as reason:
        observed = f"has left no archive with a report ({type(reason).__name__})"
        raise EarshotError("the validation in the container", observed=observed) from None
    report = checked_report(content, "the report of the container", contract, vantage)
    if report.exit_code != state["ExitCode"]:
        observed = f"ended with status {state['ExitCode']}, and its report has {report.exit_code}"
        raise EarshotError("the validation in the container", observed=observed)
    return report


def quoted(lines: Sequence[str]) -> str:
    """A colon, with ``lines`` below it; empty without lines."""
    return ":" + "".join(f"\n    {line}" for line in lines) if lines else ""


def _placed(report: Report, session: DockerHostSession) -> Report:
    """``report`` with the vantage's kind and place: a container on a network of a machine."""
    network = session.standpoint.network or "of its own"
    where = f"{session.where}, network {network}" if session.where else f"network {network}"
    name = session.standpoint.name
    changes: DockerObject = {"kind": "container", "where": where}
    if session.standpoint.dns:
        # a container sees the engine's own server, which forwards queries to these
        changes["resolvers"] = session.standpoint.dns
    placed = tuple(
        vantage.model_copy(update=changes) if vantage.name == name else vantage
        for vantage in report.vantages
    )
    return report.model_copy(update={"vantages": placed})
