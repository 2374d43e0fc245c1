"""Calls of AWS outside Pulumi, with the credentials and endpoints in a stack's `aws:` settings.

Other settings come from the environment, as for Pulumi's own provider.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence

from earshot.aws_client import AwsClient, NotMade, new_client
from earshot.errors import EarshotError
from earshot_pulumi.aws_settings import KEYS, AwsSettings, endpoint

PARAMETERS_PER_CALL = 10
"""Parameters per call."""
Read = Callable[[Sequence[str]], dict[str, str]]
"""The values of the parameters that exist, by name."""


def client(config: AwsSettings, region: str, service: str = "ssm") -> AwsClient:
    """boto3's client of ``service`` in ``region``. Raises EarshotError.

    Credentials and endpoints are those of the stack's `aws:` settings, or else of the environment,
    as for Pulumi's own provider.
    """
    settings = {name: value for name, key in KEYS.items() if (value := config.get(key))}
    with aws_errors(f"{service} in {region}", "its client cannot be made", f"{service} there"):
        return new_client(service, region, endpoint(config, service), attempts=5, **settings)


def reader(config: AwsSettings, region: str) -> Read:
    """A function that reads parameters in ``region``, also SecureStrings.

    It raises EarshotError if AWS does not answer.
    """
    ssm = client(config, region)

    def read(names: Sequence[str]) -> dict[str, str]:
        values: dict[str, str] = {}
        with aws_errors(f"SSM parameters in {region}", "cannot be read", "ssm:GetParameters"):
            for batch in batches(names):
                response = ssm.get_parameters(Names=batch, WithDecryption=True)
                values |= {
                    parameter["Name"]: parameter["Value"] for parameter in response["Parameters"]
                }
        return values

    return read


def batches(names: Sequence[str]) -> Iterator[list[str]]:
    """``names`` in lists of at most the number that one call of SSM accepts."""
    for start in range(0, len(names), PARAMETERS_PER_CALL):
        yield list(names[start : start + PARAMETERS_PER_CALL])


@contextlib.contextmanager
def aws_errors(subject: str, problem: str, calls: str) -> Iterator[None]:
    """A context that turns AWS's errors into EarshotErrors about ``subject`` with the ``problem``.

    ``calls`` are the calls that the credentials must allow.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (BotoCoreError, ClientError, NotMade) as reason:
        raise EarshotError(
            subject,
            observed=f"{problem}: {' '.join(str(reason).split())}",
            remedy=f"let these credentials call {calls}, then run the same command again",
        ) from None


def put_secret(ssm: AwsClient, name: str, text: str, tags: Mapping[str, str]) -> int:
    """Writes ``text`` into the SecureString ``name`` and returns its version."""
    # a parameter of more than 4 KiB is not free
    request = {"Name": name, "Type": "SecureString", "Tier": "Intelligent-Tiering", "Value": text}
    tag_pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
    try:
        return int(ssm.put_parameter(**request, Tags=tag_pairs)["Version"])
    except ssm.exceptions.ParameterAlreadyExists:
        return int(ssm.put_parameter(**request, Overwrite=True)["Version"])


def parameter_errors(subject: str, problem: str) -> contextlib.AbstractContextManager[None]:
    """Like `asking`, for calls that write and read SSM parameters."""
    calls = "ssm:PutParameter, ssm:GetParameters, ssm:AddTagsToResource and ssm:DeleteParameters"
    return aws_errors(subject, problem, f"{calls} there")
