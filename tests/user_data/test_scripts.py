"""The scripts in user data: their linters, the preparation of an instance, and its reports."""

import itertools
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from earshot.listeners.terms import Role
from earshot.user_data.boot import (
    PROGRESS_SECONDS,
    SHOWN_CLIENTS,
    NodeReport,
    NodeState,
    System,
    ssm_report,
    ssm_secret,
)
from earshot.user_data.render import user_data
from tests.doubles.kafka_tools import KafkaToolDoubles
from tests.user_data.nodes import boot, cluster, node
from tests.user_data.properties import files_in

ROLES = ((Role.BROKER,), (Role.CONTROLLER,), (Role.BROKER, Role.CONTROLLER))
WHERE = ("/earshot/prod/x", "eu-central-1")
QUORUM, TOPICS = "kafka-metadata-quorum.sh", "kafka-topics.sh"


def rendered_script(
    system: System = System.DEBIAN, roles: Any = ROLES[0], is_rich: bool = False
) -> str:
    booting_node = node(3, roles)
    options: dict[str, Any] = {"system": system}
    if is_rich:
        options |= {"report": ssm_report(*WHERE), "secrets": (ssm_secret("broker.pem", *WHERE),)}
        options |= {"leaving": {"EXTERNAL": 9092, "INTERNAL": 19092}}
    return user_data(cluster(booting_node, node(9)), booting_node, boot(**options))


def scripts(text: str) -> list[str]:
    return [
        script for path, script in files_in(text).items() if path.startswith("/usr/local/sbin/")
    ]


VARIANTS = list(itertools.product(System, ROLES, (False, True)))


@pytest.mark.requires("shellcheck")
def test_shellcheck_finds_nothing(tmp_path: Path) -> None:
    paths: list[Path] = []
    for variant in VARIANTS:
        for script in scripts(rendered_script(*variant)):
            paths.append(tmp_path / f"{len(paths)}.sh")
            paths[-1].write_text(script)
    assert len(paths) == 2 * len(VARIANTS)
    completed = subprocess.run(["shellcheck", *paths], capture_output=True, text=True)
    assert (completed.returncode, completed.stdout) == (0, "")


@pytest.mark.requires("shellcheck")
def test_shellcheck_would_find_something(tmp_path: Path) -> None:
    script = scripts(rendered_script())[0]
    path = tmp_path / "script.sh"
    path.write_text(script + "rm $undefined\n")
    assert subprocess.run(["shellcheck", path], capture_output=True).returncode == 1


