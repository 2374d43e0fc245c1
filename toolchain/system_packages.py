"""System packages that tests need: installed by root in CI, elsewhere only listed."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from earshot.engine import connection
from earshot.errors import EarshotError
from earshot.jvm.java import find_java
from toolchain import progress
from toolchain.paths import LOGS

ATTEMPTS = 3


@dataclass(frozen=True)
class Tool:
    """A command that tests use, and its Debian package.

    ``alias`` is the name of the command on other systems.
    """

    command: str
    package: str
    alias: str = ""

    def is_installed(self) -> bool:
        if self.command == "java":
            try:
                find_java()
            except EarshotError:
                return False
            return True
        if self.command == "dockerd" and (os.environ.get(connection.VARIABLE) or _has_socket()):
            return True  # another machine's engine, or one without `dockerd` on PATH
        return any(map(shutil.which, filter(None, (self.command, self.alias))))


def _has_socket() -> bool:
    return Path(urlsplit(connection.DEFAULT).path).is_socket()


TOOLS = (
    Tool("java", "openjdk-17-jre-headless"),  # brokers and Spark
    Tool("kcat", "kcat"),  # a second opinion on what a broker advertises
    Tool("ip", "iproute2"),  # vantages in network namespaces
    Tool("chromium", "chromium", alias="chromium-browser"),  # looking at the HTML report
    Tool("dockerd", "docker.io"),  # tests on a Docker engine
    Tool("debootstrap", "debootstrap"),  # images for it, without a registry
    Tool("sshd", "openssh-server"),  # a machine behind ssh
    Tool("shellcheck", "shellcheck"),  # the scripts in user data
    Tool("cloud-init", "cloud-init"),  # user data against its schema
    Tool("haproxy", "haproxy"),  # a gateway that routes by the name in TLS
    Tool("nginx", "libnginx-mod-stream"),  # another gateway, whose configuration is read
)


JAVA = TOOLS[0]
DOCKER = ("dockerd", "debootstrap")
DOCKER_VARIABLE = "EARSHOT_TEST_DOCKER"


def missing() -> list[Tool]:
    """The tools that this machine lacks."""
    return [tool for tool in TOOLS if not tool.is_installed()]


def install_command(tools: list[Tool]) -> str:
    return "apt-get install --yes " + " ".join(tool.package for tool in tools)


def may_install(environment: Mapping[str, str] = os.environ) -> bool:
    """True if packages may be installed without a request: only by root on a CI machine."""
    in_ci = environment.get("CI", "").lower() in ("1", "true")
    return in_ci and os.geteuid() == 0 and shutil.which("apt-get") is not None


def docker_is_wanted(environment: Mapping[str, str] = os.environ) -> bool:
    """True if root requests the Docker engine's packages by `DOCKER_VARIABLE`."""
    is_requested = environment.get(DOCKER_VARIABLE) == "1"
    return is_requested and os.geteuid() == 0 and shutil.which("apt-get") is not None


def ensure(*, for_tests: bool) -> None:
    """Install missing tools if that is allowed; otherwise print the command that installs them.

    Without ``for_tests`` only Java is installed. Raises EarshotError if an installation fails.
    """
    tools = [tool for tool in missing() if for_tests or tool is JAVA]
    if not tools or (tools == [JAVA] and not may_install()):  # set-up itself fails without Java
        return
    installable_tools = [
        tool for tool in tools if may_install() or (tool.command in DOCKER and docker_is_wanted())
    ]
    if other_tools := [tool for tool in tools if tool not in installable_tools]:
        names = ", ".join(tool.command for tool in other_tools)
        progress.say(
            f"Not on this machine: {names}. Tests that need them are skipped. To install them:"
        )
        progress.say(f"  {install_command(other_tools)}")
    if not installable_tools:
        return
    names = ", ".join(tool.command for tool in installable_tools)
    with progress.step(f"System packages: installing {names}"):
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        for command in ("apt-get update", install_command(installable_tools)):
            _retry(command.split(), environment)


def _retry(command: list[str], environment: Mapping[str, str]) -> None:
    for attempt in range(1, ATTEMPTS + 1):
        try:
            progress.run(
                command,
                log=LOGS / "apt.log",
                failure="System packages",
                remedy=f"install them yourself: {' '.join(command)}",
                environment=environment,
            )
        except EarshotError:
            if attempt == ATTEMPTS:
                raise
            progress.say(f"  attempt {attempt} of {ATTEMPTS} failed, trying again")
        else:
            return
