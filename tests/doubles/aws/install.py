"""Installs the double as the AWS plugin of a test's Pulumi CLI."""

from pathlib import Path

from tests.doubles.plugin.install import install

VERSION = "7.51.1"


def install_aws_double(home: Path) -> Path:
    """Makes the double the AWS plugin of ``home``, a test's own PULUMI_HOME.

    Returns the plugin's folder; the requests to the double are in its `double.log`.
    """
    return install(home, "aws", VERSION, "tests.doubles.aws.provider:AwsDouble")
