"""Installs a double as a plugin of a test's Pulumi CLI."""

import importlib.metadata
import sys
from pathlib import Path

import yaml

from toolchain.paths import ROOT

MAIN = '''#!{python}
"""Runs a test double of the {plugin} provider; see {root}/{folder}."""

import gc
import sys
from pathlib import Path

gc.set_threshold(20_000, 20, 20)  # modules that are loaded here stay loaded
sys.path.insert(0, {root!r})

from {module} import {name}
from tests.doubles.plugin.serve import main

main(Path(__file__).parent, {version!r}, {name}())
'''


def install(home: Path, plugin: str, version: str, double: str, *, as_binary: bool = False) -> Path:
    """Makes ``double`` (`module:class`) the plugin of ``home``, a test's own PULUMI_HOME.

    With ``as_binary`` it is an executable that the CLI starts itself, like official plugins;
    otherwise a language host starts it, and ends it with the CLI. Returns the plugin's folder; the
    requests to the double are in its `double.log`. Raises AssertionError if another version of the
    package ``pulumi-<plugin>`` is installed: the CLI would look for a plugin of that version.
    """
    installed = importlib.metadata.version(f"pulumi-{plugin}")
    if installed != version:
        raise AssertionError(
            f"pulumi-{plugin} {installed} is installed, the double is of {version}"
        )
    module, _, name = double.partition(":")
    folder = home / "plugins" / f"resource-{plugin}-v{version}"
    folder.mkdir(parents=True)
    text = MAIN.format(
        python=sys.executable,
        plugin=plugin,
        root=str(ROOT),
        folder=module.rpartition(".")[0].replace(".", "/"),
        module=module,
        name=name,
        version=version,
    )
    if as_binary:
        binary = folder / f"pulumi-resource-{plugin}"
        binary.write_text(text)
        binary.chmod(0o755)
        return folder
    options = {"toolchain": "pip", "virtualenv": sys.prefix}
    about = {"runtime": {"name": "python", "options": options}}
    (folder / "PulumiPlugin.yaml").write_text(yaml.safe_dump(about))
    (folder / "__main__.py").write_text(text)
    return folder
