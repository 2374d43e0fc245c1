"""A machine behind ssh: sshd on this machine's loopback or in another network, with its own hosts
file.

Names of that file do not resolve on this machine. It needs root for a mount and a login of root.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tests.e2e.ports import free_ports
from tests.skips import lacking

READY_SECONDS = 10
LOOPBACK = "127.0.0.1"
SSHD = "/usr/sbin/sshd"
SEPARATION = Path("/run/sshd")


def unwrapped(*command: str) -> Sequence[str]:
    """The same command, for this machine."""
    return command


@contextlib.contextmanager
def ssh_host(
    folder: Path,
    hosts: Mapping[str, str],
    address: str = LOOPBACK,
    wrap: Callable[..., Sequence[str]] = unwrapped,
) -> Iterator[Path]:
    """A folder for PATH with an `ssh` that knows the machine as `bastion`; ``hosts`` by name.

    sshd listens at ``address``; ``wrap`` makes of its command one that runs there. `authorized`
    in ``folder`` is the file of keys, whose line may get options.
    """
    if os.geteuid() != 0:
        lacking("only root can give a process a file of hosts of its own")
    if shutil.which(SSHD) is None:
        lacking("not on this machine: sshd; to have it: apt-get install openssh-server")
    (port,) = free_ports(1)
    for name in ("host", "user"):
        make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(make, check=True)
    (folder / "user.pub").rename(folder / "authorized")
    (folder / "hosts").write_text("".join(f"{host}\t{name}\n" for name, host in hosts.items()))
    (folder / "sshd_config").write_text(
        f"ListenAddress {address}:{port}\nHostKey {folder}/host\nPidFile none\nUsePAM no\n"
        f"AuthorizedKeysFile {folder}/authorized\nStrictModes no\nPasswordAuthentication no\n"
        "PermitRootLogin prohibit-password\n"
    )
    key = (folder / "host.pub").read_text().split()[:2]
    (folder / "known").write_text(f"[{address}]:{port} {' '.join(key)}\n")
    (folder / "ssh_config").write_text(
        f"Host bastion\n  HostName {address}\n  Port {port}\n  User root\n"
        f"  IdentityFile {folder}/user\n  IdentitiesOnly yes\n  UserKnownHostsFile {folder}/known\n"
    )
    path = folder / "bin"
    path.mkdir()
    ssh = path / "ssh"
    ssh.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder}/ssh_config "$@"\n')
    ssh.chmod(0o755)
    made_separation = not SEPARATION.exists()
    SEPARATION.mkdir(exist_ok=True)
    serve = f"mount --bind {folder}/hosts /etc/hosts && exec {SSHD} -D -e -f {folder}/sshd_config"
    command = wrap("unshare", "--mount", "--propagation", "private", "sh", "-c", serve)
    with (folder / "sshd.log").open("wb") as log:
        process = subprocess.Popen(command, stderr=log, stdin=subprocess.DEVNULL)
    try:
        _await(address, port, folder / "sshd.log")
        yield path
    finally:
        process.terminate()
        process.wait()
        if made_separation:
            SEPARATION.rmdir()


def _await(address: str, port: int, log: Path) -> None:
    end = time.monotonic() + READY_SECONDS
    while True:
        try:
            socket.create_connection((address, port), timeout=1).close()
            return
        except OSError:
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.05)
