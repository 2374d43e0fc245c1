"""Calls of AWS outside Pulumi, with the credentials and endpoints in a stack's `aws:` settings.

Other settings come from the environment, as for Pulumi's own provider.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from earshot.aws_client import NotMade, new_client
from earshot.errors import EarshotError
from earshot_pulumi.aws.reports import AT_ONCE, Read
from earshot_pulumi.aws_settings import KEYS, endpoint


def client(config: Any, region: str, service: str = "ssm") -> Any:
    """boto3's client of ``service`` in ``region``. Raises EarshotError.

    Credentials and endpoints are those of the stack's `aws:` settings, or else of the environment,
    as for Pulumi's own provider.
    """
    given = {name: value for name, key in KEYS.items() if (value := config.get(key))}
    try:
        return new_client(service, region, endpoint(config, service), attempts=5, **given)
    except NotMade as reason:
        raise _unreachable(region, reason) from None


def reader(config: Any, region: str) -> Read:
    """A function that reads parameters in ``region``, SecureStrings too.

    It raises EarshotError where AWS does not answer.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    ssm = client(config, region)

    def read(names: Sequence[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        try:
            for first in range(0, len(names), AT_ONCE):
                some = list(names[first : first + AT_ONCE])
                answer = ssm.get_parameters(Names=some, WithDecryption=True)
                found |= {item["Name"]: item["Value"] for item in answer["Parameters"]}
        except (BotoCoreError, ClientError) as reason:
            raise _unreachable(region, reason) from None
        return found

    return read


def _unreachable(region: str, reason: Exception) -> EarshotError:
    return EarshotError(
        f"SSM parameters in {region}",
        observed=f"cannot be read: {' '.join(str(reason).split())}",
        remedy="see that these credentials may call ssm:GetParameters, and run the same command "
        "again",
    )


def put_secret(ssm: Any, name: str, text: str, tags: Mapping[str, str]) -> int:
    """The version of the SecureString ``name``, which now holds ``text``."""
    # beyond 4 KiB a parameter costs something
    asked = {"Name": name, "Type": "SecureString", "Tier": "Intelligent-Tiering", "Value": text}
    listed = [{"Key": key, "Value": value} for key, value in tags.items()]
    try:
        return int(ssm.put_parameter(**asked, Tags=listed)["Version"])
    except ssm.exceptions.ParameterAlreadyExists:
        return int(ssm.put_parameter(**asked, Overwrite=True)["Version"])


@contextlib.contextmanager
def parameters(subject: str, problem: str) -> Iterator[None]:
    """A context that writes and reads SSM parameters: AWS's errors are EarshotErrors in it."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (BotoCoreError, ClientError) as reason:
        raise EarshotError(
            subject,
            observed=f"{problem}: {' '.join(str(reason).split())}",
            remedy="see that these credentials may call ssm:PutParameter, ssm:GetParameters, "
            "ssm:AddTagsToResource and ssm:DeleteParameters there, and run the same command again",
        ) from None
