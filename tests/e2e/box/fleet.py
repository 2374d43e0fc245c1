"""The instances of a box: a container for each machine of the moto server, kept in step with it.

What moto changes at once takes time here, as it does on EC2: a machine that is stopped or
terminated shuts down in order before another may have its address.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tests.doubles.aws.names import private_name
from tests.doubles.aws.server import REGION, MotoServer
from tests.e2e.box import firewall
from tests.e2e.box.ground import Ground
from tests.e2e.box.state import Machine, MotoState, user_data
from tests.e2e.docker_engine import Engine
from tests.e2e.instance import RUN_OPTIONS, Instance, Seed, Volume, volume

STOP_SECONDS = 45
"""Seconds after which a machine is switched off."""
AT_ONCE = 4
LOOP_DEVICES = "b 7:* rwm"


@dataclass(frozen=True)
class PowerChange:
    """A machine was switched on, or began to shut down."""

    when: float
    """Seconds since the epoch."""
    action: Literal["on", "off"]
    name: str
    """The instance's tag Name."""


@dataclass
class InstanceContainer:
    """A container in the place of a machine, and the settings applied to it so far."""

    instance: Instance
    name: str
    running: bool = True
    launch_time: float = 0.0
    """The start of the container's current boot: moto may stop and start a machine between two
    checks."""
    pid: int = 0
    """The pid of its first process at the last set-up: a boot creates new devices and rules.
    """
    elastic: str = ""
    rules: str = ""
    volumes: set[str] = field(default_factory=set)


