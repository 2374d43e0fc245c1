"""Putting the double where the Pulumi CLI of a test looks for the AWS plugin."""

from pathlib import Path

from tests.doubles.plugin.install import install

VERSION = "7.51.1"


def install_aws_double(home: Path) -> Path:
    """Make the double the AWS plugin of ``home``, a test's own PULUMI_HOME.

    Returns the plugin's folder; `double.log` in it tells what was asked of the double.
    """
    return install(home, "aws", VERSION, "tests.doubles.aws.provider:AwsDouble")
