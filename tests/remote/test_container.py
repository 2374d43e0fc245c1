"""The files and options of a container, and the report after its end."""

from __future__ import annotations

import contextlib
import io
import os
import socket
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psutil
import pytest
from docker.errors import DockerException, NotFound

from earshot.doctor.targets import targets_of
from earshot.engine.connection import REQUEST_SECONDS
from earshot.errors import EarshotError
from earshot.listeners.properties import read_properties
from earshot.listeners.terms import Scope
from earshot.placement.standpoint import HOST_NETWORK, OWN_NETWORK, CandidateEngine, Standpoint
from earshot.remote import container, leftovers
from earshot.remote.archive import folder_archive
from earshot.remote.container import (
    FOLDER,
    MAX_LINE,
    MAX_LINES,
    STOP_SECONDS,
    DockerHostSession,
)
from earshot.remote.leftovers import OWNER_LABEL, labels_of
from earshot.report import render
from earshot.spark.run import ValidationOptions
from earshot.validation.deadline import Deadline
from earshot.validation.result import Report, Vantage
from earshot.validation.terms import Verdict
from tests.doubles.engine_server import Answer, document, engine_server
from tests.raised import raised
from tests.remote.contracts import docker_contract
from tests.report import samples
from toolchain.paths import ROOT


def test_the_command_is_what_a_user_would_say() -> None:
    options = ValidationOptions(records=7, client={"security.protocol": "SSL"})
    command = [
        *("validate", "--contract", f"{FOLDER}/contract.json", "--vantage", "internal"),
        *("--records", "7", "--deadline", "12.3", "--jars-dir", "/opt/earshot/jars"),
        *("--format", "json", "--output", f"{FOLDER}/report.json"),
    ]
    properties = ["--client-config", f"{FOLDER}/client.properties"]
    assert container._command("internal", options, 12.34) == command + properties
    plain = ValidationOptions(records=7)
    assert container._command("internal", plain, 12.34) == command
    assert "1.0" in container._command("internal", plain, 0.3), "the least that is of any use"


def test_files_that_the_client_properties_name_go_with_them(tmp_path: Path) -> None:
    authority = tmp_path / "ca.pem"
    authority.write_bytes(b"certificate")
    client = {
        "ssl.truststore.location": str(authority),
        "sasl.jaas.config": 'required username="a\\b" password="c=d";',
    }
    files = container._client_files(client)
    assert files["ssl.truststore.location"] == b"certificate"
    properties = read_properties(files["client.properties"].decode()).values
    assert properties == client | {"ssl.truststore.location": f"{FOLDER}/ssl.truststore.location"}
    assert container._client_files({}) == {}


def test_a_file_that_is_missing_is_named() -> None:
    with pytest.raises(EarshotError, match=r"ssl\.truststore\.location: /none/ca\.pem"):
        container._client_files({"ssl.truststore.location": "/none/ca.pem"})


def test_files_are_for_the_containers_user_alone() -> None:
    content = folder_archive("run", {"a": b"1"}, 0o600, (65534, 65534))
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        members = archive.getmembers()
    assert [(member.name, member.isdir(), oct(member.mode), member.uid) for member in members] == [
        ("run", True, "0o700", 65534),
        ("run/a", False, "0o600", 65534),
    ]


class ContainerDouble:
    """A container that has ended, with a report or without."""

    def __init__(self, code: int, report: bytes = b"", killed: bool = False) -> None:
        self.attrs = {"State": {"ExitCode": code, "OOMKilled": killed}}
        self.report = report

    def get_archive(self, path: str) -> tuple[list[bytes], dict[str, Any]]:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            member = tarfile.TarInfo(Path(path).name)
            member.size = len(self.report)
            archive.addfile(member, io.BytesIO(self.report))
        return [buffer.getvalue()], {}


INNER = Vantage(name="internal", where="id", resolvers=("127.0.0.11",))
CONTRACT = docker_contract()


def outcome(double: ContainerDouble, lines: list[str]) -> Report:
    return container._report(cast(Any, double), lines, CONTRACT, "internal")


