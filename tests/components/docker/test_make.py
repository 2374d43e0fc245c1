"""What a docker stack needs before Pulumi runs: an engine that answers, a plugin that is there."""

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from earshot_pulumi.docker import labels, make

from earshot.config.docker import DockerSpec
from earshot.config.docker_host import DockerHost
from earshot.errors import EarshotError
from earshot.listeners.terms import Scope
from earshot.placement import standpoint
from earshot.placement.standpoint import CandidateEngine, Standpoint, to_json
from earshot.project import Project
from earshot.transition import memory
from tests.transition.test_steps import BEFORE
from toolchain import stack as stack_module
from toolchain.stack import Stack, main

NO_ENGINE = "tcp://127.0.0.1:1"
"""An engine that does not exist."""


def spec(engine: str) -> DockerSpec:
    return DockerSpec(placement="docker", hosts=(DockerHost(engine=engine),))


def test_no_engine_no_stack() -> None:
    with pytest.raises(EarshotError, match="does not answer") as caught:
        make.check(spec(NO_ENGINE))
    assert "apt-get install docker.io" in str(caught.value)


def test_an_engine_of_a_host_that_the_stack_made_is_asked_for_before_a_refresh(
    tmp_path: Path,
) -> None:
    zones = {"a": "eu-central-1a", "b": "eu-central-1b"}
    made = {"aws": {"host_zones": zones, "deployers": {"here": "10.1.0.0/24"}}}
    hosts = DockerSpec.model_validate({"placement": "docker", "hosts": made})
    engines = (CandidateEngine(engine=NO_ENGINE),)
    vantage = Standpoint(name="internal", scope=Scope.INTERNAL, engines=engines)
    (tmp_path / standpoint.FILE).write_text(to_json((vantage,)))
    make.repair(hosts, "mine", tmp_path, print)  # as after `make down`
    memory.complete(tmp_path, BEFORE, 0)
    with pytest.raises(EarshotError, match="it is on a host of this stack") as caught:
        make.repair(hosts, "mine", tmp_path, print)
    assert f"Docker engine at {NO_ENGINE}: does not answer" in str(caught.value)
    assert "systemctl status docker-prepare docker" in str(caught.value)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose docker template names an engine that does not exist."""
    (tmp_path / "Pulumi.yaml").write_text(
        "name: earshot\nruntime: python\nstackConfigDir: stacks\n"
    )
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "Pulumi.docker.yaml").write_text(
        "config:\n  earshot:cluster:\n    placement: docker\n"
        f"    hosts: [{{name: local, engine: '{NO_ENGINE}'}}]\n"
    )
    (tmp_path / "stacks" / "Pulumi.local.yaml").write_text(
        "config:\n  earshot:cluster:\n    placement: local\n"
    )
    monkeypatch.setattr(stack_module, "ROOT", tmp_path)
    monkeypatch.setattr(stack_module, "variables", lambda _stack: {})
    return tmp_path


def test_make_up_says_how_to_get_an_engine_before_anything_else(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Stack, "_pulumi", lambda *_: pytest.fail("Pulumi was run"))
    monkeypatch.setattr(Stack, "_earshot", lambda *_: pytest.fail("something else came first"))
    assert main(["up", "--stack", "docker-mine"]) == 2
    reported = capsys.readouterr().err
    assert f"Docker engine at {NO_ENGINE}: does not answer" in reported
    assert "apt-get install docker.io" in reported
    assert Project(checkout).stack_file("docker-mine").exists(), "made from the template"


def test_a_local_stack_needs_no_engine(checkout: Path) -> None:
    Stack("local")._check_needs()
    Stack("nobody")._check_needs()
    with pytest.raises(EarshotError, match="does not answer"):
        Stack("docker")._check_needs()


class Volume:
    """A double of a volume on an engine."""

    def __init__(self, name: str, **more: str) -> None:
        self.name, self.attrs = name, {"Labels": {labels.STACK: "mine", **more}}
        self.removed = False

    def remove(self) -> None:
        self.removed = True


OWN, OTHER = "5L6g3nShT-eMCtK-X86swQ", "7QhzWcGeQ9mTn0UP4nS3Rg"


@pytest.mark.parametrize(
    ("known", "removed"),
    [
        ("cluster-id", [False, True, False]),
        ("report.json", [True, False, False]),  # what `make down` of an earlier release leaves
        (None, [False, False, False]),
    ],
)
def test_make_clean_leaves_the_data_of_another_checkouts_stack_of_that_name(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    known: str | None,
    removed: list[bool],
) -> None:
    old = Volume("of-an-earlier-release")
    ours = Volume("ours", **{labels.CLUSTER: OWN})
    theirs = Volume("theirs", **{labels.CLUSTER: OTHER})
    client = SimpleNamespace(volumes=SimpleNamespace(list=lambda filters: [old, ours, theirs]))
    monkeypatch.setattr(make, "connect", lambda host: nullcontext(client))
    if known is not None:
        (tmp_path / known).write_text(f"{OWN}\n")
    make.remove_data(spec(NO_ENGINE), "mine", tmp_path, print)
    assert [it.removed for it in (old, ours, theirs)] == removed
    reported = capsys.readouterr()
    assert f"Left volume theirs: its data is of cluster {OTHER}" in reported.out + reported.err
