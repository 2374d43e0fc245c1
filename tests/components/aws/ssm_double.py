"""SSM parameters in memory, by the calls of boto3 that write secrets."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError


class SsmDouble:
    """Parameters in memory, as SSM keeps them."""

    class exceptions:  # as boto3 calls it
        class ParameterAlreadyExists(Exception):
            """Without `Overwrite`."""

    def __init__(self) -> None:
        self.parameters: dict[str, list[dict[str, Any]]] = {}
        self.refused = False

    def put_parameter(self, Overwrite: bool = False, **given: Any) -> dict[str, int]:
        self._answer("PutParameter")
        assert not (Overwrite and "Tags" in given), "SSM takes one of them"
        versions = self.parameters.setdefault(given["Name"], [])
        if versions and not Overwrite:
            raise self.exceptions.ParameterAlreadyExists
        versions.append(given)
        return {"Version": len(versions)}

    def get_parameters(self, Names: list[str], WithDecryption: bool = False) -> dict[str, Any]:
        self._answer("GetParameters")
        assert len(Names) <= 10, "SSM takes no more"
        found = []
        for name in (it for it in Names if it in self.parameters):
            last = self.parameters[name][-1]["Value"] if WithDecryption else "encrypted"
            found.append({"Name": name, "Version": len(self.parameters[name]), "Value": last})
        missing = [name for name in Names if name not in self.parameters]
        return {"Parameters": found, "InvalidParameters": missing}

    def delete_parameters(self, Names: list[str]) -> None:
        self._answer("DeleteParameters")
        for name in Names:
            self.parameters.pop(name, None)

    def _answer(self, what: str) -> None:
        if self.refused:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, what)
