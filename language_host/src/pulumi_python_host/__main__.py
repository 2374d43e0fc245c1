"""``python -P -m pulumi_python_host --bin DIR --engine-pid PID [flags] ADDRESS``.

The CLI runs it through the wrapper ``pulumi-language-python``, which adds the first two flags. Of
the CLI's own arguments only the last one, the engine's address, matters here.
"""

import argparse
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType


def skip_the_sdk() -> None:
    """Make modules of ``pulumi.runtime.proto`` importable without the rest of the SDK.

    The host needs only some gRPC messages, and starts three times in a ``pulumi up``: importing the
    whole SDK would double its start-up time.
    """
    spec = importlib.util.find_spec("pulumi")
    if spec is None or not spec.submodule_search_locations:
        return
    root = Path(spec.submodule_search_locations[0])
    for name, folder in (
        ("pulumi", root),
        ("pulumi.runtime", root / "runtime"),
        ("pulumi.runtime.proto", root / "runtime" / "proto"),
    ):
        module = ModuleType(name)
        module.__path__ = [str(folder)]
        sys.modules[name] = module


def main() -> int:
    parser = argparse.ArgumentParser(prog="pulumi-language-python", allow_abbrev=False)
    parser.add_argument("--bin", type=Path, required=True)
    parser.add_argument("--engine-pid", type=int, default=os.getppid())
    options, unknown_arguments = parser.parse_known_args()
    engine = (
        unknown_arguments[-1]
        if unknown_arguments and not unknown_arguments[-1].startswith("-")
        else ""
    )

    skip_the_sdk()
    from pulumi_python_host.server import serve

    return serve(engine_address=engine, engine_pid=options.engine_pid, bin_directory=options.bin)


if __name__ == "__main__":
    sys.exit(main())
