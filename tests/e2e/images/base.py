"""The Debian root file systems below the images for tests, made once per user without a registry.

debootstrap fetches ordinary packages from a Debian mirror; the result is kept as a tar file in the
user's cache and imported into whatever engine wants it.
"""

import hashlib
import os
import shutil
import subprocess
from functools import partial
from pathlib import Path

from earshot.files import cache
from toolchain import progress
from toolchain.paths import LOGS

SUITE = "bookworm"
PACKAGES = (
    "openjdk-17-jre-headless", "ca-certificates", "kcat", "netcat-openbsd", "bind9-dnsutils",
    "curl", "iproute2", "iputils-ping", "python3", "python3-venv",
)  # fmt: skip
INSTANCE = (
    "systemd", "systemd-sysv", "dbus", "cloud-init", "locales", "xfsprogs", "procps", "awscli",
)  # fmt: skip
"""Further packages of an instance: every command that user data would install, so that no boot and
no build of an image needs a mirror."""
DOCKER_HOST = (*INSTANCE, "docker.io", "iptables")
# Nothing that runs needs these, and they are a fifth of the size.
DROPPED = (
    "var/cache/apt", "var/lib/apt/lists", "var/log", "usr/share/doc", "usr/share/man",
    "usr/share/locale",
)  # fmt: skip


def digest(further: tuple[str, ...] = ()) -> str:
    """A digest of all inputs of the file system with ``further`` packages."""
    contents = (SUITE, PACKAGES, DROPPED, *([further] if further else []))
    return hashlib.sha256(repr(contents).encode()).hexdigest()[:12]


def name(further: tuple[str, ...] = ()) -> str:
    """The name of the image with the file system."""
    return f"earshot-test/debian:{digest(further)}"


def hindrance() -> str | None:
    """The reason why the file system cannot be made here, or None."""
    if _folder(()).is_dir():
        return None
    if os.geteuid() != 0:
        return "the file system of the test images is not cached, and only root can make it"
    if shutil.which("debootstrap") is None:
        return "not on this machine: debootstrap; to have it: apt-get install debootstrap"
    return None


def archive(further: tuple[str, ...] = ()) -> Path:
    """The file system with ``further`` packages as a tar file, made if it is not cached.

    Needs root and debootstrap.
    """
    return cache.ensure(_folder(further), partial(_make, further)) / "root.tar"


def _folder(further: tuple[str, ...]) -> Path:
    return cache.root() / "docker" / f"debian-{SUITE}-{digest(further)}"


def _make(further: tuple[str, ...], folder: Path) -> None:
    root = folder / "root"
    if further:
        smaller = archive()
        with progress.step(f"{further[-1]} and more for test images (once, a minute or more)"):
            _extend(smaller, further, root)
    else:
        with progress.step(
            f"A Debian {SUITE} file system for test images (once, a minute or more)"
        ):
            _bootstrap(root)
    for name in DROPPED:
        shutil.rmtree(root / name, ignore_errors=True)
        (root / name).mkdir(parents=True)
    subprocess.run(
        ["tar", "--numeric-owner", "-C", root, "-cf", folder / "root.tar", "."], check=True
    )
    shutil.rmtree(root)


def _bootstrap(root: Path) -> None:
    # In a mount namespace of its own: what debootstrap mounts ends with it, also when killed.
    progress.run(
        [
            "unshare", "--mount", "--propagation", "private",
            "debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}",
            SUITE, root,  # from debootstrap's own default mirror
        ],
        log=LOGS / "debootstrap.log",
        failure="debootstrap",
        remedy="is Debian's archive within reach?",
    )  # fmt: skip


def _extend(smaller: Path, further: tuple[str, ...], root: Path) -> None:
    """Installs ``further`` packages in ``root``, on top of the file system in ``smaller``."""
    root.mkdir()
    subprocess.run(["tar", "--numeric-owner", "-C", root, "-xf", smaller], check=True)
    resolvers, policy = root / "etc" / "resolv.conf", root / "usr" / "sbin" / "policy-rc.d"
    resolvers.write_text(Path("/etc/resolv.conf").read_text())
    policy.write_text("#!/bin/sh\nexit 101\n")  # no service of a package is started here
    policy.chmod(0o755)
    install = "mount -t proc proc /proc && apt-get update && apt-get install --yes "
    install += f"--no-install-recommends {' '.join(further)}"
    progress.run(
        [
            "unshare", "--mount", "--propagation", "private", "chroot", root,
            "env", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C", "sh", "-c", install,
        ],
        log=LOGS / f"packages-{digest(further)}.log",
        failure="apt-get",
        remedy="is Debian's archive within reach?",
    )  # fmt: skip
    policy.unlink()
    resolvers.write_text("")