def complete_report(
    verdict: Verdict = Verdict.PASS, vantage: str = "internal", **changes: Any
) -> Report:
    """A report on every cell of `CONTRACT`, each with ``verdict``."""
    cells = [
        samples.cell("INTERNAL", 1, vantage).model_copy(
            update={
                "listener": target.listener,
                "broker": target.broker,
                "address": target.address,
                "verdict": verdict,
            }
        )
        for target in targets_of(CONTRACT)
    ]
    usual = {"cells": cells, "cluster": "dev", "vantages": [INNER]}
    return samples.report(**{**usual, **changes})


def ended_container(report: Report, code: int | None = None) -> ContainerDouble:
    """A container that has left ``report``, and ended with ``code`` or the report's exit code."""
    code = report.exit_code if code is None else code
    return ContainerDouble(code, render(report, "json").encode())


@pytest.mark.parametrize("verdict", [Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE])
def test_a_report_comes_back_whatever_it_says(verdict: Verdict) -> None:
    report = complete_report(verdict)
    assert outcome(ended_container(report), []) == report


PARTS = complete_report().cells


@pytest.mark.parametrize(
    ("double", "observed"),
    [
        (ended_container(complete_report(cells=[])), "has no cell for ALICE of broker 0"),
        (
            ended_container(complete_report(cells=PARTS[1:])),
            f"has no cell for {PARTS[0].listener} of broker 0",
        ),
        (ended_container(complete_report(vantage="moon")), "from internal"),
        (ended_container(complete_report(cluster="prod")), "is of cluster prod, not of dev"),
        (ended_container(complete_report(), code=1), "ended with status 1, and its report has 0"),
        (
            ended_container(complete_report(Verdict.FAIL), code=0),
            "ended with status 0, and its report has 1",
        ),
        (ContainerDouble(0, b"{nope"), "is not JSON"),
        (ContainerDouble(0, b""), "is not JSON"),
    ],
)
def test_a_report_that_is_not_whole_is_none(double: ContainerDouble, observed: str) -> None:
    assert observed in raised(EarshotError, outcome, double, []).observed


def _archive_of(member: tarfile.TarInfo) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(member)
    return buffer.getvalue()


def _link_to_itself() -> tarfile.TarInfo:
    member = tarfile.TarInfo("report.json")
    member.type, member.linkname = tarfile.SYMTYPE, member.name
    return member


@pytest.mark.parametrize(
    "content", [b"", b"z" * 5000, _archive_of(tarfile.TarInfo("a")), _archive_of(_link_to_itself())]
)
def test_an_archive_without_a_report_is_one_error(content: bytes) -> None:
    double = ContainerDouble(0)
    double.get_archive = lambda path: ([content], {})  # type: ignore[method-assign]
    error = raised(EarshotError, outcome, double, [])
    assert error.observed.startswith("has left no archive with a report")


@pytest.mark.parametrize(
    ("code", "killed", "lines", "observed"),
    [
        (2, False, ["error: Java: none"], "ended with status 2:\n    error: Java: none"),
        (137, True, [], "needed more memory than 2g; ended with status 137"),
    ],
)
def test_report_is_missing(code: int, killed: bool, lines: list[str], observed: str) -> None:
    error = raised(EarshotError, outcome, ContainerDouble(code, killed=killed), lines)
    assert error.observed == observed


SESSION = DockerHostSession(
    cast(Any, SimpleNamespace(api=SimpleNamespace())),
    Standpoint(name="internal", scope=Scope.INTERNAL),
    "image:1",
    "machine-a",
)


@pytest.mark.parametrize("interrupted", [True, False])
def test_a_validation_that_is_to_end_may_still_delete_its_topics(interrupted: bool) -> None:
    stops: list[float] = []

    def stop(timeout: float) -> None:
        stops.append(timeout)

    running = SimpleNamespace(status="running", reload=lambda: None, stop=stop)
    end = Deadline(60 if interrupted else 0)
    if interrupted:
        end.stop.set()
    observed = "was stopped" if interrupted else "did not end within"
    with pytest.raises(EarshotError, match=f"the container: {observed}"):
        container._await(SESSION, cast(Any, running), end)
    assert stops == [STOP_SECONDS]


