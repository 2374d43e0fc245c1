"""Listeners change on three running brokers while clients write and read through one that stays.

One cluster, and one sequence of changes: each test begins where the one before it ends. A short
sequence, which `make test` has, is in `test_local_stack.py`.
"""

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from earshot.transition.memory import recall
from tests.e2e.changing import (
    EXTRA,
    PATIENCE,
    Traffic,
    bootstrap,
    kill_engine,
    leaving_by_listener,
    login_settings,
    proved_listeners,
    restarted_ids,
    traffic_of,
    update_with_restarted,
)
from tests.e2e.engine import Deployment, deployment, local_cluster
from tests.e2e.ports import reserved_ports
from tests.e2e.steady_producer import REPLICAS, SteadyProducer
from tests.measured import MEASURED

pytestmark = [pytest.mark.e2e, pytest.mark.combination, pytest.mark.timeout(900)]

Recorder = Callable[[str, object], None]
PORTS = reserved_ports(3, 9)
QUORUM = PORTS.pop()
INTERNAL = {"name": "INTERNAL", "port": PORTS[0], "scopes": ["internal"]}
EXTERNAL = {"name": "EXTERNAL", "port": PORTS[1], "scopes": ["host"]}
WHOLE = {"name": "WHOLE", "port": PORTS[2], "scopes": ["host"]}
SECURE = {"name": "SECURE", "port": PORTS[3], "scopes": ["internal"], "protocol": "SASL_PLAINTEXT"}
PARTS = [
    {"name": name, "port": port, "scopes": ["host"]}
    for name, port in (("OFFICE", PORTS[4]), ("PARTNERS", PORTS[5]))
]
JOINED = {"name": "JOINED", "port": PORTS[6], "scopes": ["host"]}
MOVED = EXTERNAL | {"port": PORTS[7]}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Three brokers with INTERNAL, EXTERNAL and WHOLE."""
    cluster = local_cluster(
        listeners=[INTERNAL, EXTERNAL, WHOLE],
        extra=EXTRA,
        controllers={"port": QUORUM},
        validation={"records": 0, "deadline": 120},
    )
    with deployment(tmp_path_factory.mktemp("stack") / "p", cluster) as new_stack:
        new_stack.up()
        yield new_stack


@pytest.fixture(scope="module")
def traffic(stack: Deployment) -> Iterator[Traffic]:
    with traffic_of(stack) as new_traffic:
        yield new_traffic


def configure_split(stack: Deployment) -> None:
    """Brokers are to reach each other by SECURE, and WHOLE is to become two."""
    stack.cluster |= {"listeners": [SECURE, EXTERNAL, *PARTS], **login_settings(stack, "SECURE")}


def with_engine_killed(stack: Deployment) -> None:
    """An update that is killed, and all of Pulumi's with it, once it has restarted one broker."""
    with update_with_restarted(stack, lambda ids: 1 in ids) as child:
        kill_engine(stack, child)


def test_a_step_is_gone_on_with_after_ctrl_c(
    stack: Deployment, traffic: Traffic, record_property: Recorder
) -> None:
    start_time, old_pids = time.monotonic(), stack.pids()
    configure_split(stack)
    first_step = (
        "step 1 of 3: SECURE, OFFICE and PARTNERS added next to INTERNAL and WHOLE; run again"
    )
    assert first_step in stack.pulumi("preview").stdout
    assert stack.pids() == old_pids
    with update_with_restarted(stack, lambda ids: 1 in ids) as child:
        os.killpg(child.pid, signal.SIGINT)
        child.communicate(timeout=PATIENCE)
        assert child.returncode != 0
    assert restarted_ids(old_pids, stack) == [1]
    assert first_step in stack.up()
    assert restarted_ids(old_pids, stack) == [1, 2, 3]
    leaving_listeners = dict.fromkeys(("INTERNAL", "WHOLE"), True)
    assert leaving_by_listener(stack) == leaving_listeners | dict.fromkeys(
        ("EXTERNAL", "SECURE", "OFFICE", "PARTNERS"), False
    )
    assert proved_listeners(stack) == leaving_by_listener(stack).keys()
    record_property(MEASURED, traffic.assert_whole(start_time))


def test_a_step_whose_engine_was_killed_is_taken_back(
    stack: Deployment, traffic: Traffic, record_property: Recorder
) -> None:
    start_time, old_pids = time.monotonic(), stack.pids()
    with_engine_killed(stack)
    assert restarted_ids(old_pids, stack) == [1]
    (begun_plan,) = recall(stack.root.parent).begun
    assert begun_plan.inter_broker == "SECURE"
    pids_after_first = stack.pids()
    stack.cluster["listeners"] = [INTERNAL, EXTERNAL, WHOLE]
    assert "back to the listeners before the step that was interrupted" in stack.up()
    assert restarted_ids(pids_after_first, stack) == [1]
    assert proved_listeners(stack) >= {"INTERNAL", "SECURE", "EXTERNAL", "WHOLE"}
    record_property(MEASURED, traffic.assert_whole(start_time))


