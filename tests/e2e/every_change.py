"""Every change of listeners, each step of it interrupted in every way: `make change-interrupts`.

Not collected by itself, for it takes an hour; what every run shows is in
`tests/e2e/test_listener_change.py`. One cluster of three brokers, and clients that stay. A step is
interrupted, then gone on with, or taken back and made again. Which of the two, and when it is
interrupted, is drawn: SEED=number repeats it.
"""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

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
    traffic_of,
    update_with_restarted,
)
from tests.e2e.engine import Deployment, deployment, local_cluster
from tests.e2e.outside import outside
from tests.e2e.ports import reserved_ports
from tests.measured import MEASURED

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

SEED = int(os.environ.get("SEED") or random.randrange(10**6))
LONGEST_PAUSE = 3.0
"""Maximum seconds from a broker's restart to the interrupt."""
PORTS = reserved_ports(3, 9)
QUORUM = PORTS.pop()
Settings = dict[str, Any]


def listener(name: str, index: int, scope: str, **settings_of_listener: str) -> Settings:
    return {"name": name, "port": PORTS[index], "scopes": [scope], **settings_of_listener}


INTERNAL, EXTERNAL = listener("INTERNAL", 0, "internal"), listener("EXTERNAL", 1, "host")
WHOLE = listener("WHOLE", 2, "host")
SECURE = listener("SECURE", 3, "internal", protocol="SASL_PLAINTEXT")
PARTS = [listener("OFFICE", 4, "host"), listener("PARTNERS", 5, "host")]
REPL, MOVED = listener("REPL", 6, "internal"), EXTERNAL | {"port": PORTS[7]}
LISTENERS = {
    "before": [INTERNAL, EXTERNAL, WHOLE],
    "renamed": [REPL, EXTERNAL, WHOLE],
    "secured": [SECURE, EXTERNAL, WHOLE],
    "split": [INTERNAL, EXTERNAL, *PARTS],
    "moved": [INTERNAL, MOVED, WHOLE],
}


def ctrl_c(_stack: Deployment, child: subprocess.Popen[str], _draw: random.Random) -> str:
    os.killpg(child.pid, signal.SIGINT)
    return child.communicate(timeout=PATIENCE)[0]


def cli_killed(stack: Deployment, child: subprocess.Popen[str], _draw: random.Random) -> str:
    kill_engine(stack, child)
    return ""


def broker_killed(stack: Deployment, child: subprocess.Popen[str], draw: random.Random) -> str:
    os.kill(draw.choice(list(stack.pids().values())), signal.SIGKILL)
    return child.communicate(timeout=2 * PATIENCE)[0]


INTERRUPTS: dict[str, Callable[[Deployment, subprocess.Popen[str], random.Random], str]] = {
    "Ctrl-C": ctrl_c,
    "SIGKILL of the CLI": cli_killed,
    "SIGKILL of a broker": broker_killed,
}
RENAMED, TO_SASL, BACK = "inter-broker listener renamed", "PLAINTEXT to SASL", "SASL to PLAINTEXT"
SPLIT, JOINED, MOVES = "one listener split", "two listeners joined", "EXTERNAL's host and port"
THERE, AND_BACK = ("before", "renamed"), ("renamed", "before")
CASES = [
    *(
        (RENAMED, interrupt, *way)
        for interrupt, way in zip(INTERRUPTS, (THERE, AND_BACK, THERE), strict=True)
    ),
    *(
        (name, interrupt, *way)
        for interrupt in INTERRUPTS
        for name, way in ((TO_SASL, ("before", "secured")), (BACK, ("secured", "before")))
    ),
    *(
        (name, interrupt, *way)
        for interrupt in INTERRUPTS
        for name, way in ((SPLIT, ("before", "split")), (JOINED, ("split", "before")))
    ),
    *(
        (MOVES, interrupt, *way)
        for interrupt, way in zip(
            INTERRUPTS, (("before", "moved"), ("moved", "before"), ("before", "moved")), strict=True
        )
    ),
]


