"""Containers for one question: what they are given, and that none of them is left."""

import io
import subprocess
import tarfile
from types import SimpleNamespace
from typing import Any, cast

import pytest
from docker.errors import APIError, ImageNotFound
from earshot_pulumi.docker import labels, throwaway
from earshot_pulumi.docker.throwaway import CommandFailed

from earshot.remote.leftovers import labels_of
from tests.raised import raised


class FakeEngine:
    """An engine that has one image, and what becomes of containers on it."""

    def __init__(self, answer: Any) -> None:
        """``answer``: the status of a command, and its output and errors, or an exception."""
        self.answer = answer
        self.end = throwaway._END.encode()
        self.options: dict[str, Any] = {}
        self.remaining: list[str] = []
        self.containers = SimpleNamespace(create=self._create)
        self.images = SimpleNamespace(get=self._image)

    def _image(self, name: str) -> None:
        if name != "kafka":
            raise ImageNotFound(f"No such image: {name}")

    def _create(self, image: str, **options: Any) -> Any:
        self._image(image)
        self.options = options
        self.remaining.append("container")
        return SimpleNamespace(start=self._start, exec_run=self._exec, remove=self._remove)

    def _start(self) -> None:
        self.remaining.append("running")

    def _exec(self, command: list[str], **options: Any) -> Any:
        assert self.remaining == ["container", "running"]
        self.options |= options | {"command": command}
        if isinstance(self.answer, BaseException):
            raise self.answer
        if not isinstance(self.answer[1], tuple):
            return self.answer
        status, (output, errors) = self.answer
        return status, ((output or b"") + self.end or None, errors)

    def _remove(self, force: bool, v: bool) -> None:
        assert force and v
        self.remaining.clear()


def ask(engine: Any, image: str = "kafka") -> str:
    return throwaway.ask(engine, image, ["look"], environment={"A": "b"}, volumes={"data": "/d"})


def test_the_container_has_no_network_and_ends_by_itself() -> None:
    engine = FakeEngine((0, (b"found\n", None)))
    assert ask(engine) == "found\n"
    assert engine.remaining == []
    assert engine.options == {
        "entrypoint": ["sleep", "120"],
        "command": ["sh", "-c", throwaway._WITH_END, "sh", "look"],
        "labels": {labels.THROWAWAY: "yes", **labels_of(labels.THROWAWAY)},
        "network_mode": "none",
        "volumes": {"data": {"bind": "/d", "mode": "ro"}},
        "healthcheck": {"test": ["NONE"]},
        "auto_remove": True,
        "environment": {"A": "b"},
        "demux": True,
    }


@pytest.mark.parametrize(
    ("answer", "observed"),
    [
        ((3, (b"", b"it has\n no Java\n")), "it has no Java"),
        ((1, (None, None)), "look ended with status 1"),
        ((1, (b"x" * 2000, None)), f"{'x' * 978}... (2,000 characters)"),
        (KeyError("Id"), "'Id'"),
        (APIError("500", explanation="no space left"), "no space left"),
        (OSError("gone"), "gone"),
    ],
)
def test_what_cannot_be_asked_is_said_and_leaves_nothing(answer: Any, observed: str) -> None:
    engine = FakeEngine(answer)
    assert raised(CommandFailed, ask, engine).observed == observed
    assert engine.remaining == []


@pytest.mark.parametrize(("status", "output", "errors", "observed"), [
    (0, b"half of", None, "its output is cut short"),
    (0, None, None, "its output is cut short"),
    (126, b"exec failed: no sh\n", None, "exec failed: no sh"),
    (137, b"half of", b"Killed\n", "Killed"),
])  # fmt: skip
def test_half_of_an_output_is_no_answer(
    status: int, output: bytes | None, errors: bytes | None, observed: str
) -> None:
    """A list of replicas, ports or clients would otherwise be too short."""
    engine = FakeEngine((status, (output, errors)))
    engine.end = b""
    assert raised(CommandFailed, ask, engine).observed == observed


def test_the_whole_output_and_the_status_arrive() -> None:
    for output, status in (("", 0), ("x", 3), ("two\nlines\n", 0)):
        command = [
            "sh",
            "-c",
            throwaway._WITH_END,
            "sh",
            "sh",
            "-c",
            f"printf '{output}'; exit {status}",
        ]
        completed = subprocess.run(command, capture_output=True)
        assert completed.returncode == status
        assert completed.stdout == output.encode() + throwaway._END.encode()


