"""moto without a server: it answers in this process instead of a request of boto3."""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from moto import mock_aws

from tests.doubles.aws.cloud import SERVICES
from tests.doubles.aws.server import REGION, Moto, make_lean, start_as_ec2_does

HOSTS = {"elbv2": "elasticloadbalancing"}
URLS = {name: f"https://{HOSTS.get(name, name)}.{REGION}.amazonaws.com" for name in SERVICES}


@functools.cache
def prepare_once() -> None:
    make_lean()
    start_as_ec2_does()


class MotoInProcess(Moto):
    def __init__(self) -> None:
        super().__init__(URLS)

    def reset(self) -> None:
        import_module("moto.moto_api._internal").moto_api_backend.reset()


@contextmanager
def moto_in_process() -> Iterator[MotoInProcess]:
    """moto with its own resources only; one at a time."""
    prepare_once()
    with mock_aws(config={"iam": {"load_aws_managed_policies": True}}):
        moto = MotoInProcess()
        yield moto
        moto.close()
