"""Hosts the package's components; the engine runs this folder as a plugin."""

import sys

from pulumi.provider import main

from earshot_pulumi.owner import exit_with_parent
from earshot_pulumi.package.provider import PackageProvider

if __name__ == "__main__":
    exit_with_parent()
    main(PackageProvider(), sys.argv[1:])
