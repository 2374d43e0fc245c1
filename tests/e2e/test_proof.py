"""A proof in a program, over a real broker that stops in the meantime."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import project
from tests.e2e.cluster import local_plan, running_cluster

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
HEADER = "import json\n\nimport pulumi\nfrom earshot_pulumi import Proof"
PROGRAM = """
args = json.loads({!r})
pulumi.export("verdict", Proof("proof", args).verdict)
"""


@pytest.mark.combination
def test_a_return_to_former_inputs_proves_again_after_a_failure(tmp_path: Path) -> None:
    new_project = project.Project(tmp_path, HEADER, project.prepare_home(tmp_path, {}))
    new_project.run("stack", "init", project.STACK)
    with running_cluster(local_plan(1)[1]) as cluster:
        contract = cluster.contract.model_dump(mode="json")

        def write(*conditions: str) -> None:
            args: dict[str, Any] = {"contract": contract, "after": conditions, "ready_seconds": 1}
            new_project.write(PROGRAM.format(json.dumps(args)))

        write("1")
        new_project.up()
        cluster.kill(1)
        write("2")
        assert "FAIL, 0 of 2 cells passed" in new_project.failed_output()
        write("1")
        assert "FAIL, 0 of 2 cells passed" in new_project.failed_output()
        new_project.run("refresh", "--yes", "--skip-preview")
        assert "FAIL, 0 of 2 cells passed" in new_project.failed_output()
        cluster.start(1)
        new_project.up()
        assert new_project.outputs()["verdict"] == "pass"
        assert "unchanged" in new_project.up("--expect-no-changes")
