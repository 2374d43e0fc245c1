"""Hosts the plugin, components and gate; the engine runs this folder as a source-based plugin."""

from earshot_pulumi.provider.__main__ import run

if __name__ == "__main__":
    run()
