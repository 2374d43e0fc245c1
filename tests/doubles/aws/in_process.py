"""moto without a server: it answers where boto3 would send a request."""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from moto import mock_aws

from tests.doubles.aws.cloud import SERVICES
from tests.doubles.aws.server import REGION, Moto, make_lean, start_as_ec2_does

HOSTS = {"elbv2": "elasticloadbalancing"}
URLS = {it: f"https://{HOSTS.get(it, it)}.{REGION}.amazonaws.com" for it in SERVICES}


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
    """With nothing in it but what moto brings along; one at a time."""
    prepare_once()
    with mock_aws(config={"iam": {"load_aws_managed_policies": True}}):
        moto = MotoInProcess()
        yield moto
        moto.close()
