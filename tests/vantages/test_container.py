"""What a container is given, and what is made of how it ended."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import psutil
import pytest

from earshot.errors import EarshotError
from earshot.listeners.model import Scope
from earshot.listeners.properties import read_properties
from earshot.report import render
from earshot.validation.result import Report, Vantage
from earshot.validation.run import ValidationOptions
from earshot.vantages import container, leftovers
from earshot.vantages.container import FOLDER, NOBODY, Ground
from earshot.vantages.leftovers import OWNER_LABEL, labels_of
from earshot.vantages.standpoint import APART, HOST_NETWORK, Standpoint
from tests.report import samples


def test_the_command_is_what_a_user_would_say() -> None:
    options = ValidationOptions(records=7, client={"security.protocol": "SSL"})
    command = container._command("internal", options, 12.34)
    assert command[:2] == ["validate", "--contract"]
    pairs = dict(zip(command[1::2], command[2::2], strict=True))
    assert (pairs["--vantage"], pairs["--records"], pairs["--deadline"]) == (
        "internal",
        "7",
        "12.3",
    )
    assert pairs["--client-config"] == f"{FOLDER}/client.properties"
    assert "--client-config" not in container._command("internal", ValidationOptions(), 9)


def test_files_that_the_client_properties_name_go_with_them(tmp_path: Path) -> None:
    authority = tmp_path / "ca.pem"
    authority.write_bytes(b"certificate")
    client = {
        "ssl.truststore.location": str(authority),
        "sasl.jaas.config": 'required username="a\\b" password="c=d";',
    }
    files = container._client_files(client)
    assert files["ssl.truststore.location"] == b"certificate"
    found = read_properties(files["client.properties"].decode()).values
    assert found == client | {"ssl.truststore.location": f"{FOLDER}/ssl.truststore.location"}
    assert container._client_files({}) == {}


def test_a_file_that_is_missing_is_named() -> None:
    with pytest.raises(EarshotError, match=r"ssl\.truststore\.location: /none/ca\.pem"):
        container._client_files({"ssl.truststore.location": "/none/ca.pem"})


def test_files_are_for_the_containers_user_alone() -> None:
    with tarfile.open(fileobj=io.BytesIO(container._archive({"a": b"1"}))) as archive:
        members = archive.getmembers()
    assert [(it.name, it.isdir(), oct(it.mode), it.uid) for it in members] == [
        ("run", True, "0o700", NOBODY),
        ("run/a", False, "0o600", NOBODY),
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


def outcome(double: ContainerDouble, lines: list[str]) -> Report:
    return container._report(cast(Any, double), lines)


@pytest.mark.parametrize("name", ["all_pass", "dead_broker", "inconclusive"])
def test_a_report_comes_back_whatever_it_says(name: str) -> None:
    report = samples.ALL[name]()
    double = ContainerDouble(report.exit_code, render(report, "json").encode())
    assert outcome(double, []) == report


@pytest.mark.parametrize(
    ("code", "killed", "lines", "observed"),
    [
        (2, False, ["error: Java: none"], "ended with status 2:\n    error: Java: none"),
        (137, True, [], "needed more memory than 2g; ended with status 137"),
    ],
)
def test_no_report_is_an_error_with_the_last_words(
    code: int, killed: bool, lines: list[str], observed: str
) -> None:
    with pytest.raises(EarshotError) as caught:
        outcome(ContainerDouble(code, killed=killed), lines)
    assert caught.value.observed == observed


@pytest.mark.parametrize(
    ("network", "where"),
    [
        ("kafka", "machine-a, network kafka"),
        (APART, "machine-a, network of its own"),
        (HOST_NETWORK, "machine-a, network host"),
    ],
)
def test_the_vantage_says_where_it_stood(network: str, where: str) -> None:
    standpoint = Standpoint(name="internal", scope=Scope.INTERNAL, network=network)
    ground = Ground(cast(Any, None), standpoint, "image", "machine-a")
    seen = samples.report([], vantages=[INNER, Vantage(name="x")])
    first, second = container._placed(seen, ground).vantages
    assert (first.kind, first.where) == ("container", where)
    assert second.kind == "host"
    assert first.resolvers == ("127.0.0.11",)


def test_the_vantage_names_the_dns_servers_it_was_given() -> None:
    standpoint = Standpoint(name="external", scope=Scope.EXTERNAL, dns=("192.0.2.53",))
    ground = Ground(cast(Any, None), standpoint, "image", "machine-a")
    seen = samples.report([], vantages=[Vantage(name="external", resolvers=("127.0.0.11",))])
    (found,) = container._placed(seen, ground).vantages
    assert found.resolvers == ("192.0.2.53",)


INNER = Vantage(name="internal", where="id", resolvers=("127.0.0.11",))


class Resource:
    """A container or a network with labels."""

    def __init__(self, name: str, labels: Mapping[str, str]) -> None:
        self.name, self.labels, self.attrs = name, labels, {"Labels": labels}
        self.gone = False

    def remove(self, **_: object) -> None:
        self.gone = True


class EngineDouble:
    """An engine with one container and one network of a run."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        self.all = [Resource("c", labels), Resource("n", labels)]
        self.containers = self.networks = self
        self._turn = iter(self.all)

    def list(self, filters: Mapping[str, str], **_: object) -> list[Resource]:
        assert filters == {"label": f"{leftovers.CLUSTER_LABEL}=dev"}
        return [next(self._turn)]


def removed(labels: Mapping[str, str]) -> list[str]:
    engine = EngineDouble(labels)
    gone = leftovers.remove_leftovers(cast(Any, engine), "dev")
    assert len(gone) == sum(item.gone for item in engine.all)
    return gone


def test_what_this_process_made_is_no_leftover() -> None:
    assert removed(labels_of("dev")) == []


def test_what_a_process_made_that_is_gone_is_a_leftover() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        started = psutil.Process(child.pid).create_time()
        machine = labels_of("dev")[OWNER_LABEL].split()[0]
        labels = {OWNER_LABEL: f"{machine} {child.pid} {started:.2f}"}
        assert removed(labels) == []
    assert removed(labels) == ["container c", "network n"]


def test_a_process_that_got_its_number_later_is_another() -> None:
    machine = labels_of("dev")[OWNER_LABEL].split()[0]
    assert removed({OWNER_LABEL: f"{machine} {os.getpid()} 1.00"}) == ["container c", "network n"]


@pytest.mark.parametrize("label", ["elsewhere 1 1.00", "", "nonsense", "a b c d"])
def test_what_cannot_be_judged_from_here_is_left_alone(label: str) -> None:
    assert removed({OWNER_LABEL: label}) == []
