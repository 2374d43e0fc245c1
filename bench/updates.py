"""`pulumi up` of a program with a `LocalCluster`, beside as many resources that do nothing.

Both programs are in Python, and so are both provider plugins. Kafka runs on this machine.
"""

import contextlib
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import yaml

from bench.cluster import three_brokers
from bench.figures import measure_in_turn, ratio, show
from tests.e2e import project
from tests.e2e.ports import consecutive_ports
from toolchain.paths import ROOT

_LAUNCHER = """#!{python}
import sys
sys.path.insert(0, {root!r})
from pathlib import Path
from bench.bare_provider import BareProvider
from tests.doubles.plugin.serve import main
main(Path(__file__).parent, "1.0.0", BareProvider())
"""
_OURS = """
from earshot_pulumi import LocalCluster

listeners = [
    {{"name": "INTERNAL", "port": {0}, "scopes": ["internal"]}},
    {{"name": "HOST", "port": {1}, "scopes": ["host"]}},
]
inputs = {{
    "listeners": listeners, "controllers": {{"port": {2}}}, "validation": {{"records": 0}},
}}
pulumi.export("proof", LocalCluster("kafka", inputs).proof)
"""
_BARE = """
for number in range({resources}):
    pulumi.CustomResource("bare:index:Thing", f"thing-{{number}}", {{"text": "x"}})
"""
SAMPLE_SECONDS = 0.01


@dataclass
class Updates:
    """Two stacks; `up` makes them, `up` again changes nothing."""

    ours: project.Project
    bare: project.Project
    resources: int = 0
    """The number of resources of each stack."""
    pythons: dict[str, list[int]] = field(default_factory=dict)
    """The numbers of Python processes of each run, by kind of update."""

    def ours_first(self) -> float:
        """Seconds of an update that starts three brokers and proves them."""
        _destroy(self.ours)
        seconds = self._up(self.ours, "first, three brokers")
        self.resources = len(self.ours.resources())
        return seconds

    def bare_first(self) -> float:
        """Seconds of an update that makes as many resources."""
        _destroy(self.bare)
        self.bare.write(_BARE.format(resources=self.resources))
        return self._up(self.bare, "first, bare")

    def by_hand(self) -> float:
        """Seconds until three brokers serve, started in parallel without Pulumi."""
        begun = time.monotonic()
        with three_brokers():
            return time.monotonic() - begun

    def ours_again(self) -> float:
        """Seconds of an update without a change."""
        return self._up(self.ours, "unchanged, three brokers")

    def bare_again(self) -> float:
        return self._up(self.bare, "unchanged, bare")

    def _up(self, updated_project: project.Project, name: str) -> float:
        start_time = time.monotonic()
        with updated_project.updating() as child, counted_pythons(child.pid) as pids:
            output, _ = child.communicate()
        seconds = time.monotonic() - start_time
        assert child.returncode == 0, output[-3000:]
        self.pythons.setdefault(name, []).append(len(pids))
        return seconds


@contextlib.contextmanager
def counted_pythons(pid: int) -> Iterator[set[int]]:
    """The Python processes below process ``pid`` so far, by their ids."""
    pids: set[int] = set()
    ended = threading.Event()

    def look() -> None:
        with contextlib.suppress(psutil.NoSuchProcess):
            while not ended.wait(SAMPLE_SECONDS):
                for child in psutil.Process(pid).children(recursive=True):
                    with contextlib.suppress(psutil.Error):
                        if child.name().startswith("python"):
                            pids.add(child.pid)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield pids
    finally:
        ended.set()
        thread.join()


@contextlib.contextmanager
def updating() -> Iterator[Updates]:
    """The stacks, of which nothing is left at the end."""
    with tempfile.TemporaryDirectory(prefix="earshot-bench-") as folder:
        ours, bare = (_project(Path(folder) / name) for name in ("ours", "bare"))
        ports = consecutive_ports(3, 3)
        ours.write(_OURS.format(*ports))
        _add_bare_plugin(bare)
        bench = Updates(ours, bare)
        try:
            yield bench
        finally:
            _destroy(ours)


def _project(folder: Path) -> project.Project:
    new_project = project.Project(folder, "import pulumi", project.prepare_home(folder, {}))
    new_project.run("stack", "init", project.STACK)
    return new_project


def _add_bare_plugin(bare_project: project.Project) -> None:
    folder = bare_project.folder / "plugin"
    folder.mkdir()
    launcher = folder / "pulumi-resource-bare"
    launcher.write_text(_LAUNCHER.format(python=sys.executable, root=str(ROOT)))
    launcher.chmod(0o755)
    project_document = yaml.safe_load((bare_project.folder / "Pulumi.yaml").read_text())
    project_document["plugins"] = {"providers": [{"name": "bare", "path": str(folder)}]}
    (bare_project.folder / "Pulumi.yaml").write_text(yaml.safe_dump(project_document))


def _destroy(emptied_project: project.Project) -> None:
    emptied_project.destroy()


def measured(runs: int) -> None:
    """`pulumi up` of three brokers of this machine, compared with as many idle resources."""
    with updating() as bench:
        first_seconds = measure_in_turn(
            {
                "first pulumi up, three brokers proved": bench.ours_first,
                "first pulumi up, bare resources": bench.bare_first,
                "three brokers started, without Pulumi": bench.by_hand,
            },
            runs,
        )
        repeated_seconds = measure_in_turn(
            {
                "unchanged pulumi up, three brokers": bench.ours_again,
                "unchanged pulumi up, bare resources": bench.bare_again,
            },
            max(5, runs),
        )
    first_update, bare, by_hand = map(statistics.median, first_seconds.values())
    rows = [("plan, gate, readiness and proof add", f"{first_update - bare - by_hand:+.2f} s", "")]
    rows += [
        (f"Python processes, {name}", str(max(counts)), "")
        for name, counts in bench.pythons.items()
    ]
    rows.append(("unchanged, three brokers / bare", ratio(*repeated_seconds.values()), ""))
    title = f"Updates of {bench.resources} resources on this machine"
    show(title, first_seconds | repeated_seconds, rows)
