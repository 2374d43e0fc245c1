"""Hosts the package's components; the engine runs this folder as a plugin."""

import sys

from pulumi.provider import main

from components.owner import exit_with_parent
from components.package.provider import PackageProvider

if __name__ == "__main__":
    exit_with_parent()
    main(PackageProvider(), sys.argv[1:])
