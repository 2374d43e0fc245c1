"""Network Load Balancers of a box: a container for each, whose kernel forwards connections.

Each port leads to healthy targets, or to all of a group without a healthy one; health checks are
connections from the balancer; a connection without traffic is forgotten after the idle time-out,
and its next packet is answered by RST. Brokers see the balancer's address, whatever
`preserve_client_ip` says. Not played: connections to a target that becomes unhealthy or leaves go
on until they end; a target is registered at once, for which AWS takes minutes.
"""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.doubles.aws.server import Health, MotoServer
from tests.e2e.box import firewall
from tests.e2e.box.balancer_state import Forwarding, Target, TargetGroup, address_rules
from tests.e2e.box.ground import Ground
from tests.e2e.box.state import MotoState
from tests.e2e.docker_engine import Engine

ROUND_SECONDS = 0.5
CHECK_SECONDS = 5.0
"""Seconds after which a check has failed."""
AT_ONCE = 8
CLONE_NEWNET = 0x40000000
INITIAL: Health = ("initial", "Elb.RegistrationInProgress", "Target registration is in progress")
FAILED: Health = ("unhealthy", "Target.FailedHealthChecks", "Health checks failed")
HEALTHY: Health = ("healthy", "", "")


@dataclass(frozen=True)
class HealthChange:
    """A target became healthy or unhealthy."""

    when: float
    """Seconds since the epoch."""
    address: str
    port: int
    state: str


@dataclass
class TargetHealth:
    """A target of a group, and its checks so far."""

    health: Health = INITIAL
    next_check: float = 0.0
    """The time of the next check, as time.monotonic() returns it."""
    has_answered: bool = False
    """True if the target answered the last check."""
    streak: int = 0
    """Checks in a row with that result."""

    def record_check(self, has_answered: bool, group: TargetGroup) -> bool:
        """Records a check. True if the target became healthy or unhealthy."""
        self.streak = self.streak + 1 if has_answered is self.has_answered else 1
        self.has_answered = has_answered
        new_health = HEALTHY if has_answered else FAILED
        if new_health == self.health or self.streak < (
            group.rises if has_answered else group.falls
        ):
            return False
        self.health = new_health
        return True


@dataclass
class BalancerContainer:
    """A container in the place of a balancer."""

    container: str
    pid: int
    forwarding: Forwarding
    guard: str = ""
    rules: str = ""
    idle_seconds: int = 0
    checked: dict[tuple[str, Target], TargetHealth] = field(default_factory=dict)