def schema(path: Path) -> subprocess.CompletedProcess[str]:
    command = ["cloud-init", "schema", "--config-file", str(path)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.requires("cloud-init")
@pytest.mark.parametrize("system", System)
def test_cloud_inits_schema_is_kept_and_refuses_what_breaks_it(
    system: System, tmp_path: Path
) -> None:
    path, text = tmp_path / "user-data", rendered_script(system, ROLES[-1], True)
    path.write_text(text)
    completed = schema(path)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert "Valid" in completed.stdout and "deprecated" not in completed.stdout.lower()
    path.write_text(text.replace("permissions:", "mode:", 1))
    assert schema(path).returncode != 0


def is_blank(device: Path) -> bool:
    """The answer of kafka-prepare for ``device``."""
    script = scripts(rendered_script())[0]
    begin = script.index("is_blank() {")
    function = script[begin : script.index("\n}\n", begin) + 3]
    program = f"set -euo pipefail\ndevice=$1\n{function}\nis_blank"
    command = ["bash", "-c", program, "-", str(device)]
    return subprocess.run(command, capture_output=True).returncode == 0


@pytest.mark.parametrize(("content", "blank"), [
    (bytes(2 << 20), True),
    (bytes(1 << 20) + b"data far from the start", True),
    (bytes((1 << 20) - 4) + b"data", False),
    (b"data" + bytes(2 << 20), False),
    (bytes(510) + b"\x55\xaa" + bytes(2 << 20), False),
    (bytes(1 << 10), False),
    (b"", False),
], ids=["zeros", "far", "near", "first", "signature", "short", "empty"])  # fmt: skip
def test_only_zeros_are_blank(content: bytes, blank: bool, tmp_path: Path) -> None:
    device = tmp_path / "device"
    assert not is_blank(device), "it cannot be read"
    device.write_bytes(content)
    assert is_blank(device) is blank


class Folder:
    """A script of node 3, moved to a folder of the test, where its commands are doubled."""

    def __init__(self, folder: Path) -> None:
        self.bin, self.state = folder / "bin", folder / "state"
        for path in (self.bin, self.state):
            path.mkdir(exist_ok=True)
        self.environment = os.environ | {"PATH": f"{self.bin}:{os.environ['PATH']}"}

    def double(self, name: str, line: str) -> None:
        (self.bin / name).write_text(f"#!/bin/bash\n{line}\n")
        (self.bin / name).chmod(0o755)


class Reporter(Folder):
    """The report script, with doubles of Kafka's tools."""

    def __init__(
        self, folder: Path, roles: tuple[Role, ...] = (Role.BROKER,), **settings: Any
    ) -> None:
        self.tools = KafkaToolDoubles(folder / "bin")
        super().__init__(folder)
        self._reports, self.script = folder / "reports", folder / "report"
        state = {"instance": "i-1", "user-data": "ab" * 32, "booted": "1700000000"}
        for name, text in state.items():
            (self.state / name).write_text(f"{text}\n")
        self.double("tell", f'echo "$1" >>{self._reports}')
        self.double("sleep", "")
        booting_node = node(3, roles)
        *_, text = scripts(
            user_data(
                cluster(booting_node, node(9)), booting_node, boot(report=("tell",), **settings)
            )
        )
        text = text.replace("/opt/kafka/bin", str(self.bin))
        self.script.write_text(text.replace("/run/kafka", str(self.state)))

    def catch_up(self) -> None:
        """Lets the tools answer that the node is in sync."""
        self.tools.answer(QUORUM, CAUGHT_UP)
        self.tools.answer(TOPICS, "")

    def run(self, word: str = "in-sync", ends: int = 0) -> list[NodeReport]:
        command = ["bash", str(self.script), word]
        assert subprocess.run(command, env=self.environment, timeout=60).returncode == ends
        lines = self._reports.read_text().splitlines()
        return [NodeReport.model_validate_json(line) for line in lines]

    def remaining_answers(self, tool: str) -> int:
        """The answers of a tool that are not used up. The last one stays."""
        return len(list((self.bin / f"{tool}.answers").iterdir()))


def test_a_report_has_its_boot_and_the_room_for_data(tmp_path: Path) -> None:
    reporter = Reporter(tmp_path)
    reporter.catch_up()
    (reporter.state / "size").write_text("100\n")
    reporter.double("stat", "echo '5242880 * 4096'")
    last_report = reporter.run()[-1]
    assert (last_report.booted, last_report.size_gib, last_report.free_gib) == (
        1_700_000_000,
        100,
        20,
    )
    assert last_report.lacks(3, "i-1", "ab" * 32, 1_700_000_000, 100) == ""
    assert "earlier boot" in last_report.lacks(3, "i-1", "ab" * 32, 1_700_000_060)
    assert "has 100 GiB, not 200 yet" in last_report.lacks(3, "i-1", "ab" * 32, size_gib=200)


def test_a_node_whose_volume_has_grown_reports_it_once_it_is_in_sync(tmp_path: Path) -> None:
    reporter = Reporter(tmp_path)
    (reporter.state / "size").write_text("200\n")
    reporter.double("stat", "echo '0 * 4096'")
    reporter.catch_up()
    (report,) = reporter.run("grown")
    assert (report.state, report.size_gib) == (NodeState.IN_SYNC, 200)


@pytest.mark.parametrize(
    ("word", "problem", "expected_text"),
    [
        ("starting", "the volume is not attached\n", "starting: the volume is not attached"),
        ("failed", 'bad "quotes" \\ and\nlines\n', "failed: bad quotes  and lines"),
        ("failed", None, "failed: see: journalctl -u kafka-prepare"),
    ],
)
def test_a_problem_is_reported_and_only_a_failure_is_final(
    word: str, problem: str | None, expected_text: str, tmp_path: Path
) -> None:
    reporter = Reporter(tmp_path)
    if problem is not None:
        (reporter.state / "problem").write_text(problem)
    (report,) = reporter.run(word)
    assert (report.lacking, report.is_final) == (expected_text, word == "failed")


class Preparation(Folder):
    """Functions of kafka-prepare."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._calls = folder / "calls"
        script, _, _ = scripts(rendered_script())[0].partition("if [[ ${1:-} == grow ]]; then")
        for original, replacement in {
            "/run/kafka": str(self.state),
            "/usr/local/sbin/": f"{self.bin}/",
            "SECONDS + 300": "SECONDS + 0",
        }.items():
            script = script.replace(original, replacement)
        self._script = script
        for name in ("kafka-report", "xfs_growfs", "sleep"):
            self.double_command(name)
        self.double_command("mountpoint", ends=1)

    def double_command(self, name: str, prints: str = "", ends: int = 0) -> None:
        call = f'echo "{name} $*" >>{self._calls}'
        self.double(name, f"{call}\nprintf %s '{prints}'\nexit {ends}")

    def run(self, *commands: str) -> int:
        command = ["bash", "-c", "\n".join((self._script, *commands))]
        return subprocess.run(command, env=self.environment, timeout=60).returncode

    def calls(self, name: str) -> list[str]:
        lines = self._calls.read_text().splitlines() if self._calls.exists() else []
        return [line for line in lines if line.split()[0] == name]


def test_a_missing_volume_is_retried_and_another_problem_is_final(tmp_path: Path) -> None:
    """An update that was interrupted between launch and attachment continues at any time."""
    preparation = Preparation(tmp_path)
    assert preparation.run("trap finish EXIT", "mount_volume") == 1, "systemd tries again"
    assert preparation.calls("kafka-report") == ["kafka-report starting"]
    assert (preparation.state / "problem").read_text().endswith(" is not attached yet\n")
    unit = files_in(rendered_script())["/etc/systemd/system/kafka-prepare.service"]
    assert "StartLimitIntervalSec=0\n" in unit and "Restart=on-failure\n" in unit
    assert "RestartPreventExitStatus=78\n" in unit
    assert preparation.run("trap finish EXIT", "fail_for_good 'wrong checksum'") == 78
    assert preparation.calls("kafka-report")[1:] == ["kafka-report failed"]


def test_the_file_system_grows_with_its_device_only(tmp_path: Path) -> None:
    preparation = Preparation(tmp_path)
    preparation.double_command("systemctl", ends=3)  # Kafka does not run yet
    preparation.double_command("blockdev", str(100 << 30))
    assert preparation.run("grow", "grow") == 0
    assert preparation.calls("xfs_growfs") == ["xfs_growfs /var/lib/kafka"], "once in a boot"
    assert preparation.calls("kafka-report") == []
    preparation.double_command("systemctl")
    preparation.double_command("blockdev", str(200 << 30))
    assert preparation.run("grow") == 0
    assert len(preparation.calls("xfs_growfs")) == 2
    assert preparation.calls("kafka-report") == ["kafka-report grown"]
    assert (preparation.state / "size").read_text() == "200\n"
    (preparation.state / "size").unlink()
    preparation.double_command("xfs_growfs", ends=1)
    assert preparation.run("grow") == 1
    assert not (preparation.state / "size").exists(), "a failure is not reported as growth"


def test_a_boot_has_one_time_however_often_it_is_prepared(tmp_path: Path) -> None:
    preparation = Preparation(tmp_path)
    preparation.double_command("cat", "i-1")
    preparation.double_command("sha256sum", "ab")
    for time in ("1700000000", "1800000000"):
        preparation.double_command("date", time)
        assert preparation.run("identify") == 0
    assert (preparation.state / "booted").read_text() == "1700000000"


def test_idle_connections_are_kept_alive_before_anything_forgets_them() -> None:
    lines = files_in(rendered_script())["/etc/sysctl.d/kafka.conf"].splitlines()
    settings = dict(line.split(" = ") for line in lines if not line.startswith("#"))
    idle, between, times = (
        int(settings[f"net.ipv4.tcp_keepalive_{name}"]) for name in ("time", "intvl", "probes")
    )
    assert idle + between * times < 350, "security groups of Nitro v6, NAT gateways, balancers"


def partition(replicas: str, insync: str) -> str:
    return f"\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: {replicas}\tIsr: {insync}\tElr: \n"


def quorum(*rows: str) -> str:
    head = "NodeId\tDirectoryId\tLogEndOffset\tLag\tLastFetchTimestamp\tStatus\n"
    return head + "".join(f"{row}\n" for row in rows)


CAUGHT_UP = quorum("9\tAAAA\t900\t0\t1\tLeader", "3\tAAAA\t899\t1\t1\tFollower")


def states(reports: list[NodeReport]) -> list[NodeState]:
    return [report.state for report in reports]


@pytest.mark.parametrize("roles", ROLES)
def test_a_node_is_in_sync_when_its_metadata_is_not_behind(
    tmp_path: Path, roles: tuple[Role, ...]
) -> None:
    reporter = Reporter(tmp_path, roles)
    quorum_with_lag = quorum("9\tAAAA\t900\t0\t1\tLeader", "3\tAAAA\t100\t800\t1\tFollower")
    quorum_without_node = quorum("9\tAAAA\t900\t0\t1\tLeader", "33\tAAAA\t900\t0\t1\tObserver")
    reporter.tools.answer(QUORUM, "", quorum_without_node, quorum_with_lag, CAUGHT_UP)
    reporter.tools.answer(TOPICS, "")
    reports = reporter.run()
    assert states(reports) == [NodeState.STARTING, NodeState.IN_SYNC]
    assert reports[-1].lacks(3, "i-1", "ab" * 32) == ""
    assert reporter.remaining_answers(QUORUM) == 1


def test_a_broker_is_in_sync_when_no_replica_of_its_own_is_behind(tmp_path: Path) -> None:
    reporter = Reporter(tmp_path)
    reporter.tools.answer(QUORUM, CAUGHT_UP)
    behind = partition("1,3,2", "1,2") + partition("1,2", "1")
    of_others = partition("1,3", "3") + partition("33,1", "1") + partition("1,13", "")
    reporter.tools.answer(TOPICS, behind, partition("3", ""), of_others)
    assert states(reporter.run()) == [NodeState.STARTING, NodeState.IN_SYNC]
    assert reporter.remaining_answers(TOPICS) == 1


def test_a_broker_that_is_not_in_sync_yet_reports_each_reason_once(tmp_path: Path) -> None:
    reporter = Reporter(tmp_path)
    text = reporter.script.read_text()
    reporter.script.write_text(re.sub(rf"\b{PROGRESS_SECONDS}\b", "0", text))
    reporter.tools.answer(QUORUM, "", "", CAUGHT_UP)
    reporter.tools.answer(TOPICS, partition("3", ""), "")
    *reports, last_report = reporter.run()
    assert states([last_report]) == [NodeState.IN_SYNC]
    address = "broker-3.kafka.example.com:19092"
    assert [report.lacking for report in reports] == [
        "starting",
        f"starting: no answer at {address}, or node 3 lags behind the quorum",
        "starting: replicas on broker 3 lag behind",
    ]


class TestClientsOfListenersThatLeave:
    """Counted by `ss`, and in every report as long as Kafka runs."""

    def reported(self, folder: Path, *peers: str, fails: bool = False) -> NodeReport:
        """The report with the answer of `ss`. The script ends when it would sleep."""
        reporter = Reporter(folder, leaving={"EXTERNAL": 9092, "INTERNAL": 19092})
        reporter.catch_up()
        lines = "".join(f"0 0 10.0.0.1:9092 {peer}\\n" for peer in peers)
        answer = "exit 1" if fails else f"printf '{lines}'"
        reporter.double("ss", f'echo "$*" >>{folder / "calls"}; {answer}')
        reporter.double("sleep", 'kill -TERM "$PPID"')
        reports = reporter.run(ends=-signal.SIGTERM)
        assert states(reports) == [NodeState.STARTING, NodeState.IN_SYNC]
        assert reports[0].clients is None
        return reports[-1]

    def test_each_address_has_its_number(self, tmp_path: Path) -> None:
        peers = ["10.0.0.5:40000", "10.0.0.5:40002", "[::ffff:10.0.0.6]:1", "[fd00::7]:40000"]
        clients = {"10.0.0.5": 2, "10.0.0.6": 1, "fd00::7": 1}
        report = self.reported(tmp_path, *peers)
        assert report.clients == {"EXTERNAL": clients, "INTERNAL": clients}
        head = "--no-header --tcp --numeric state established sport = :"
        calls = (tmp_path / "calls").read_text().splitlines()
        assert calls == [f"{head}9092", f"{head}19092"]

    @pytest.mark.parametrize(
        ("fails", "clients"), [(False, {"EXTERNAL": {}, "INTERNAL": {}}), (True, None)]
    )
    def test_no_clients_are_not_unknown_clients(
        self, tmp_path: Path, fails: bool, clients: dict[str, dict[str, int]] | None
    ) -> None:
        assert self.reported(tmp_path, fails=fails).clients == clients

    def test_a_parameter_has_room_for_all(self, tmp_path: Path) -> None:
        peers = [f"[fd00:1234:5678:9abc:def0:1234:5678:{id:x}]:40000" for id in range(500)]
        clients = self.reported(tmp_path, *peers).clients
        assert clients is not None
        for origins in clients.values():
            assert len(origins) == SHOWN_CLIENTS + 1
            assert origins["other addresses"] == 500 - SHOWN_CLIENTS
        assert len((tmp_path / "reports").read_bytes().splitlines()[-1]) < 4096
