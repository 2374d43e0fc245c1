"""Calls AWS with the environment's credentials, and raises a clear error per kind of failure.

AWS defines the sources of credentials:
https://docs.aws.amazon.com/sdkref/latest/guide/standardized-credentials.html
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Final

from earshot.aws_client import AwsClient, NotMade, new_client
from earshot.errors import EarshotError
from earshot.extras import installing

_REMEDIES: Final = {
    ("ResourceNotFound",): "put it there, or correct security.tls.from or its region",
    ("Throttl", "TooManyRequests", "RequestLimit", "LimitExceeded"): (
        "run the same command again in a minute: AWS refuses more calls for now"
    ),
    ("Credential", "Token", "Profile", "UnrecognizedClient", "InvalidSignature", "SSO"): (
        "give the environment credentials that are valid (AWS_PROFILE, or another of AWS's own "
        "ways)"
    ),
    ("NoRegion",): (
        "name the region as security.tls.from.region, in AWS_DEFAULT_REGION or in the profile"
    ),
    ("Validation", "Invalid", "Malformed", "RequestFailed"): (
        "see the reason, which AWS gives, and correct security.tls"
    ),
    ("",): "see that this machine reaches AWS, and that region and credentials are the right ones",
}
"""Remedies by parts of the error's code."""
_DENIED: Final = ("AccessDenied", "DecryptionFailure")


@contextlib.contextmanager
def client(service: str, subject: str, region: str) -> Iterator[AwsClient]:
    """boto3's client of ``service``, to read ``subject``. Raises EarshotError.

    An empty ``region`` means the environment's.
    """
    try:
        aws_client = new_client(service, region)
    except ModuleNotFoundError:
        observed = "cannot be used: boto3 is not installed"
        raise EarshotError(subject, observed=observed, remedy=installing("aws")) from None
    except NotMade as reason:
        raise _call_error(subject, reason.args[0], "") from None
    with contextlib.closing(aws_client):
        yield aws_client


def answer(subject: str, permissions: str, call: Callable[..., Any], **arguments: Any) -> Any:
    """AWS's response to ``call``, which reads ``subject`` and needs ``permissions``.

    Raises EarshotError.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        return call(**arguments)
    except (BotoCoreError, ClientError) as reason:
        raise _call_error(subject, reason, permissions) from None


def absent(subject: str, region: str) -> EarshotError:
    return EarshotError(
        subject,
        observed=f"not found in {region} with these credentials",
        remedy=_REMEDIES["ResourceNotFound",],
    )


def _call_error(subject: str, reason: Exception, permissions: str) -> EarshotError:
    response = getattr(reason, "response", None) or getattr(reason, "last_response", None) or {}
    code = response.get("Error", {}).get("Code") or type(reason).__name__
    if any(denied_code in code for denied_code in _DENIED):
        remedy = f"let these credentials call {permissions}"
    else:
        remedy = next(
            text_of_code
            for codes, text_of_code in _REMEDIES.items()
            if any(known_code in code for known_code in codes)
        )
    text = " ".join(str(reason).split())
    return EarshotError(subject, observed=f"cannot be used: {text}", remedy=remedy)
