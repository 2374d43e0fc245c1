"""Reads and writes objects of a bucket.

Credentials and endpoint are the environment's, as AWS defines them:
https://docs.aws.amazon.com/sdkref/latest/guide/standardized-credentials.html
"""

from __future__ import annotations

import re
from typing import Final

from earshot.aws_client import NotMade, new_client
from earshot.errors import EarshotError
from earshot.files.reading import read_all

SCHEME: Final = "s3://"
_URL: Final = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])/(?P<key>.+)", re.ASCII)
_ABSENT: Final = ("404", "NoSuchKey", "NoSuchBucket")


class Bucket:
    """One bucket. Its constructor makes no request."""

    def __init__(self, name: str, region: str = "") -> None:
        """``region`` is the bucket's; empty if unknown. Raises EarshotError."""
        self.name = name
        try:
            self._s3 = new_client("s3", region)
        except NotMade as reason:
            raise self._error("", reason) from None

    def get(self, key: str) -> bytes | None:
        """The content of the object; None if it does not exist. Raises EarshotError."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            body = self._s3.get_object(Bucket=self.name, Key=key)["Body"]
            return read_all(body)
        except OSError as reason:
            raise self._error(key, reason) from None
        except (BotoCoreError, ClientError) as reason:
            response = getattr(reason, "response", {})
            if response.get("Error", {}).get("Code") in _ABSENT:
                return None
            raise self._error(key, reason) from None

    def put(self, key: str, content: bytes) -> None:
        """Writes ``content`` to the object. Raises EarshotError."""
        from botocore.exceptions import BotoCoreError, ClientError

        arguments = {"Bucket": self.name, "Key": key, "Body": content}
        try:
            self._s3.put_object(**arguments, ContentType="application/json")
        except (BotoCoreError, ClientError) as reason:
            raise self._error(key, reason) from None

    def _error(self, key: str, reason: Exception) -> EarshotError:
        observed = f"cannot be reached: {' '.join(str(reason).split())}"
        remedy = (
            "see that the environment has credentials that may (AWS_PROFILE, or another of AWS's "
            "own ways), and AWS_DEFAULT_REGION"
        )
        return EarshotError(f"{SCHEME}{self.name}/{key}", observed=observed, remedy=remedy)


def fetch(url: str) -> bytes:
    """The content of the object at ``url`` (`s3://BUCKET/KEY`). Raises EarshotError."""
    match = _URL.fullmatch(url)
    if match is None:
        raise EarshotError(url, observed="is no object's URL", allowed="s3://BUCKET/KEY")
    content = Bucket(match["bucket"]).get(match["key"])
    if content is None:
        raise EarshotError(
            url,
            observed="does not exist: nothing has been reported there yet",
            remedy="wait for the validator's first report; `pulumi stack output reports` says "
            "where it puts them",
        )
    return content


def is_url(text: str) -> bool:
    return text.startswith(SCHEME)