@pytest.mark.parametrize(
    ("network", "is_missing"),
    [("dev", False), ("gone", True), (OWN_NETWORK, False), (HOST_NETWORK, False)],
)
def test_a_network_must_exist(
    network: str, is_missing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def get(name: str) -> object:
        if name != "dev":
            raise NotFound(name)
        return object()

    client = cast(
        Any, SimpleNamespace(networks=SimpleNamespace(get=get), info=lambda: {"Name": "machine-a"})
    )
    monkeypatch.setattr(container, "ensure_image", lambda client, base, say: f"made of {base}")
    monkeypatch.setattr(container, "remove_leftovers", lambda client, cluster: [f"old-{cluster}"])
    standpoint = Standpoint(name="internal", scope=Scope.INTERNAL, network=network, base="base:1")
    messages: list[str] = []
    if is_missing:
        error = raised(EarshotError, container._prepare, client, standpoint, "dev", messages.append)
        assert str(error) == (
            "network gone: does not exist on this engine\n"
            "  fix: deploy the stack: the brokers' network is part of it"
        )
        return
    session = container._prepare(client, standpoint, "dev", messages.append)
    assert session == DockerHostSession(client, standpoint, "made of base:1", "machine-a")
    assert messages == ["removed old-dev, a leftover of a killed run"]


@pytest.mark.parametrize(
    ("network", "place"),
    [
        ("kafka", "machine-a, network kafka"),
        (OWN_NETWORK, "machine-a, network of its own"),
        (HOST_NETWORK, "machine-a, network host"),
    ],
)
@pytest.mark.parametrize("dns", [(), ("192.0.2.53",)])
def test_the_vantage_has_place_and_servers(network: str, place: str, dns: tuple[str, ...]) -> None:
    standpoint = Standpoint(name="internal", scope=Scope.INTERNAL, network=network, dns=dns)
    session = DockerHostSession(cast(Any, None), standpoint, "image", "machine-a")
    report = samples.report([], vantages=[INNER, Vantage(name="x")])
    first_vantage, second_vantage = container._placed(report, session).vantages
    assert (first_vantage.kind, first_vantage.where) == ("container", place)
    assert first_vantage.resolvers == (dns or ("127.0.0.11",))
    assert second_vantage.kind == "host"


class Resource:
    """A container or a network with labels."""

    def __init__(self, name: str, labels: Mapping[str, str]) -> None:
        self.name, self.labels, self.attrs = name, labels, {"Labels": labels}
        self.gone = False

    def remove(self, **reported: object) -> None:
        assert reported == ({"force": True, "v": True} if self.name == "c" else {})
        self.gone = True


class EngineDouble:
    """An engine with one container and one network of a run."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        self.all = [Resource("c", labels), Resource("n", labels)]
        self.containers = self.networks = self
        self._turn = iter(zip(self.all, ({"all": True, "ignore_removed": True}, {}), strict=True))

    def list(self, filters: Mapping[str, str], **options: object) -> list[Resource]:
        resource, expected_options = next(self._turn)
        assert options == expected_options, "stopped ones too"
        assert filters == {"label": f"{leftovers.CLUSTER_LABEL}=dev"}
        return [resource]


def removed_leftovers(labels: Mapping[str, str]) -> list[str]:
    engine = EngineDouble(labels)
    removed_names = leftovers.remove_leftovers(cast(Any, engine), "dev")
    assert len(removed_names) == sum(resource.gone for resource in engine.all)
    return removed_names


def test_what_this_process_made_is_no_leftover() -> None:
    assert removed_leftovers(labels_of("dev")) == []


def test_what_a_process_made_that_is_gone_is_a_leftover() -> None:
    script = (
        "from earshot.remote.leftovers import *; print(labels_of('dev')[OWNER_LABEL], flush=True)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", f"{script}; input()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
    ) as child:  # fmt: skip
        assert child.stdout is not None
        labels = {OWNER_LABEL: child.stdout.readline().strip().removeprefix("dev ")}
        assert removed_leftovers(labels) == []
        child.communicate()
    assert removed_leftovers(labels) == ["container c", "network n"]


def test_a_step_of_the_clock_makes_no_leftover(monkeypatch: pytest.MonkeyPatch) -> None:
    old_labels = labels_of("dev")
    start_time = psutil.Process().create_time()
    # psutil takes the time of the boot from the clock
    monkeypatch.setattr(psutil.Process, "create_time", lambda _: start_time + 3)
    assert removed_leftovers(old_labels) == []


def test_a_process_that_got_its_number_later_is_another() -> None:
    machine = labels_of("dev")[OWNER_LABEL].split()[0]
    assert removed_leftovers({OWNER_LABEL: f"{machine} {os.getpid()} 1.00"}) == [
        "container c",
        "network n",
    ]


@pytest.mark.parametrize(
    "label", ["elsewhere 1 1.00", "", "nonsense", "a b c d", "{here} ² 1", "{here} 99999999999 1"]
)
def test_what_cannot_be_checked_from_here_is_left_alone(label: str) -> None:
    assert removed_leftovers({OWNER_LABEL: label.format(here=socket.gethostname())}) == []


class Unmoved(Deadline):
    """A minute that does not pass."""

    def left(self, limit: float | None = None) -> float:
        return 60.0


class WholeEngineDouble:
    """An engine on which one container of a run is made, and maybe a network for it."""

    def __init__(self, report: Report, code: int = 0, fails: Mapping[str, Exception] = {}) -> None:
        self.networks = SimpleNamespace(create=self.create_network)
        self.containers = SimpleNamespace(create=self.create_container)
        self.steps: list[object] = []
        self.status = "created"
        self._fails = fails
        self.api = SimpleNamespace()
        self._ended = threading.Event()
        self._result = ContainerDouble(code, render(report, "json").encode())
        self.get_archive = self._result.get_archive

    @property
    def attrs(self) -> dict[str, Any]:
        assert self.status == "exited", "asked before it has ended"
        return self._result.attrs

    def step(self, *step_parts: object) -> None:
        self.steps.append(step_parts)
        if step_parts[0] in self._fails:
            raise self._fails[str(step_parts[0])]

    def create_network(self, name: str, driver: str, labels: Mapping[str, str]) -> object:
        self.step("network", name, driver, labels)
        return SimpleNamespace(remove=lambda: self.step("network removed"))

    def create_container(self, image: str, **settings: Any) -> WholeEngineDouble:
        self.step("container", image, settings)
        return self

    def put_archive(self, path: str, archive_bytes: bytes) -> None:
        with tarfile.open(fileobj=io.BytesIO(archive_bytes)) as archive:
            self.step("files", path, archive.getnames())

    def start(self) -> None:
        self.step("start")
        self.status = "running"

    def logs(self, **options: bool) -> WholeEngineDouble:
        assert options == {"stdout": False, "stderr": True, "stream": True, "follow": True}
        return self

    def __iter__(self) -> Iterator[bytes]:
        yield b"line 1\nli"
        yield b"ne 2\n"
        assert self._ended.wait(60)
        time.sleep(0.05)  # the last lines are read after the container has ended
        yield b"\xff 3\nline 4\nline 5\nline 6\nand no"

    def close(self) -> None:
        self.step("log closed")

    def reload(self) -> None:
        assert self.status == "running"
        self.status = "exited"
        self._ended.set()

    def remove(self, force: bool, v: bool) -> None:
        self.step("container removed", force, v)


NAMED = "earshot-internal-0a1b2c3d"
LABELS = {"earshot": "label"}
SAID = ["line 1", "line 2", "\N{REPLACEMENT CHARACTER} 3", "line 4", "line 5", "line 6"]


def validate_on_double(
    engine: WholeEngineDouble, network: str, dns: tuple[str, ...] = ()
) -> Report:
    standpoint = Standpoint(name="internal", scope=Scope.INTERNAL, network=network, dns=dns)
    session = DockerHostSession(cast(Any, engine), standpoint, "image:1", "machine-a")
    messages: list[str] = []
    options = ValidationOptions(client={"security.protocol": "SSL"})
    report = container.validate_on(session, CONTRACT, options, Unmoved(1), messages.append)
    assert messages == SAID
    return report


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secrets.token_hex", lambda size: "0a1b2c3d"[: 2 * size])
    monkeypatch.setattr(container, "labels_of", lambda cluster: LABELS if cluster == "dev" else {})


@pytest.mark.usefixtures("named")
@pytest.mark.parametrize(
    ("network", "joined_network", "hostname"),
    [
        ("kafka", "kafka", "earshot-internal"),
        (OWN_NETWORK, NAMED, "earshot-internal"),
        (HOST_NETWORK, HOST_NETWORK, None),
    ],
)
@pytest.mark.parametrize("dns", [(), ("192.0.2.53", "192.0.2.54")])
def test_a_container_is_made_started_and_removed(
    network: str, joined_network: str, hostname: str | None, dns: tuple[str, ...]
) -> None:
    engine = WholeEngineDouble(complete_report())
    (vantage,) = validate_on_double(engine, network, dns).vantages
    assert (vantage.kind, vantage.resolvers) == ("container", dns or INNER.resolvers)
    options = ValidationOptions(client={"security.protocol": "SSL"})
    container_options = {
        "command": container._command("internal", options, 52.0),
        "name": NAMED,
        "hostname": hostname,
        "network": joined_network,
        "dns": list(dns) or None,
        "labels": LABELS,
        "mem_limit": "2g",
        "pids_limit": 1024,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "log_config": {"type": "json-file"},
    }
    files = ["run", "run/client.properties", "run/contract.json"]
    has_own_network = network == OWN_NETWORK
    assert engine.steps == [
        *([("network", NAMED, "bridge", LABELS)] if has_own_network else []),
        ("container", "image:1", container_options),
        ("files", "/opt/earshot", files),
        ("start",),
        ("log closed",),
        ("container removed", True, True),
        *([("network removed",)] if has_own_network else []),
    ]


@pytest.mark.usefixtures("named")
def test_a_validation_that_ends_in_an_error_is_told_by_its_last_lines() -> None:
    engine = WholeEngineDouble(samples.report([]), code=2)
    with pytest.raises(EarshotError) as caught:
        validate_on_double(engine, OWN_NETWORK)
    reported = "".join(f"\n    {line}" for line in SAID[1:])
    assert caught.value.observed == f"ended with status 2:{reported}"
    assert engine.steps[-2:] == [("container removed", True, True), ("network removed",)]


@pytest.mark.usefixtures("named")
@pytest.mark.parametrize("error", [DockerException("gone"), ConnectionError("gone")])
@pytest.mark.parametrize("step", ["network", "container", "files", "start"])
def test_a_failing_engine_is_one_error_without_leftovers(step: str, error: Exception) -> None:
    engine = WholeEngineDouble(samples.report([]), fails={step: error})
    with pytest.raises(EarshotError) as caught:
        validate_on_double(engine, OWN_NETWORK)
    assert str(caught.value) == "Docker engine of machine-a: ended the run: gone"
    kinds = [cast(tuple[str], engine_step)[0] for engine_step in engine.steps]
    kinds_before_step = kinds[: kinds.index(step)]
    removals = [f"{kind} removed" for kind in ("container", "network") if kind in kinds_before_step]
    assert kinds == [*kinds_before_step, step, *removals]


@pytest.mark.usefixtures("named")
@pytest.mark.parametrize("error", [DockerException("gone"), ConnectionError("gone")])
def test_what_cannot_be_removed_spoils_no_report(error: Exception) -> None:
    fails = {"container removed": error, "network removed": error}
    report = complete_report()
    assert (
        validate_on_double(WholeEngineDouble(report, fails=fails), OWN_NETWORK).cells
        == report.cells
    )


FIRST, SECOND = CandidateEngine(engine="tcp://one:2376"), CandidateEngine(engine="tcp://two:2376")


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> dict[str, Exception]:
    """The failure of each engine, by address. An engine without one is ready."""
    failing: dict[str, Exception] = {}

    @contextlib.contextmanager
    def connect(candidate: CandidateEngine) -> Iterator[str]:
        yield f"client of {candidate.engine}"

    def prepare(client: str, *arguments: object) -> str:
        assert arguments[1:] == ("dev", print)
        engine = client.removeprefix("client of ")
        if engine in failing:
            raise failing[engine]
        return f"session on {engine}"

    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setattr(container, "connect", connect)
    monkeypatch.setattr(container, "_prepare", prepare)
    return failing


STANDPOINT = Standpoint(name="internal", scope=Scope.INTERNAL, engines=(FIRST, SECOND))
REFUSED = EarshotError("network dev", observed="does not exist", remedy="deploy the stack")


@pytest.mark.parametrize("failure", [None, REFUSED, DockerException("no"), ConnectionError("no")])
def test_the_first_working_engine(failure: Exception | None, engines: dict[str, Exception]) -> None:
    if failure is not None:
        engines["tcp://one:2376"] = failure
    with container.docker_session(STANDPOINT, "dev", print) as session:
        assert cast(Any, session) == f"session on tcp://{'two' if failure else 'one'}:2376"


def opened(standpoint: Standpoint = STANDPOINT) -> object:
    with container.docker_session(standpoint, "dev", print) as session:
        return session


def test_each_engine_that_cannot_says_why(engines: dict[str, Exception]) -> None:
    engines["tcp://one:2376"] = REFUSED
    engines["tcp://two:2376"] = ConnectionError("no")
    assert str(raised(EarshotError, opened)) == (
        "its engines: network dev: does not exist; Docker engine at tcp://two:2376: no\n"
        "  fix: deploy the stack"
    )


def test_where_one_engine_is_all_its_error_is_the_error(engines: dict[str, Exception]) -> None:
    """Without a list, the engine is this machine's."""
    alone = STANDPOINT.model_copy(update={"engines": ()})
    assert opened(alone) == "session on None"
    engines["None"] = REFUSED
    assert raised(EarshotError, opened, alone) is REFUSED


class Chunks(list[bytes]):
    """The stderr of a container, in parts as they arrive."""

    def close(self) -> None:
        pass


def printed_lines(*chunks: bytes) -> list[str]:
    """The printed lines of a container that has written ``chunks``."""
    lines: list[str] = []
    double = SimpleNamespace(logs=lambda **_: Chunks(chunks))
    container._Lines(cast(Any, double), lines.append).finish()
    return lines


def test_a_log_without_an_end_prints_some_lines_of_a_limited_length() -> None:
    lines = printed_lines(b"x" * 3000, b"x" * 3000, b"y\n")
    assert [len(line) for line in lines] == [MAX_LINE, 1], "it does not wait for the line's end"
    lines = printed_lines(b"line\n" * 700, b"line\n" * 700, b"last\n")
    assert lines[MAX_LINES - 1 :] == [
        "line",
        f"more than {MAX_LINES} lines: the rest is not shown",
    ]


FORMLESS = "gives an answer of another form than Docker's"


@pytest.mark.parametrize(("answers", "observed"), [
    ({"GET /v1.41/info": document(None)}, FORMLESS),
    ({"GET /v1.41/containers/json": document(None)}, FORMLESS),
    ({"GET /v1.41/networks": document(None)}, FORMLESS),
    ({"POST /v1.41/containers/create": document(None, "201 Created")}, FORMLESS),
    ({"GET /v1.41/containers/[^/]+/json": document({"Id": "x", "Config": {"Tty": False}}),
      "GET /v1.41/containers/[^/]+/logs": document(b"")}, FORMLESS),
    ({"GET /v1.41/info": document({"message": "no"}, "500 Error")}, "no"),
])  # fmt: skip
def test_an_engine_that_answers_nonsense_is_one_error(
    answers: Mapping[str, Answer], observed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container, "ensure_image", lambda *_: "image:1")
    with engine_server(answers) as address:
        candidate = CandidateEngine(engine=address)
        standpoint = Standpoint(
            name="internal", scope=Scope.INTERNAL, network="net", engines=(candidate,)
        )

        def validate() -> Report:
            with container.docker_session(standpoint, "dev", print) as session:
                options = ValidationOptions()
                return container.validate_on(session, CONTRACT, options, Deadline(20), print)

        error = raised(EarshotError, validate)
    assert error.object.startswith("Docker engine") and error.observed.startswith(observed)


def test_an_engine_that_hangs_does_not_outlast_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(container, "ANSWER_SECONDS", 0.2)
    limits: list[float] = []

    def reload() -> None:
        limits.append(SESSION.client.api.timeout)
        raise TimeoutError("no whole answer")

    for seconds in (0.1, 60, 3600):
        with pytest.raises(TimeoutError):
            container._await(SESSION, cast(Any, SimpleNamespace(reload=reload)), Deadline(seconds))
    assert limits[0] == 0.2 and 50 < limits[1] <= 60 and limits[2] == REQUEST_SECONDS
