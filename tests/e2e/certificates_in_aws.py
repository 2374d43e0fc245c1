"""A double of AWS for the certificates of a local stack, which the environment selects."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import boto3

from tests.certificates.handed_over import PASSWORD
from tests.doubles.aws.server import REGION, moto_server
from tests.e2e.engine import Deployment


@contextmanager
def aws_of(deployment: Deployment, log: Path) -> Iterator[Callable[[str], Any]]:
    """Within, the deployment uses the double. Yields a function that returns boto3's client of a
    service."""
    credentials = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    with moto_server(log) as aws, ExitStack() as clients:
        deployment.environment |= {
            **{name.upper(): value for name, value in credentials.items()},
            "AWS_ENDPOINT_URL": aws.url,
            "AWS_DEFAULT_REGION": REGION,
        }

        def client(service: str) -> Any:
            settings = {"region_name": REGION, "endpoint_url": aws.url, **credentials}
            return clients.enter_context(closing(boto3.client(service, **settings)))

        yield client


def hand_over_there(folder: Path, client: Callable[[str], Any]) -> dict[str, str]:
    """Moves keys and password of `hand_over` from ``folder`` to AWS. Returns the references for
    `security.tls.from`."""
    ssm = client("ssm")
    for path in folder.glob("*.key"):
        ssm.put_parameter(Name=f"/kafka/{path.name}", Value=path.read_text(), Type="SecureString")
        path.unlink()
    client("secretsmanager").create_secret(Name="kafka-keys", SecretString=PASSWORD)
    (folder / "password").unlink()
    return {"key": "ssm:/kafka/{node}.key", "password": "secretsmanager:kafka-keys"}
