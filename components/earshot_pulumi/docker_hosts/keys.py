"""Keys of Docker hosts: those of engines in SSM parameters, that of the client in a folder here.

This machine writes the parameters itself, so that states have only fingerprints.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path

import pulumi

from earshot.certificates.authority import IssuedCertificate, read_certificate
from earshot.certificates.engines import EngineStore, for_engine, new_engines_authority, written
from earshot_pulumi.aws.credentials import batches, client, parameter_errors, put_secret, reader
from earshot_pulumi.aws_settings import AwsKind
from earshot_pulumi.file_access import writing
from earshot_pulumi.properties import here
from earshot_pulumi.provider.kind import UNKNOWN, Operation, Properties
from earshot_pulumi.provider.resource import InternalResource


class DockerHostKeysKind(AwsKind):
    """Issues a key for each engine, and a certificate for this machine.

    Inputs: `name` of the group of hosts; `folder` on this machine; `region`; `tags`; `authority`,
    the parameter with the authority, which no instance reads; `parameters` by host; and `hosts`,
    the names of each engine. Outputs: `versions`, fingerprints of the engines' certificates by
    host; `certificate`, that of the authority.
    """

    ID = "keys"
    OWNS = ("region", "authority")
    DECISIVE = ("folder", "region", "authority", "parameters", "hosts")
    interrupted = (
        "interrupted while keys were issued: those in parameters are whole; the next `pulumi up` "
        "issues the rest"
    )

    def differs(self, operation: Operation, olds: Properties, news: Properties) -> bool:
        if news["hosts"] is UNKNOWN or super().differs(operation, olds, news):
            return True
        authority = olds.get("certificate") or ""
        if _store(news).is_due(authority, _now()):
            return True
        names = [news["authority"], *news["parameters"].values()]
        with _ssm(news):
            ssm = client(self.settings(operation), news["region"])
            name_batches = batches(names)
            return any(
                ssm.get_parameters(Names=batch)["InvalidParameters"] for batch in name_batches
            )

    def apply(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        name, parameters, store = news["name"], news["parameters"], _store(news)
        read = reader(self.settings(operation), news["region"])
        parameter_values = read([news["authority"], *parameters.values()])
        authority = store.authority(parameter_values.get(news["authority"]), _now())
        if authority is None:
            authority = new_engines_authority(name, _now())
        with _ssm(news):
            ssm = client(self.settings(operation), news["region"])
            if news["authority"] not in parameter_values:
                put_secret(ssm, news["authority"], written(authority), news["tags"])
            with writing(f"Docker hosts {name}", store.folder):
                store.keep(authority, _now())
            versions = {}
            for host, names in news["hosts"].items():
                text = parameter_values.get(parameters[host], "")
                if not _is_current(text, authority, names, olds, host):
                    certificate = for_engine(authority, host, names, _now())
                    text = certificate.key + certificate.certificate
                    put_secret(ssm, parameters[host], text, news["tags"])
                versions[host] = read_certificate(_certificate(text)).fingerprint
            former_names = {*(olds.get("parameters") or {}).values()} - {*parameters.values()}
            if former_names:
                ssm.delete_parameters(Names=sorted(former_names))
        return {**news, "versions": versions, "certificate": authority.certificate}

    def update(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        if not operation.preview or news["hosts"] is UNKNOWN:
            return super().update(operation, olds, news)
        # an unknown value would show a replacement of every instance
        old_versions, old_names = olds.get("versions") or {}, olds.get("hosts") or {}
        versions = {
            host: old_versions.get(host, UNKNOWN) if old_names.get(host) == host_names else UNKNOWN
            for host, host_names in news["hosts"].items()
        }
        return {**news, "versions": versions, "certificate": olds.get("certificate", UNKNOWN)}

    def delete(self, operation: Operation, olds: Properties) -> None:
        with _ssm(olds):
            ssm = client(self.settings(operation, olds), olds["region"])
            names = [olds["authority"], *olds["parameters"].values()]
            for batch in batches(names):
                ssm.delete_parameters(Names=batch)
        store = _store(olds)
        with writing(f"Docker hosts {olds['name']}", store.folder):
            store.remove()


class DockerHostKeys(InternalResource):
    """The keys of a group of Docker hosts."""

    versions: pulumi.Output[Mapping[str, str]]
    """The fingerprint of the engine's certificate, by host."""
    certificate: pulumi.Output[str]
    """The authority's certificate, as PEM."""


def _store(props: Properties) -> EngineStore:
    return EngineStore(here(props["folder"]))


def client_folder(folder: Path) -> Path:
    """The folder with the client certificate, in the form for Docker's tools."""
    return EngineStore(folder).client


def _is_current(
    text: str, authority: IssuedCertificate, names: list[str], olds: Properties, host: str
) -> bool:
    """True if ``text`` of the parameter is the key that `made` last issued for ``names``."""
    if not text or (olds.get("hosts") or {}).get(host) != names:
        return False
    try:
        fingerprint = read_certificate(_certificate(text)).fingerprint
    except ValueError:
        return False
    is_same_authority = olds.get("certificate") == authority.certificate
    return is_same_authority and fingerprint == (olds.get("versions") or {}).get(host)


def _certificate(text: str) -> str:
    return text[text.index("-----BEGIN CERTIFICATE-----") :]


def _ssm(props: Properties) -> AbstractContextManager[None]:
    """A context that turns errors of SSM into EarshotErrors."""
    return parameter_errors(f"keys of the Docker hosts in {props['region']}", "SSM refuses")


def _now() -> datetime:
    return datetime.now(UTC)
