"""The scripts in user data: by their linters, and the report by what it says of a node."""

import itertools
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from earshot.listeners.terms import Role
from earshot.user_data.boot import (
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

ROLES = ((Role.BROKER,), (Role.CONTROLLER,), (Role.BROKER, Role.CONTROLLER))
WHERE = ("/earshot/prod/x", "eu-central-1")


def rendered(system: System, roles: tuple[Role, ...], rich: bool) -> str:
    own = node(3, roles)
    given = boot(system=system)
    if rich:
        given = boot(
            system=system,
            report=ssm_report(*WHERE),
            secrets=(ssm_secret("broker.pem", *WHERE),),
            leaving={"EXTERNAL": 9092, "INTERNAL": 19092},
        )
    return user_data(cluster(own, node(9)), own, given)


def scripts(text: str) -> Iterator[str]:
    for item in yaml.safe_load(text)["write_files"]:
        if item.get("permissions") == "0755":
            yield item["content"]


VARIANTS = list(itertools.product(System, ROLES, (False, True)))


@pytest.mark.requires("shellcheck")
def test_shellcheck_finds_nothing(tmp_path: Path) -> None:
    paths: list[Path] = []
    for variant in VARIANTS:
        for script in scripts(rendered(*variant)):
            paths.append(tmp_path / f"{len(paths)}.sh")
            paths[-1].write_text(script)
    assert len(paths) == 2 * len(VARIANTS)
    done = subprocess.run(["shellcheck", *paths], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.requires("shellcheck")
def test_shellcheck_would_find_something(tmp_path: Path) -> None:
    script = next(scripts(rendered(System.DEBIAN, ROLES[0], False)))
    path = tmp_path / "script.sh"
    path.write_text(script + "rm $undefined\n")
    assert subprocess.run(["shellcheck", path], capture_output=True).returncode == 1


@pytest.mark.requires("cloud-init")
@pytest.mark.parametrize("system", System)
def test_cloud_inits_schema_is_kept(system: System, tmp_path: Path) -> None:
    path = tmp_path / "user-data"
    path.write_text(rendered(system, ROLES[-1], True))
    done = schema(path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Valid" in done.stdout and "deprecated" not in done.stdout.lower()


@pytest.mark.requires("cloud-init")
def test_cloud_inits_schema_refuses_what_breaks_it(tmp_path: Path) -> None:
    path = tmp_path / "user-data"
    path.write_text(rendered(System.DEBIAN, ROLES[0], False).replace("permissions:", "mode:", 1))
    assert schema(path).returncode != 0


def schema(path: Path) -> subprocess.CompletedProcess[str]:
    command = ["cloud-init", "schema", "--config-file", str(path)]
    return subprocess.run(command, capture_output=True, text=True)


def is_blank(device: Path) -> bool:
    """What kafka-prepare would say of ``device``."""
    script = next(scripts(rendered(System.DEBIAN, ROLES[0], False)))
    begin = script.index("is_blank() {")
    function = script[begin : script.index("\n}\n", begin) + 3]
    program = f"set -euo pipefail\ndevice=$1\n{function}\nis_blank"
    command = ["bash", "-c", program, "-", str(device)]
    return subprocess.run(command, capture_output=True).returncode == 0


@pytest.mark.parametrize(
    ("content", "blank"),
    [
        (bytes(2 << 20), True),
        (bytes(1 << 20) + b"data far from the start", True),
        (bytes((1 << 20) - 4) + b"data", False),
        (b"data" + bytes(2 << 20), False),
        (bytes(510) + b"\x55\xaa" + bytes(2 << 20), False),
        (bytes(1 << 10), False),
        (b"", False),
    ],
    ids=["zeros", "far", "near", "first", "signature", "short", "empty"],
)
def test_only_zeros_are_blank(content: bytes, blank: bool, tmp_path: Path) -> None:
    device = tmp_path / "device"
    device.write_bytes(content)
    assert is_blank(device) is blank


def test_what_cannot_be_read_is_not_blank(tmp_path: Path) -> None:
    assert not is_blank(tmp_path / "none")


class Reporter:
    """The report script of node 3, moved to ``folder``, with Kafka's tools doubled."""

    def __init__(self, folder: Path, roles: tuple[Role, ...], **settings: Any) -> None:
        self.tools = KafkaToolDoubles(folder / "bin")
        self._told = folder / "told"
        self.state = folder / "state"
        self.state.mkdir()
        (self.state / "instance").write_text("i-1\n")
        (self.state / "user-data").write_text("ab" * 32 + "\n")
        (self.state / "booted").write_text("1700000000\n")
        self._double(folder / "bin" / "tell", f'echo "$1" >>{self._told}')
        self._double(folder / "bin" / "sleep", "")
        own = node(3, roles)
        plan = cluster(own, node(9))
        *_, script = scripts(user_data(plan, own, boot(report=("tell",), **settings)))
        self._script = folder / "report"
        self._script.write_text(
            script.replace("/opt/kafka/bin", str(folder / "bin")).replace(
                "/run/kafka", str(self.state)
            )
        )
        self._path = f"{folder / 'bin'}:{os.environ['PATH']}"

        self._bin = folder / "bin"

    def double(self, name: str, line: str) -> None:
        self._double(self._bin / name, line)

    def _double(self, path: Path, line: str) -> None:
        path.write_text(f"#!/bin/bash\n{line}\n")
        path.chmod(0o755)

    def connected(self, *lines: str) -> None:
        """What `ss` shows at first; after it, nothing can be listed and the script ends."""
        shown = "".join(f"0 0 10.0.0.1:9092 {peer}\\n" for peer in lines)
        self._double(self._bin / "ss", f"echo \"$*\" >>{self._told}.ss; printf '{shown}'")
        self._double(self._bin / "sleep", 'kill -TERM "$PPID"')

    def run(self, word: str = "in-sync", ends: int = 0) -> list[NodeReport]:
        environment = os.environ | {"PATH": self._path}
        done = subprocess.run(["bash", self._script, word], env=environment, timeout=60)
        assert done.returncode == ends
        return [
            NodeReport.model_validate(json.loads(line))
            for line in self._told.read_text().splitlines()
        ]


def test_a_report_tells_its_boot_and_the_room_for_data(tmp_path: Path) -> None:
    reporter = Reporter(tmp_path, (Role.BROKER,))
    reporter.tools.answer(QUORUM, CAUGHT_UP)
    reporter.tools.answer(TOPICS, "")
    (reporter.state / "size").write_text("100\n")
    reporter.double("stat", "echo '5242880 * 4096'")
    last = reporter.run()[-1]
    assert (last.booted, last.size_gib, last.free_gib) == (1_700_000_000, 100, 20)
    assert last.lacks(3, "i-1", "ab" * 32, 1_700_000_000, 100) == ""
    assert "earlier boot" in last.lacks(3, "i-1", "ab" * 32, 1_700_000_060)
    assert "has 100 GiB, not 200 yet" in last.lacks(3, "i-1", "ab" * 32, size_gib=200)


def test_a_node_whose_volume_has_grown_reports_it_once_it_is_in_sync(tmp_path: Path) -> None:
    reporter = Reporter(tmp_path, (Role.BROKER,))
    (reporter.state / "size").write_text("200\n")
    reporter.double("stat", "echo '0 * 4096'")
    reporter.tools.answer(QUORUM, CAUGHT_UP)
    reporter.tools.answer(TOPICS, "")
    (report,) = reporter.run("grown")
    assert (report.state, report.size_gib) == (NodeState.IN_SYNC, 200)


def test_what_keeps_a_node_from_starting_is_reported_and_not_final(tmp_path: Path) -> None:
    reporter = Reporter(tmp_path, (Role.BROKER,))
    (reporter.state / "problem").write_text("the volume is not attached yet\n")
    (report,) = reporter.run("starting")
    assert (report.lacking, report.is_final) == ("starting: the volume is not attached yet", False)


class Preparation:
    """Functions of kafka-prepare, moved to ``folder``, with the commands that they call doubled."""

    def __init__(self, folder: Path) -> None:
        self._bin, self.state, self.calls = folder / "bin", folder / "state", folder / "calls"
        for made in (self._bin, self.state):
            made.mkdir()
        script = next(scripts(rendered(System.DEBIAN, ROLES[0], False)))
        head, _, _ = script.partition("if [[ ${1:-} == grow ]]; then")
        self._script = (
            head.replace("/run/kafka", str(self.state))
            .replace("/usr/local/sbin/", f"{self._bin}/")
            .replace("SECONDS + 300", "SECONDS + 0")
        )
        for name in ("kafka-report", "xfs_growfs", "sleep"):
            self.double(name)
        self.double("mountpoint", ends=1)

    def double(self, name: str, prints: str = "", ends: int = 0) -> None:
        line = f'echo "{name} $*" >>{self.calls}'
        (self._bin / name).write_text(f"#!/bin/bash\n{line}\nprintf %s '{prints}'\nexit {ends}\n")
        (self._bin / name).chmod(0o755)

    def run(self, *commands: str) -> int:
        program = "\n".join((self._script, *commands))
        environment = os.environ | {"PATH": f"{self._bin}:{os.environ['PATH']}"}
        return subprocess.run(["bash", "-c", program], env=environment, timeout=60).returncode

    def called(self, name: str) -> list[str]:
        lines = self.calls.read_text().splitlines() if self.calls.exists() else []
        return [line for line in lines if line.split()[0] == name]


def test_a_volume_that_is_not_attached_is_waited_for_and_tried_again(tmp_path: Path) -> None:
    """An update that died between launch and attachment is gone on with at any time."""
    preparation = Preparation(tmp_path)
    assert preparation.run("trap finish EXIT", "mount_volume") == 1, "systemd tries again"
    assert preparation.called("kafka-report") == ["kafka-report starting"]
    assert (preparation.state / "problem").read_text().endswith(" is not attached yet\n")
    unit = next(
        it["content"]
        for it in yaml.safe_load(rendered(System.DEBIAN, ROLES[0], False))["write_files"]
        if it["path"].endswith("/kafka-prepare.service")
    )
    assert "StartLimitIntervalSec=0\n" in unit and "Restart=on-failure\n" in unit
    assert "RestartPreventExitStatus=78\n" in unit


def test_what_would_fail_again_is_reported_as_final(tmp_path: Path) -> None:
    preparation = Preparation(tmp_path)
    assert preparation.run("trap finish EXIT", "fail_for_good 'wrong checksum'") == 78
    assert preparation.called("kafka-report") == ["kafka-report failed"]


def test_the_file_system_grows_with_its_device_and_is_left_alone_otherwise(tmp_path: Path) -> None:
    preparation = Preparation(tmp_path)
    preparation.double("systemctl", ends=3)  # Kafka does not run yet
    preparation.double("blockdev", str(100 << 30))
    assert preparation.run("grow", "grow") == 0
    assert preparation.called("xfs_growfs") == ["xfs_growfs /var/lib/kafka"], "once in a boot"
    assert preparation.called("kafka-report") == []
    preparation.double("systemctl")
    preparation.double("blockdev", str(200 << 30))
    assert preparation.run("grow") == 0
    assert len(preparation.called("xfs_growfs")) == 2
    assert preparation.called("kafka-report") == ["kafka-report grown"]
    assert (preparation.state / "size").read_text() == "200\n"


def test_what_cannot_grow_is_not_told_as_grown(tmp_path: Path) -> None:
    preparation = Preparation(tmp_path)
    preparation.double("blockdev", str(100 << 30))
    preparation.double("xfs_growfs", ends=1)
    assert preparation.run("grow") == 1
    assert not (preparation.state / "size").exists()


def test_a_boot_has_one_time_however_often_it_is_prepared(tmp_path: Path) -> None:
    preparation = Preparation(tmp_path)
    preparation.double("cat", "i-1")
    preparation.double("sha256sum", "ab")
    preparation.double("date", "1700000000")
    assert preparation.run("identify") == 0
    preparation.double("date", "1800000000")
    assert preparation.run("identify") == 0
    assert (preparation.state / "booted").read_text() == "1700000000"


def test_idle_connections_are_kept_alive_before_anything_forgets_them() -> None:
    (text,) = (
        it["content"]
        for it in yaml.safe_load(rendered(System.DEBIAN, ROLES[0], False))["write_files"]
        if it["path"] == "/etc/sysctl.d/kafka.conf"
    )
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    known = dict(line.split(" = ") for line in lines)
    idle, between, times = (
        int(known[f"net.ipv4.tcp_keepalive_{it}"]) for it in ("time", "intvl", "probes")
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


def left(folder: Path, tool: str) -> int:
    """How many answers the report had no use for, the last one included."""
    return len(list((folder / f"bin/{tool}.answers").iterdir()))


QUORUM, TOPICS = "kafka-metadata-quorum.sh", "kafka-topics.sh"


@pytest.mark.parametrize("roles", ROLES)
def test_a_node_is_in_sync_when_its_metadata_is_not_behind(
    tmp_path: Path, roles: tuple[Role, ...]
) -> None:
    reporter = Reporter(tmp_path, roles)
    far = quorum("9\tAAAA\t900\t0\t1\tLeader", "3\tAAAA\t100\t800\t1\tFollower")
    others = quorum("9\tAAAA\t900\t0\t1\tLeader", "33\tAAAA\t900\t0\t1\tObserver")
    reporter.tools.answer(QUORUM, "", others, far, CAUGHT_UP)
    reporter.tools.answer(TOPICS, "")
    reports = reporter.run()
    assert states(reports) == [NodeState.STARTING, NodeState.IN_SYNC]
    assert reports[-1].lacks(3, "i-1", "ab" * 32) == ""
    assert left(tmp_path, QUORUM) == 1


def test_a_broker_is_in_sync_when_no_replica_of_its_own_is_behind(tmp_path: Path) -> None:
    reporter = Reporter(tmp_path, (Role.BROKER,))
    reporter.tools.answer(QUORUM, CAUGHT_UP)
    behind = partition("1,3,2", "1,2") + partition("1,2", "1")
    of_others = partition("1,3", "3") + partition("33,1", "1") + partition("1,13", "")
    reporter.tools.answer(TOPICS, behind, partition("3", ""), of_others)
    assert states(reporter.run()) == [NodeState.STARTING, NodeState.IN_SYNC]
    assert left(tmp_path, TOPICS) == 1


def test_a_failure_is_reported_with_its_reason(tmp_path: Path) -> None:
    reporter = Reporter(tmp_path, (Role.BROKER,))
    (reporter.state / "problem").write_text('bad "quotes" \\ and\nlines\n')
    (report,) = reporter.run("failed")
    assert (report.state, report.detail) == (NodeState.FAILED, "bad quotes  and lines")


def test_a_failure_without_a_reason_says_where_to_look(tmp_path: Path) -> None:
    (report,) = Reporter(tmp_path, (Role.BROKER,)).run("failed")
    assert report.detail == "see: journalctl -u kafka-prepare"


def test_a_broker_that_takes_too_long_says_so_and_may_yet_come(tmp_path: Path) -> None:
    reporter = Reporter(tmp_path, (Role.BROKER,))
    script = tmp_path / "report"
    script.write_text(script.read_text().replace("SECONDS >= 900", "SECONDS >= 0"))
    reporter.tools.answer(QUORUM, "", "", CAUGHT_UP)
    reporter.tools.answer(TOPICS, "")
    reports = reporter.run()
    assert states(reports) == [NodeState.STARTING, NodeState.FAILED, NodeState.IN_SYNC]
    address = "broker-3.kafka.example.com:19092"
    assert reports[1].detail == (
        f"not in sync within 900 s: no answer at {address}, or node 3 lags behind the quorum"
    )


class TestClientsOfListenersThatLeave:
    """Counted by `ss`, told with every report as long as Kafka runs."""

    def reported(self, folder: Path, *peers: str) -> NodeReport:
        leaving = {"EXTERNAL": 9092, "INTERNAL": 19092}
        reporter = Reporter(folder, (Role.BROKER,), leaving=leaving)
        reporter.tools.answer(QUORUM, CAUGHT_UP)
        reporter.tools.answer(TOPICS, "")
        reporter.connected(*peers)
        reports = reporter.run(ends=-signal.SIGTERM)
        assert states(reports) == [NodeState.STARTING, NodeState.IN_SYNC]
        assert reports[0].clients is None
        return reports[-1]

    def test_each_address_has_its_number(self, tmp_path: Path) -> None:
        peers = ["10.0.0.5:40000", "10.0.0.5:40002", "[::ffff:10.0.0.6]:1", "[fd00::7]:40000"]
        found = {"10.0.0.5": 2, "10.0.0.6": 1, "fd00::7": 1}
        report = self.reported(tmp_path, *peers)
        assert report.clients == {"EXTERNAL": found, "INTERNAL": found}
        asked = (tmp_path / "told.ss").read_text().splitlines()
        head = "--no-header --tcp --numeric state established sport = :"
        assert asked == [f"{head}9092", f"{head}19092"]

    def test_no_clients(self, tmp_path: Path) -> None:
        assert self.reported(tmp_path).clients == {"EXTERNAL": {}, "INTERNAL": {}}

    def test_a_parameter_has_room_for_all(self, tmp_path: Path) -> None:
        peers = [f"[fd00:1234:5678:9abc:def0:1234:5678:{it:x}]:40000" for it in range(500)]
        clients = self.reported(tmp_path, *peers).clients
        assert clients is not None
        for origins in clients.values():
            assert len(origins) == SHOWN_CLIENTS + 1
            assert origins["other addresses"] == 500 - SHOWN_CLIENTS
        assert len((tmp_path / "told").read_bytes().splitlines()[-1]) < 4096

    def test_clients_that_cannot_be_counted_are_not_none(self, tmp_path: Path) -> None:
        reporter = Reporter(tmp_path, (Role.BROKER,), leaving={"EXTERNAL": 9092})
        reporter.tools.answer(QUORUM, CAUGHT_UP)
        reporter.tools.answer(TOPICS, "")
        reporter.connected()
        (tmp_path / "bin" / "ss").write_text("#!/bin/bash\nexit 1\n")
        assert reporter.run(ends=-signal.SIGTERM)[-1].clients is None
