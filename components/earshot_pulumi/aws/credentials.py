"""Calls of AWS outside Pulumi, with the credentials and endpoints in a stack's `aws:` settings.

Other settings come from the environment, as for Pulumi's own provider.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence

from earshot.aws_client import AwsClient, NotMade, new_client
from earshot.errors import EarshotError
from earshot_pulumi.aws_settings import KEYS, AwsSettings, endpoint

AT_ONCE = 10
"""Parameters per call."""
Read = Callable[[Sequence[str]], dict[str, str]]
"""The values of the parameters that exist, by name."""


def client(config: AwsSettings, region: str, service: str = "ssm") -> AwsClient:
    """boto3's client of ``service`` in ``region``. Raises EarshotError.

    Credentials and endpoints are those of the stack's `aws:` settings, or else of the environment,
    as for Pulumi's own provider.
    """
    settings = {name: value for name, key in KEYS.items() if (value := config.get(key))}
    with asking(f"SSM parameters in {region}", "cannot be read", "ssm:GetParameters"):
        return new_client(service, region, endpoint(config, service), attempts=5, **settings)


def reader(config: AwsSettings, region: str) -> Read:
    """A function that reads parameters in ``region``, SecureStrings too.

    It raises EarshotError where AWS does not answer.
    """
    ssm = client(config, region)

    def read(names: Sequence[str]) -> dict[str, str]:
        values: dict[str, str] = {}
        with asking(f"SSM parameters in {region}", "cannot be read", "ssm:GetParameters"):
            for part in in_parts(names):
                answer = ssm.get_parameters(Names=part, WithDecryption=True)
                values |= {
                    parameter["Name"]: parameter["Value"] for parameter in answer["Parameters"]
                }
        return values

    return read


def in_parts(names: Sequence[str]) -> Iterator[list[str]]:
    """``names``, as many at a time as one call of SSM takes."""
    for first in range(0, len(names), AT_ONCE):
        yield list(names[first : first + AT_ONCE])


@contextlib.contextmanager
def asking(subject: str, problem: str, calls: str) -> Iterator[None]:
    """A context in which AWS's errors are EarshotErrors about ``subject``, with the ``problem``.

    ``calls`` are those that the credentials must allow.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (BotoCoreError, ClientError, NotMade) as reason:
        raise EarshotError(
            subject,
            observed=f"{problem}: {' '.join(str(reason).split())}",
            remedy=f"see that these credentials may call {calls}, and run the same command again",
        ) from None


def put_secret(ssm: AwsClient, name: str, text: str, tags: Mapping[str, str]) -> int:
    """The version of the SecureString ``name``, which now holds ``text``."""
    # beyond 4 KiB a parameter costs something
    request = {"Name": name, "Type": "SecureString", "Tier": "Intelligent-Tiering", "Value": text}
    tag_pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
    try:
        return int(ssm.put_parameter(**request, Tags=tag_pairs)["Version"])
    except ssm.exceptions.ParameterAlreadyExists:
        return int(ssm.put_parameter(**request, Overwrite=True)["Version"])


def parameters(subject: str, problem: str) -> contextlib.AbstractContextManager[None]:
    """A context that writes and reads SSM parameters, as `asking` is one."""
    calls = "ssm:PutParameter, ssm:GetParameters, ssm:AddTagsToResource and ssm:DeleteParameters"
    return asking(subject, problem, f"{calls} there")
