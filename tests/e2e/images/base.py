"""The Debian root file system below the images for tests, made once per user without a registry.

debootstrap fetches ordinary packages from a Debian mirror; the result is kept as a tar file in the
user's cache and imported into whatever engine wants it.
"""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from earshot import cache
from toolchain import progress
from toolchain.paths import LOGS

SUITE = "bookworm"
PACKAGES = (
    "openjdk-17-jre-headless", "ca-certificates", "kcat", "netcat-openbsd", "bind9-dnsutils",
    "curl", "iproute2", "iputils-ping", "python3", "python3-venv",
)  # fmt: skip
# Nothing that runs needs these, and they are a fifth of the size.
DROPPED = (
    "var/cache/apt", "var/lib/apt/lists", "var/log", "usr/share/doc", "usr/share/man",
    "usr/share/locale",
)  # fmt: skip


def digest() -> str:
    """Changes with whatever decides what is in the file system."""
    return hashlib.sha256(repr((SUITE, PACKAGES, DROPPED)).encode()).hexdigest()[:12]


def hindrance() -> str | None:
    """Why the file system cannot be had here, or None."""
    if _folder().is_dir():
        return None
    if os.geteuid() != 0:
        return "the file system of the test images is not cached, and only root can make it"
    if shutil.which("debootstrap") is None:
        return "not on this machine: debootstrap; to have it: apt-get install debootstrap"
    return None


def archive() -> Path:
    """The file system as a tar file, made if it is not cached. Needs root and debootstrap."""
    return cache.ensure(_folder(), _make) / "root.tar"


def _folder() -> Path:
    return cache.root() / "docker" / f"debian-{SUITE}-{digest()}"


def _make(folder: Path) -> None:
    with progress.step(f"A Debian {SUITE} file system for test images (once, a minute or more)"):
        root = folder / "root"
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
        for name in DROPPED:
            shutil.rmtree(root / name, ignore_errors=True)
            (root / name).mkdir(parents=True)
        subprocess.run(
            ["tar", "--numeric-owner", "-C", root, "-cf", folder / "root.tar", "."], check=True
        )
        shutil.rmtree(root)
