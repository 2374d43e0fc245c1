"""A double of SSM, with the calls of boto3 that the resources for secrets make."""

from typing import Any

import pytest
from botocore.exceptions import ClientError
from earshot_pulumi.aws import credentials, secrets
from earshot_pulumi.docker_hosts import keys


class SsmDouble:
    """Parameters in memory, by name: the arguments of each version."""

    class exceptions:  # the name in boto3
        class ParameterAlreadyExists(Exception):
            """Without `Overwrite`."""

    def __init__(self) -> None:
        self.parameters: dict[str, list[dict[str, Any]]] = {}
        self.refused = False

    def put_parameter(self, Overwrite: bool = False, **options: Any) -> dict[str, int]:
        self._check_permission("PutParameter")
        assert not (Overwrite and "Tags" in options), "SSM takes one of them"
        versions = self.parameters.setdefault(options["Name"], [])
        if versions and not Overwrite:
            raise self.exceptions.ParameterAlreadyExists
        versions.append(options)
        return {"Version": len(versions)}

    def get_parameters(self, Names: list[str], WithDecryption: bool = False) -> dict[str, Any]:
        self._check_permission("GetParameters")
        assert len(Names) <= 10, "SSM takes no more"
        parameters = []
        for name in (name for name in Names if name in self.parameters):
            value = self.parameters[name][-1]["Value"] if WithDecryption else "encrypted"
            version = len(self.parameters[name])
            parameters.append({"Name": name, "Version": version, "Value": value})
        missing = [name for name in Names if name not in self.parameters]
        return {"Parameters": parameters, "InvalidParameters": missing}

    def delete_parameters(self, Names: list[str]) -> None:
        self._check_permission("DeleteParameters")
        for name in Names:
            self.parameters.pop(name, None)

    def _check_permission(self, call: str) -> None:
        if self.refused:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, call)


@pytest.fixture
def ssm(monkeypatch: pytest.MonkeyPatch) -> SsmDouble:
    double = SsmDouble()
    for module in (credentials, keys, secrets):
        monkeypatch.setattr(module, "client", lambda config, region: double)
    return double
