"""The listener of brokers among themselves gets another name, in three steps and with interrupts.

`test_listener_change.py` has more forms of it, under more kinds of traffic.
"""

import os
import signal
from collections.abc import Iterator

import pytest

from tests.e2e.changing import EXTRA, PATIENCE, bootstrap, proved, restarted, seen, until_restarted
from tests.e2e.engine import Deployment, deployment, local_cluster
from tests.e2e.ports import kept_ports
from tests.e2e.steady_producer import REPLICAS, SteadyProducer, led_by_every_broker

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

PORTS = kept_ports(3, 4)
OLD = {"name": "INTERNAL", "port": PORTS[0], "scopes": ["internal"]}
NEW = {"name": "REPL", "port": PORTS[1], "scopes": ["internal"]}
EXTERNAL = {"name": "EXTERNAL", "port": PORTS[2], "scopes": ["host"]}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Three brokers with INTERNAL and EXTERNAL."""
    cluster = local_cluster(
        listeners=[OLD, EXTERNAL],
        extra=EXTRA,
        controllers={"port": PORTS[3]},
        validation={"records": 0, "deadline": 120},
    )
    with deployment(tmp_path_factory.mktemp("stack") / "p", cluster) as made:
        made.up()
        yield made


@pytest.fixture(scope="module")
def producer(stack: Deployment) -> Iterator[SteadyProducer]:
    """A client that writes to every broker through EXTERNAL, from the first step to the last."""
    servers = bootstrap(stack, "EXTERNAL")
    led_by_every_broker(servers, "steady")
    with SteadyProducer(servers, "steady", len(REPLICAS)) as made:
        yield made


def interrupted(stack: Deployment) -> None:
    """An update that Ctrl-C ends once it has restarted broker 1."""
    with until_restarted(stack, lambda ids: 1 in ids) as child:
        os.killpg(child.pid, signal.SIGINT)
        child.communicate(timeout=PATIENCE)
        assert child.returncode != 0


def test_the_old_name_in_the_file_again_returns_after_an_interrupt(
    stack: Deployment, producer: SteadyProducer
) -> None:
    before = stack.pids()
    stack.cluster["listeners"] = [NEW, EXTERNAL]
    interrupted(stack)
    half = stack.pids()
    assert restarted(before, stack) == [1]
    stack.cluster["listeners"] = [OLD, EXTERNAL]
    stack.up()
    assert restarted(half, stack) == [1]
    assert proved(stack) == seen(stack).keys() == {"INTERNAL", "EXTERNAL"}
    assert producer.failed == []


def test_three_steps_each_proved_with_all_brokers_serving(
    stack: Deployment, producer: SteadyProducer
) -> None:
    before = stack.pids()
    stack.cluster["listeners"] = [NEW, EXTERNAL]
    interrupted(stack)
    assert "step 1 of 3: REPL added next to INTERNAL" in stack.up()
    assert restarted(before, stack) == [1, 2, 3]
    assert proved(stack) == seen(stack).keys() == {"INTERNAL", "REPL", "EXTERNAL"}
    assert bootstrap(stack, "INTERNAL") and bootstrap(stack, "REPL")
    assert "step 2 of 3: brokers reach each other through REPL" in stack.up()
    assert proved(stack) == {"INTERNAL", "REPL", "EXTERNAL"}
    assert "step 3 of 3: INTERNAL removed" in stack.up()
    assert proved(stack) == seen(stack).keys() == {"REPL", "EXTERNAL"}
    assert producer.failed == [] and len(producer.acknowledged) > 0