class Fleet:
    def __init__(
        self,
        engine: Engine,
        server: MotoServer,
        ground: Ground,
        image: Callable[[str], str],
        mark: str,
        folder: Path,
        engines: Mapping[str, Sequence[str]],
    ) -> None:
        """``image`` returns the image of an instance's name. ``mark`` is in the names of
        containers, and ``folder`` has their files. ``engines`` has Docker's options for instances
        with a Docker engine, by name."""
        self._engines = engines
        self._engine, self._server, self._ground = engine, server, ground
        self._image, self._mark, self._folder = image, mark, folder
        self.power_changes: list[PowerChange] = []
        """The changes, in order."""
        self._containers: dict[str, InstanceContainer] = {}
        self._disks: dict[str, tuple[Volume, contextlib.ExitStack]] = {}

    def instance(self, id: str) -> Instance | None:
        """The instance, as soon as it was switched on."""
        container = self._containers.get(id)
        return container.instance if container else None

    def disk(self, id: str) -> Volume:
        """The block device of a volume that was attached once."""
        return self._disks[id][0]

    @property
    def remaining(self) -> list[str]:
        """Containers and volumes that exist."""
        return [
            *(container.instance.container for container in self._containers.values()),
            *self._disks,
        ]

    def follow(self, moto_state: MotoState) -> None:
        """Makes containers and disks match ``moto_state``."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            terminated_ids = [id for id in self._containers if id not in moto_state.machines]
            list(pool.map(self._terminate, terminated_ids))
            for id in [id for id in self._disks if id not in moto_state.volumes]:
                self._disks.pop(id)[1].close()
            for id, (disk, _) in self._disks.items():
                disk.grow(moto_state.volumes[id] << 10)
            for machine in moto_state.machines.values():
                for id, gib in machine.volumes.items():
                    if id not in self._disks:
                        stack = contextlib.ExitStack()
                        self._disks[id] = stack.enter_context(volume(gib << 10, id)), stack
            list(
                pool.map(
                    lambda machine: self._settle(machine, moto_state), moto_state.machines.values()
                )
            )

    def close(self) -> None:
        """Switch all instances off, and remove containers and disks."""
        for id in list(self._containers):
            self._remove(id)
        for _, stack in self._disks.values():
            stack.close()
        self._disks.clear()

    def _terminate(self, id: str) -> None:
        self._stop(self._containers[id])
        self._remove(id)

    def _remove(self, id: str) -> None:
        self._containers.pop(id).instance.remove()

    def _stop(self, container: InstanceContainer) -> None:
        if container.running:
            self.power_changes.append(PowerChange(time.time(), "off", container.name))
        self._engine.run("stop", f"--time={STOP_SECONDS}", container.instance.container)
        container.running = False

    def _settle(self, machine: Machine, moto_state: MotoState) -> None:
        container = self._containers.get(machine.id)
        if container is None:
            if not machine.running:
                return
            container = self._containers[machine.id] = self._create_container(machine)
        elif container.running and not (
            machine.running and machine.launch_time == container.launch_time
        ):
            self._stop(container)
        self._connect(container, machine.elastic)
        if not machine.running:
            return
        if not container.pid or not container.running:
            self.power_changes.append(PowerChange(time.time(), "on", machine.name))
            self._engine.run("start", container.instance.container)
            container.running, container.launch_time = True, machine.launch_time
        state = self._state(container)
        assert state["Running"], f"{machine.id} has switched itself off"
        if state["Pid"] != container.pid:
            container.pid, container.rules, container.volumes = state["Pid"], "", set()
        self._guard(container, machine, moto_state)
        for id in machine.volumes.keys() - container.volumes:
            self._attach(container, self.disk(id))

    def _create_container(self, machine: Machine) -> InstanceContainer:
        """A container that has not been started yet."""
        vpc, hostname = self._ground.vpc, private_name(machine.private, REGION)
        folder = self._folder / machine.id
        folder.mkdir()
        seed = Seed(folder, user_data(self._server, machine.id), machine.id, hostname)
        etc_files = {
            # Docker must not know the name: it would tell it on the other network, too
            "hostname": f"{hostname}\n",
            "hosts": "127.0.0.1 localhost\n",
            "resolv.conf": f"nameserver {vpc.gateway}\nsearch {hostname.partition('.')[2]}\n",
            "aws-double": f"{self._server.url}\n",
        }
        options = [
            *RUN_OPTIONS,
            *self._engines.get(machine.name, ()),
            *seed.write_files(),
            f"--device-cgroup-rule={LOOP_DEVICES}",
        ]
        for name, text in etc_files.items():
            (folder / name).write_text(text)
            options.append(f"--volume={folder / name}:/etc/{name}")
        instance = Instance(self._engine, f"earshot-box-{self._mark}-{machine.id}", machine.id)
        options += [
            f"--name={instance.container}",
            f"--network={vpc.name}",
            f"--ip={machine.private}",
        ]
        self._engine.run("create", *options, self._image(machine.name))
        return InstanceContainer(instance, machine.name)

    def _connect(self, booted: InstanceContainer, elastic: str) -> None:
        if booted.elastic == elastic:
            return
        outside, container = self._ground.outside.name, booted.instance.container
        if booted.elastic:
            self._engine.run("network", "disconnect", "--force", outside, container)
        if elastic:
            self._engine.run("network", "connect", f"--ip={elastic}", outside, container)
        booted.elastic = elastic

    def _guard(self, container: InstanceContainer, machine: Machine, moto_state: MotoState) -> None:
        groups = [moto_state.groups[id] for id in sorted(machine.groups) if id in moto_state.groups]
        rules = firewall.packet_rules(groups, moto_state.members, self._ground.vpc.gateway)
        if machine.name in self._engines:
            rules = firewall.before_docker(rules)
        if rules != container.rules:
            firewall.apply(rules, container.pid)
            container.rules = rules

    def _attach(self, container: InstanceContainer, disk: Volume) -> None:
        """Attaches a volume to a running container, as EC2 does."""
        number = disk.device.name.removeprefix("loop")
        node = disk.device_in_instance()
        script = 'mkdir -p "${1%/*}" && mknod "$1" b 7 "$2"'
        container.instance.run("sh", "-c", script, "sh", node, number)
        container.volumes.add(disk.id)

    def _state(self, container: InstanceContainer) -> Any:
        output = self._engine.run(
            "inspect", "--format={{json .State}}", container.instance.container
        )
        return json.loads(output)
