"""``python3 -m toolchain setup | env``: needs nothing but Python.

This file must also run on older versions of Python, to switch to a supported one or to name it.
"""

import os
import shutil
import subprocess
import sys

SUPPORTED = ((3, 11), (3, 12), (3, 13))


def switch_interpreter() -> None:
    """Run the command under a supported Python instead; returns only if none is installed."""
    for version in reversed(SUPPORTED):
        candidate = shutil.which("python%d.%d" % version)  # noqa: UP031 (old versions read this)
        if candidate is None:
            continue
        # A shim may exist for a version that is not installed.
        works = subprocess.call([candidate, "-c", ""], stderr=subprocess.DEVNULL) == 0
        if works:
            os.execv(candidate, [candidate, "-m", "toolchain", *sys.argv[1:]])


def main() -> int:
    if sys.version_info[:2] not in SUPPORTED:
        switch_interpreter()
        sys.stderr.write(
            "Python: %d.%d is running\n"  # noqa: UP031
            "  allowed: 3.11, 3.12 or 3.13\n"
            "  fix: install one (apt-get install python3 python3-venv, brew install"
            " python@3.13, pyenv install 3.13); if it is not on PATH, give its path:"
            " make setup PYTHON=/path/to/python3.13\n" % sys.version_info[:2]
        )
        return 2
    from toolchain.command import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