def test_a_broker_that_was_killed_in_a_step_serves_again_before_another_one_is_stopped(
    stack: Deployment, traffic: Traffic, record_property: Recorder
) -> None:
    start_time, old_pids = time.monotonic(), stack.pids()
    configure_split(stack)
    with update_with_restarted(stack, lambda ids: 2 in ids) as child:
        os.kill(stack.pids()[1], signal.SIGKILL)
        output, _ = child.communicate(timeout=PATIENCE)
        assert child.returncode != 0
    assert "node 3 was not stopped: down already: node 1" in output
    assert restarted_ids(old_pids, stack) == [2]
    assert "step 3 of 4: brokers reach each other through SECURE" in stack.up()
    assert restarted_ids(old_pids, stack) == [1, 2, 3]
    assert proved_listeners(stack) == leaving_by_listener(stack).keys()
    record_property(MEASURED, traffic.assert_whole(start_time))


def test_a_listener_that_clients_use_stays_until_they_have_moved(
    stack: Deployment, traffic: Traffic, record_property: Recorder
) -> None:
    start_time, old_pids = time.monotonic(), stack.pids()
    own_address = re.escape(f"127.0.0.1 (pid {os.getpid()},")
    refusal = re.compile(
        rf"WHOLE would be removed, and has \d+ connections of clients: \d+ from {own_address}"
    )
    with SteadyProducer(bootstrap(stack, "WHOLE"), "moving", len(REPLICAS)) as old_producer:
        wait_for_records(old_producer)
        for command in ("preview", "up"):
            assert refusal.search(" ".join(stack.refusal(command=command).split()))
        assert stack.pids() == old_pids
        stack.cluster["remove"] = "anyway"
        assert stack.pulumi("preview").returncode == 0
        del stack.cluster["remove"]
    with SteadyProducer(bootstrap(stack, "OFFICE"), "moving", len(REPLICAS)) as new_producer:
        wait_for_records(new_producer)
        with_engine_killed(stack)
        assert restarted_ids(old_pids, stack) == [1]
        assert "step 4 of 4: INTERNAL and WHOLE removed" in stack.up()
    assert restarted_ids(old_pids, stack) == [1, 2, 3]
    assert leaving_by_listener(stack) == dict.fromkeys(
        ("SECURE", "EXTERNAL", "OFFICE", "PARTNERS"), False
    )
    assert proved_listeners(stack) == leaving_by_listener(stack).keys()
    record_property(MEASURED, traffic.assert_whole(start_time, old_producer, new_producer))


def wait_for_records(producer: SteadyProducer) -> None:
    """Returns once every broker has acknowledged some."""
    end = time.monotonic() + PATIENCE
    while len({acknowledgement.partition for acknowledgement in list(producer.acknowledged)}) < len(
        REPLICAS
    ):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_the_way_back_joins_two_and_moves_a_port_while_clients_know_the_old_one(
    stack: Deployment, traffic: Traffic, record_property: Recorder
) -> None:
    start_time = time.monotonic()
    stack.cluster |= {"listeners": [INTERNAL, MOVED, JOINED], "extra": EXTRA}
    first_output = stack.up()
    assert "step 1 of 3" in first_output and "EXTERNAL at other addresses" in first_output
    known_brokers = traffic.producer.known_brokers()
    assert set(known_brokers.values()) == set(bootstrap(stack, "EXTERNAL").split(","))
    assert "step 2 of 3: brokers reach each other through INTERNAL" in stack.up()
    third_output = stack.up()
    assert "step 3 of 3: SECURE, OFFICE and PARTNERS removed" in third_output
    assert "run again" not in third_output
    assert leaving_by_listener(stack) == dict.fromkeys(("INTERNAL", "EXTERNAL", "JOINED"), False)
    assert proved_listeners(stack) == leaving_by_listener(stack).keys()
    record_property(MEASURED, traffic.assert_whole(start_time))
    traffic.producer_contexts.close()
    committed = traffic.transactional.committed
    assert traffic.group.await_records_once("transactions", committed) == committed
    new_pids = stack.pids()
    assert stack.pulumi("preview", "--expect-no-changes").returncode == 0
    assert stack.pids() == new_pids


def test_what_no_order_can_do_is_refused_with_nothing_touched(stack: Deployment) -> None:
    old_cluster, old_pids, memory = dict(stack.cluster), stack.pids(), recall(stack.root.parent)
    internal_listener, *other_listeners = old_cluster["listeners"]
    quorum, moved_quorum = (
        old_cluster["controllers"],
        old_cluster["controllers"] | {"port": SECURE["port"]},
    )
    refusals: list[tuple[str, dict[str, Any], list[str]]] = [
        (
            "preview",
            {"listeners": [internal_listener | {"name": "SAME"}, *other_listeners]},
            [
                "would change from INTERNAL to SAME in one step",
                "give SAME a port that no listener has",
            ],
        ),
        (
            "up",
            {"listeners": [internal_listener | {"protocol": "SSL"}, *other_listeners]},
            ["would change from PLAINTEXT to SSL", "add a listener of scope internal with SSL"],
        ),
        (
            "up",
            {"controllers": moved_quorum},
            ["the controllers would move from", "keep the controllers' addresses"],
        ),
        (
            "preview",
            {"controllers": quorum | {"name": "QUORUM"}},
            ["would change from CONTROLLER (PLAINTEXT) to QUORUM", "`name: CONTROLLER`"],
        ),
    ]
    for command, change, words in refusals:
        stack.cluster = old_cluster | change
        output = " ".join(stack.refusal(command=command).split())
        for word in ("nothing was changed", *words):
            assert word in output, output
    stack.cluster = old_cluster
    assert stack.pids() == old_pids and recall(stack.root.parent) == memory
