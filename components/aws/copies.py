"""Certificates of a stack on AWS: what another checkout has made comes from the stack's parameters.

What stands there is what instances have been given, so it goes before what lies here.
"""

from __future__ import annotations

from typing import Any

from pulumi.dynamic import CreateResult, DiffResult, UpdateResult
from pulumi.output import Unknown

from components.aws.reports import AT_ONCE
from components.aws.secrets import called
from components.aws.ssm import client
from components.certificates import CertificatesProvider, store_of
from components.checked import Props, on_lines_of_its_own
from components.writing import writing
from earshot.certificates.copies import put_back
from earshot.listeners.properties import read_properties
from earshot.listeners.security import VALIDATOR
from earshot.placement.aws_secrets import COPY_PARAMETER, VALIDATOR_PARAMETER, secret_parameter


class AwsCertificatesProvider(CertificatesProvider):
    """Takes over what stands in parameters before it looks at its folder."""

    _config: Any = None

    def configure(self, req: Any) -> None:
        super().configure(req)
        self._config = req.config

    def diff(self, id: str, olds: Props, news: Props) -> DiffResult:
        if not isinstance(news["hosts"], Unknown):
            self._take_over(news)
        return super().diff(id, olds, news)

    def create(self, props: Props) -> CreateResult:
        self._take_over(props)
        return super().create(props)

    def update(self, id: str, olds: Props, news: Props) -> UpdateResult:
        self._take_over(news)
        return super().update(id, olds, news)

    def _take_over(self, props: Props) -> None:
        stack, store = props["stack"], store_of(props)
        kinds = [COPY_PARAMETER, VALIDATOR_PARAMETER, *props["hosts"]]
        with on_lines_of_its_own():
            found = self._read(props["region"], {secret_parameter(stack, it): it for it in kinds})
            copy = found.pop(COPY_PARAMETER, "")
            if not copy:
                return
            if VALIDATOR_PARAMETER in found:
                values = read_properties(found.pop(VALIDATOR_PARAMETER)).values
                parts = ("ssl.keystore.key", "ssl.keystore.certificate.chain")
                found[VALIDATOR] = "".join(values.get(it, "") for it in parts)
            with writing("certificates", store.folder):
                put_back(store, copy, {name: f"{text.strip()}\n" for name, text in found.items()})

    def _read(self, region: str, kinds: dict[str, str]) -> dict[str, str]:
        """The secrets that are there, by kind; ``kinds`` are by parameter."""
        ssm, names, found = client(self._config, region), list(kinds), dict[str, str]()
        for first in range(0, len(names), AT_ONCE):
            some = names[first : first + AT_ONCE]
            with called({"parameter": some[0], "region": region}):
                answer = ssm.get_parameters(Names=some, WithDecryption=True)
            found |= {kinds[item["Name"]]: item["Value"] for item in answer["Parameters"]}
        return found