def test_an_interrupt_leaves_nothing() -> None:
    engine = FakeEngine(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        ask(engine)
    assert engine.remaining == []


def test_the_first_image_that_is_there_is_asked() -> None:
    engine: Any = FakeEngine((0, (b"found", None)))
    assert throwaway.ask_any(engine, ["absent", "kafka"], ["look"], volumes={}) == "found"
    with pytest.raises(CommandFailed, match="the engine has no image"):
        throwaway.ask_any(engine, ["absent"], ["look"], volumes={})


def test_an_engine_that_answers_no_more_is_no_answer() -> None:
    engine: Any = FakeEngine((0, (b"found", None)))

    def lost(_name: str) -> None:
        raise ConnectionResetError("Connection reset by peer")

    engine.images.get = lost
    with pytest.raises(CommandFailed, match="Connection reset by peer"):
        throwaway.ask_any(engine, ["kafka"], ["look"], volumes={})


class FilledEngine(FakeEngine):
    """An engine whose containers have a user, and take archives."""

    def __init__(self, answer: Any, refuses: bool = False) -> None:
        super().__init__(answer)
        self.refuses = refuses
        self.put: list[tuple[str, list[tuple[str, str, int, int]]]] = []
        self.commands: list[list[str]] = []

    def _create(self, image: str, **options: Any) -> Any:
        container = super()._create(image, **options)
        container.put_archive = self._put
        return container

    def _put(self, path: str, data: bytes) -> None:
        if self.refuses:
            raise APIError("500", explanation="read-only")
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            members = [(it.name, oct(it.mode), it.uid, it.gid) for it in archive.getmembers()]
        self.put.append((path, members))

    def _exec(self, command: list[str], **options: Any) -> Any:
        self.commands.append(command)
        if command[0] == "ls":
            return 0, b"node-1.pem\nold.pem\nolder.pem\n"
        return super()._exec(command, **options)


def fill(engine: FilledEngine) -> None:
    files = {"node-1.pem": "SECRET"}
    client = cast(Any, engine)
    throwaway.fill(client, "kafka", "keys", "/etc/secrets", files, lambda name: name == "old.pem")


def test_files_in_a_volume_are_for_the_images_user_and_in_no_description() -> None:
    engine = FilledEngine((0, b"1000\n"))
    fill(engine)
    assert engine.put == [
        ("/etc", [("secrets", "0o700", 1000, 1000), ("secrets/node-1.pem", "0o400", 1000, 1000)])
    ]
    assert engine.options["volumes"] == {"keys": {"bind": "/etc/secrets", "mode": "rw"}}
    assert "SECRET" not in str(engine.options)
    assert engine.remaining == []


def test_a_command_whose_output_the_engine_has_lost_is_run_again() -> None:
    class ForgetfulEngine(FilledEngine):
        def _exec(self, command: list[str], **options: Any) -> Any:
            answer = super()._exec(command, **options)
            return (0, b"") if self.commands == [["id", "-u"]] else answer

    engine = ForgetfulEngine((0, b"1000\n"))
    fill(engine)
    assert engine.commands[:3] == [["id", "-u"], ["id", "-u"], ["id", "-g"]]
    assert engine.put[0][1][1] == ("secrets/node-1.pem", "0o400", 1000, 1000)


def test_only_files_that_are_of_use_stay_in_a_volume() -> None:
    engine = FilledEngine((0, b"1000\n"))
    fill(engine)
    assert engine.commands[-1] == ["rm", "-f", "--", "/etc/secrets/older.pem"]


@pytest.mark.parametrize(
    ("engine", "observed"),
    [
        (FilledEngine((127, b"id: not found")), "its user is unknown: id: not found"),
        (FilledEngine((0, b"")), "its user is unknown: `id` printed nothing"),
        (FilledEngine((0, b"1000\n"), refuses=True), "read-only"),
    ],
)
def test_a_volume_that_cannot_be_filled_is_said(engine: FilledEngine, observed: str) -> None:
    assert raised(CommandFailed, fill, engine).observed == observed
    assert engine.remaining == []
