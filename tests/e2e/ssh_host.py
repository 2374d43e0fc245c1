"""A machine behind ssh: sshd on this machine's loopback, with a file of hosts of its own.

What is resolved there is not resolved here. Needs root, as a mount and a login of root do.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.e2e.ports import free_ports
from tests.skips import lacking

READY_SECONDS = 10
SSHD = "/usr/sbin/sshd"
SEPARATION = Path("/run/sshd")


@contextlib.contextmanager
def ssh_host(folder: Path, hosts: Mapping[str, str]) -> Iterator[Path]:
    """A folder for PATH with an `ssh` that knows the machine as `bastion`; ``hosts`` by name."""
    if os.geteuid() != 0:
        lacking("only root can give a process a file of hosts of its own")
    if shutil.which(SSHD) is None:
        lacking("not on this machine: sshd; to have it: apt-get install openssh-server")
    (port,) = free_ports(1)
    for name in ("host", "user"):
        make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(make, check=True)
    (folder / "user.pub").rename(folder / "authorized")
    (folder / "hosts").write_text("".join(f"{it}\t{name}\n" for name, it in hosts.items()))
    (folder / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {folder}/host\nPidFile none\nUsePAM no\n"
        f"AuthorizedKeysFile {folder}/authorized\nStrictModes no\nPasswordAuthentication no\n"
        "PermitRootLogin prohibit-password\n"
    )
    key = (folder / "host.pub").read_text().split()[:2]
    (folder / "known").write_text(f"[127.0.0.1]:{port} {' '.join(key)}\n")
    (folder / "ssh_config").write_text(
        f"Host bastion\n  HostName 127.0.0.1\n  Port {port}\n  User root\n"
        f"  IdentityFile {folder}/user\n  IdentitiesOnly yes\n  UserKnownHostsFile {folder}/known\n"
    )
    path = folder / "bin"
    path.mkdir()
    ssh = path / "ssh"
    ssh.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder}/ssh_config "$@"\n')
    ssh.chmod(0o755)
    made = not SEPARATION.exists()
    SEPARATION.mkdir(exist_ok=True)
    serve = f"mount --bind {folder}/hosts /etc/hosts && exec {SSHD} -D -e -f {folder}/sshd_config"
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", serve]
    with (folder / "sshd.log").open("wb") as log:
        process = subprocess.Popen(command, stderr=log, stdin=subprocess.DEVNULL)
    try:
        _await(port, folder / "sshd.log")
        yield path
    finally:
        process.terminate()
        process.wait()
        if made:
            SEPARATION.rmdir()


def _await(port: int, log: Path) -> None:
    end = time.monotonic() + READY_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.05)
