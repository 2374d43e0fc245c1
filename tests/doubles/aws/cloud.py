"""Clients of a moto server, and the texts of its errors."""

import json
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.client import Config
from botocore.exceptions import BotoCoreError, ClientError

from tests.doubles.aws.names import partition
from tests.doubles.plugin.kind import ProviderError
from tests.doubles.plugin.values import Plain

__all__ = ["BotoCoreError", "ClientError", "Cloud", "error_line", "is_missing"]

SERVICES = ("ec2", "elbv2", "iam", "route53", "s3", "ssm", "sts")
"""The services that the double calls, as the provider's setting `endpoints` names them."""
SECONDS = 60
GONE = frozenset(
    {"404", "ListenerNotFound", "LoadBalancerNotFound", "NatGatewayNotFound", "NoSuchBucket",
     "NoSuchBucketPolicy", "NoSuchEntity", "NoSuchHostedZone", "NoSuchLifecycleConfiguration",
     "NoSuchPublicAccessBlockConfiguration", "ParameterNotFound",
     "ServerSideEncryptionConfigurationNotFoundError", "TargetGroupNotFound"}
)  # fmt: skip


class Cloud:
    """Clients by service and region, each created once; many threads may use them."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.region: str = settings.get("region", "")
        self.default_tags: dict[str, str] = _parsed(settings.get("defaultTags"), {}).get("tags", {})
        self._endpoints: dict[str, str] = {}
        for urls in _parsed(settings.get("endpoints"), []):
            self._endpoints |= urls
        style = "path" if settings.get("s3UsePathStyle") in (True, "true") else "auto"
        self._config = Config(
            connect_timeout=SECONDS,
            read_timeout=SECONDS,
            # moto answers 500 where its threads meet; AWS's own clients try again, too
            retries={"mode": "standard", "total_max_attempts": 3},
            s3={"addressing_style": style},
        )
        self._keys = (settings.get("accessKey", "test"), settings.get("secretKey", "test"))
        self._clients: dict[tuple[str, str], Any] = {}
        self._lock = threading.Lock()

    def client(self, service: str, values: Mapping[str, Any] | None = None) -> Any:
        """A client in the region of ``values``, or in the provider's own."""
        region = self.region_of(values or {})
        with self._lock:
            if (service, region) not in self._clients:
                self._clients[service, region] = self._new_client(service, region)
            return self._clients[service, region]

    def region_of(self, values: Mapping[str, Any]) -> str:
        region: str = values.get("region") or self.region
        if not region:
            raise ProviderError("no region is set: give aws:region")
        return region

    def account(self) -> str:
        return str(self.client("sts").get_caller_identity()["Account"])

    def arn(self, service: str, values: Mapping[str, Any], owner: str, resource: str) -> str:
        region = self.region_of(values)
        return f"arn:{partition(region)}:{service}:{region}:{owner}:{resource}"

    def close(self) -> None:
        """Closes the connections."""
        for client in self._clients.values():
            client.close()

    def _new_client(self, service: str, region: str) -> Any:
        url = self._endpoints.get(service, "")
        if not urlsplit(url).hostname:
            raise ProviderError(
                f"no endpoint for {service}: this test double of the AWS provider talks to a moto"
                f" server alone, so give aws:endpoints its address"
            )
        key, secret = self._keys
        return boto3.Session().client(
            service,
            region_name=region,
            endpoint_url=url,
            aws_access_key_id=key,
            aws_secret_access_key=secret,
            config=self._config,
        )


def is_missing(error: ClientError) -> bool:
    """True if the error says that the resource does not exist."""
    code = error.response["Error"]["Code"]
    if code.startswith("InvalidPermission."):
        return False  # a rule of a group, not the group
    return code in GONE or code.endswith((".NotFound", "ID.Malformed"))


def error_line(error: ClientError | BotoCoreError) -> str:
    """The error in one line, such as `RunInstances: InvalidAMIID.NotFound: …`."""
    if not isinstance(error, ClientError):
        return " ".join(str(error).split())
    details: Plain = error.response["Error"]
    text = f"{error.operation_name}: {details.get('Code', 'unknown')}: {details.get('Message', '')}"
    return " ".join(text.split())


def _parsed(value: Any, default: Any) -> Any:
    """A setting with parts, which is JSON."""
    if value is None:
        return default
    return json.loads(value) if isinstance(value, str) else value
