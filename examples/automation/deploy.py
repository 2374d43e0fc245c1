"""Deploys a Pulumi program with earshot's components by the Automation API, as a service would.

Usage: python deploy.py PROGRAM_FOLDER [KEY=VALUE ...]
Cost: that of the program. Removal: python deploy.py PROGRAM_FOLDER --destroy

Exit codes: 0 if the brokers are proved; 1 with the reason on stderr if gate or proof refused.
"""

import sys

from pulumi import automation as auto


def main(folder: str, *words: str) -> int:
    stack = auto.create_or_select_stack("test", work_dir=folder)
    if words == ("--destroy",):
        stack.destroy()
        return 0
    for key, _, value in (word.partition("=") for word in words):
        stack.set_config(key, auto.ConfigValue(value))
    try:
        result = stack.up()
    except auto.CommandError as error:
        print(reason(str(error)), file=sys.stderr)
        return 1
    print(result.outputs["report"].value)
    return 0


def reason(output: str) -> str:
    """The errors of an update, without its progress."""
    return output.partition("Diagnostics:")[2].partition("Resources:")[0].strip() or output


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