class Balancers:
    def __init__(
        self, engine: Engine, server: MotoServer, ground: Ground, image: str, mark: str
    ) -> None:
        """``mark`` is in the names of containers of ``image``."""
        self._engine, self._server, self._ground = engine, server, ground
        self._image, self._mark = image, mark
        self.health_changes: list[HealthChange] = []
        """The changes of health; those of one group are in order."""
        self.linked: set[str] = set()
        """Addresses of endpoints, which the security groups always admit."""
        self._containers: dict[str, BalancerContainer] = {}
        self._threads: dict[str, threading.Thread] = {}
        self._lock = threading.Lock()
        self._failed: BaseException | None = None

    def health(self, port: int) -> dict[str, str]:
        """The states of the targets of a balancer's ``port``, by address."""
        with self._lock:
            return {
                target[0]: container.checked[group.arn, target].health[0]
                for container in self._containers.values()
                if (group := container.forwarding.ports.get(port)) is not None
                for target in group.targets
                if (group.arn, target) in container.checked
            }

    def follow(self, moto_state: MotoState) -> None:
        """Makes the containers match ``moto_state``. Raises an error of earlier health checks."""
        if self._failed is not None:
            raise self._failed
        forwardings = {balancer.balancer.arn: balancer for balancer in moto_state.balancers}
        for arn in self._containers.keys() - forwardings.keys():
            self._remove(arn)
        for arn, forwarding in forwardings.items():
            if arn not in self._containers:
                self._begin(arn, forwarding)
            container = self._containers[arn]
            groups = [moto_state.groups[id] for id in sorted(forwarding.balancer.groups)]
            rules = firewall.packet_rules(groups, moto_state.members, self._ground.vpc.gateway)
            endpoint_rules = [
                f"-A PREROUTING -s {address} -j ACCEPT" for address in sorted(self.linked)
            ]
            if (guard := firewall.before_routing(rules, endpoint_rules)) != container.guard:
                firewall.apply(guard, container.pid)
                container.guard = guard
            with self._lock:
                container.forwarding = forwarding
            self._forward(container)  # before the target that has left is switched off

    def close(self) -> None:
        """Remove all containers."""
        for arn in list(self._containers):
            self._remove(arn)

    def _begin(self, arn: str, forwarding: Forwarding) -> None:
        vpc, outside = self._ground.vpc, self._ground.outside
        balancer = forwarding.balancer
        name = f"earshot-box-{self._mark}-balancer-{arn.rpartition('/')[2]}"
        first_address, *other_addresses = balancer.private
        options = (f"--name={name}", f"--network={vpc.name}", f"--ip={first_address}")
        self._engine.run("run", "--detach", "--sysctl=net.ipv4.ip_forward=1", *options, self._image)
        pid = int(self._engine.run("inspect", "--format={{.State.Pid}}", name))
        container = self._containers[arn] = BalancerContainer(name, pid, forwarding)
        length = vpc.range.prefixlen
        inside(pid, *(f"ip address add {address}/{length} dev eth0" for address in other_addresses))
        if public := balancer.outside(self._ground.elastic):
            self._engine.run("network", "connect", f"--ip={public[0]}", outside.name, name)
            length = outside.range.prefixlen
            inside(pid, *(f"ip address add {address}/{length} dev eth1" for address in public[1:]))
        # a packet of a forgotten connection is not forwarded again
        inside(pid, "sysctl -q -w net.netfilter.nf_conntrack_tcp_loose=0")
        thread = threading.Thread(target=self._run, args=(arn, container), daemon=True)
        self._threads[arn] = thread
        thread.start()

    def _remove(self, arn: str) -> None:
        container = self._containers.pop(arn)
        self._threads.pop(arn).join()
        self._engine.run("rm", "--force", "--volumes", container.container)

    def _run(self, arn: str, container: BalancerContainer) -> None:
        try:
            with ThreadPoolExecutor(AT_ONCE, initializer=_enter, initargs=(container.pid,)) as pool:
                while self._containers.get(arn) is container:
                    self._round(container, pool)
                    time.sleep(ROUND_SECONDS)
        except BaseException as error:
            traceback.print_exception(error)
            self._failed = error

    def _round(self, container: BalancerContainer, pool: ThreadPoolExecutor) -> None:
        """Checks the due targets, forwards accordingly, and reports their health to moto."""
        with self._lock:
            forwarding = container.forwarding
        groups = {group.arn: group for group in forwarding.ports.values()}
        targets = {(arn, target) for arn, group in groups.items() for target in group.targets}
        health_by_key = {key: container.checked.get(key) or TargetHealth() for key in targets}
        current_time = time.monotonic()
        due_keys = [key for key in sorted(targets) if health_by_key[key].next_check <= current_time]
        hosts = [(target[0], groups[arn].check_port or target[1]) for arn, target in due_keys]
        for (arn, target), has_answered in zip(due_keys, pool.map(_answers, hosts), strict=True):
            target_health = health_by_key[arn, target]
            if target_health.record_check(has_answered, groups[arn]):
                self.health_changes.append(
                    HealthChange(time.time(), *target, target_health.health[0])
                )
            target_health.next_check = current_time + groups[arn].interval
        with self._lock:
            container.checked = health_by_key
            health = {
                (arn, *target): target_health.health
                for container in self._containers.values()
                for (arn, target), target_health in container.checked.items()
            }
        self._server.set_health(health)
        self._forward(container)
        if forwarding.idle_seconds != container.idle_seconds:
            name = "net.netfilter.nf_conntrack_tcp_timeout_established"
            inside(container.pid, f"sysctl -q -w {name}={forwarding.idle_seconds}")
            container.idle_seconds = forwarding.idle_seconds

    def _forward(self, container: BalancerContainer) -> None:
        """Forwards connections to the targets that are healthy now."""
        with self._lock:

            def is_healthy(group: TargetGroup, target: Target) -> bool:
                target_checks = container.checked.get((group.arn, target))
                return target_checks is not None and target_checks.health == HEALTHY

            rules = address_rules(container.forwarding, self._ground.elastic, is_healthy)
            if rules != container.rules:
                firewall.apply(rules, container.pid)
                container.rules = rules


def _answers(target: Target) -> bool:
    try:
        socket.create_connection(target, CHECK_SECONDS).close()
    except OSError:
        return False
    return True


def _enter(pid: int) -> None:
    """Moves only this thread into the network namespace of process ``pid``."""
    with Path("/proc", str(pid), "ns", "net").open() as file:
        status = ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET)
    assert status == 0, os.strerror(ctypes.get_errno())


def inside(pid: int, *commands: str) -> None:
    """Runs commands of this machine in the network namespace of process ``pid``."""
    for command in commands:
        words = ["nsenter", "--net", f"--target={pid}", *command.split()]
        completed = subprocess.run(words, capture_output=True, text=True)
        assert completed.returncode == 0, f"{command}: {completed.stderr.strip()}"
