"""Runs the plugin with components and gate, as a source-based plugin in this folder."""

from earshot_pulumi.provider.__main__ import run

if __name__ == "__main__":
    run()