@pytest.fixture(scope="module")
def hosts() -> Iterator[dict[str, str]]:
    """The host of EXTERNAL for each set of listeners."""
    with outside() as first_address, outside() as second_address:
        yield dict.fromkeys(LISTENERS, first_address.address) | {"moved": second_address.address}


@pytest.fixture(scope="module")
def stack(hosts: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Three brokers with INTERNAL, EXTERNAL and WHOLE."""
    cluster = local_cluster(
        extra=EXTRA, controllers={"port": QUORUM}, validation={"records": 0, "deadline": 120}
    )
    with deployment(tmp_path_factory.mktemp("stack") / "p", cluster) as new_stack:
        new_stack.cluster |= settings(new_stack, hosts, "before")
        new_stack.up()
        yield new_stack


@pytest.fixture(scope="module")
def traffic(stack: Deployment) -> Iterator[Traffic]:
    with traffic_of(stack) as new_traffic:
        yield new_traffic


def settings(stack: Deployment, hosts: dict[str, str], name: str) -> Settings:
    logins = login_settings(stack, "SECURE")
    # the credentials stay as long as a listener needs them: a step back may have SECURE still
    return logins | {
        "listeners": LISTENERS[name],
        "external_host": hosts[name],
        "extra": logins["extra"] if name == "secured" else EXTRA,
    }


def interrupt_update(stack: Deployment, interrupt: str, draw: random.Random) -> str:
    """Interrupts an update, during which a client with old addresses connects.

    Returns the output of an update that completed its step in spite of the interrupt; else an empty
    text.
    """
    servers, restarts = bootstrap(stack, "EXTERNAL"), draw.choice((1, 2))
    with update_with_restarted(stack, lambda ids: len(ids) >= restarts) as child:
        metadata = AdminClient({"bootstrap.servers": servers}).list_topics(timeout=30)
        assert len(metadata.brokers) >= 2, "one may be on its way"
        time.sleep(draw.uniform(0, LONGEST_PAUSE))
        output = INTERRUPTS[interrupt](stack, child, draw)
        return "" if child.returncode else output


def up(stack: Deployment) -> str:
    """An update that must succeed: every broker runs and is proved, and no step is pending."""
    output = stack.up()
    assert stack.pids().keys() == {1, 2, 3} and recall(stack.root.parent).begun == ()
    assert proved_listeners(stack) == leaving_by_listener(stack).keys()
    return output


@pytest.mark.parametrize(("change", "interrupt", "start", "end"), CASES)
def test_every_step_is_gone_on_with_or_taken_back(
    stack: Deployment,
    traffic: Traffic,
    hosts: dict[str, str],
    record_property: Callable[[str, object], None],
    change: str,
    interrupt: str,
    start: str,
    end: str,
) -> None:
    draw = random.Random(f"{SEED} {change} {interrupt}")
    old_settings, new_settings = settings(stack, hosts, start), settings(stack, hosts, end)
    stack.cluster |= old_settings
    while "run again" in up(stack):
        pass
    start_time, continuations = time.monotonic(), []
    while True:
        stack.cluster |= new_settings
        if output := interrupt_update(stack, interrupt, draw):
            continuations.append("made all the same")
        else:
            continuations.append(draw.choice(("gone on with", "taken back")))
            if continuations[-1] == "taken back":
                stack.cluster |= old_settings
                up(stack)
                stack.cluster |= new_settings
            output = up(stack)
        if "run again" not in output:
            break
    assert "run again" not in up(stack)
    assert leaving_by_listener(stack) == {
        listener["name"]: False for listener in new_settings["listeners"]
    }
    longest_wait_text = traffic.assert_whole(start_time)
    record_property(
        MEASURED,
        f"{change}, {interrupt} in each step (seed {SEED}), then {', '.join(continuations)}: "
        f"{len(traffic.producer.acknowledged)} records acknowledged so far and "
        f"{len(traffic.transactional.committed)} committed, none lost and none twice; "
        f"{longest_wait_text}",
    )
