"""A state restored from a copy: the plan that brokers run has priority over the stored one."""

from pathlib import Path

import pytest

from earshot.placement import plan_stack
from earshot.project import Project
from earshot.transition import memory
from earshot.transition.change import Change
from tests.e2e.engine import deployment, local_cluster
from tests.e2e.ports import consecutive_ports

pytestmark = [pytest.mark.e2e, pytest.mark.combination, pytest.mark.timeout(300)]


def test_the_memory_beside_the_brokers_follows_them(tmp_path: Path) -> None:
    cluster = local_cluster(brokers=1, validation={"records": 0, "deadline": 60})
    with deployment(tmp_path / "p", cluster) as stack:
        project, copy = Project(stack.folder), tmp_path / "state.json"
        state = project.state_dir(stack.stack)
        stack.up()
        assert stack.pulumi("stack", "export", "--file", str(copy)).returncode == 0
        old_memory = memory.recall(state)
        (port,) = consecutive_ports(1, 1)
        listeners = stack.cluster["listeners"]
        stack.cluster["listeners"] = [
            *listeners,
            {"name": "MORE", "port": port, "scopes": ["host"]},
        ]
        stack.up()
        assert memory.recall(state).complete != old_memory.complete
        assert stack.pulumi("stack", "import", "--file", str(copy)).returncode == 0
        stack.cluster["listeners"] = listeners
        stack.up()
        assert memory.recall(state) == old_memory, "and not what no broker runs any more"
        running_plan = old_memory.complete
        assert running_plan is not None
        plan = plan_stack(project.read_cluster(stack.stack), stack.stack, state).plan
        assert Change.of(state, plan).steps == ()
        # a memory that is from elsewhere altogether
        listener = running_plan.nodes[0].listeners[1].model_copy(update={"port": port})
        node = running_plan.nodes[0]
        changed_listeners = (node.listeners[0], listener, *node.listeners[2:])
        wrong_plan = running_plan.model_copy(
            update={"nodes": (node.model_copy(update={"listeners": changed_listeners}),)}
        )
        memory.complete(state, wrong_plan, 0)
        pids = stack.pids()
        output = stack.up()
        assert "node 1 runs other listeners than those that are remembered" in output
        assert stack.pids() == pids and memory.recall(state) == old_memory
