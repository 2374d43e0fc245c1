"""Certificates of a cluster on AWS, and the secrets that its instances fetch."""

import hashlib
import json
from pathlib import Path

import pulumi

from earshot.config.security import SecuritySpec
from earshot.listeners.security import VALIDATOR, node_name
from earshot.placement import aws_secrets
from earshot_pulumi.aws.instances import SharedInputs
from earshot_pulumi.aws.secrets import AwsCertificates, AwsSecret
from earshot_pulumi.aws.tags import tags
from earshot_pulumi.node_links import Links


class ClusterSecurity:
    """The certificates of a cluster and its secrets, below the gate."""

    certificates: AwsCertificates

    def __init__(self, shared: SharedInputs, security: SecuritySpec, root: Path) -> None:
        """``root`` is the folder of the stack's cluster on this machine."""
        self._shared, self._security, self._root = shared, security, root
        plan = shared.planned.apply(lambda aws_plan: aws_plan.plan)
        self.certificates = AwsCertificates(
            shared.stack,
            security,
            plan,
            root,
            shared.opts(),
            region=shared.spec.region,
            between_nodes=plan.apply(lambda plan: Links.of_plan(plan).show_certificates),
            **shared.settings,
        )
        authorities = str(list(security.tls.authorities))
        certificate = self.certificates.of_node(shared.spec.ids[0])
        version = _version(authorities, certificate)
        self._trusted = self._secret(aws_secrets.TRUSTED_PARAMETER, version)
        version = _version(authorities, certificate, self._passwords)
        self._secret(aws_secrets.COPY_PARAMETER, version)

    def of_node(self, id: int) -> pulumi.Output[aws_secrets.SecretVersions]:
        """The versions of the secrets of node ``id``. Known when the secrets exist."""
        certificate, users = self.certificates.of_node(id), pulumi.Output.from_input("")
        pinned_secrets = {
            aws_secrets.TRUSTED_PARAMETER: self._trusted,
            node_name(id): self._secret(node_name(id), certificate),
        }
        secrets = [*pinned_secrets.values()]
        if aws_secrets.makes_users(self._shared.spec, id):
            users = _version(
                json.dumps([user.model_dump(mode="json") for user in self._security.users]),
                self._mechanisms,
                self._passwords,
            )
            secrets.append(
                self._secret(
                    aws_secrets.USERS_PARAMETER,
                    users,
                    mechanism=self._mechanisms,
                    users={user.name: list(user.prefixes) for user in self._security.users},
                    logs_in=any(listener.protocol.sasl for listener in self._shared.spec.listeners),
                )
            )
        digest = _version(certificate, users, *(secret.id.apply(str) for secret in secrets))
        numbers = pulumi.Output.all(
            **{kind: secret.pinned for kind, secret in pinned_secrets.items()}
        )
        return pulumi.Output.all(digest, numbers).apply(
            # states of earlier releases have no numbers
            lambda values: aws_secrets.SecretVersions(
                values[0], {kind: int(number) for kind, number in values[1].items() if number}
            )
        )

    def of_validator(self) -> pulumi.Output[str]:
        """The version of the secrets of the validator in the VPC. Known when the secrets exist."""
        version = _version(
            str(self._security.mechanism),
            str(list(self._security.tls.authorities)),
            self.certificates.of(VALIDATOR),
            self.certificates.password_of(VALIDATOR),
        )
        mechanism = str(self._security.mechanism)
        secret = self._secret(aws_secrets.VALIDATOR_PARAMETER, version, mechanism=mechanism)
        return _version(version, secret.id.apply(str))

    @property
    def _mechanisms(self) -> str:
        return ",".join(self._shared.spec.mechanisms(self._security))

    @property
    def _passwords(self) -> pulumi.Output[str]:
        """A text that changes with any user's password."""
        return _version(*map(self.certificates.password_of, self._security.user_names))

    def _secret(self, kind: str, version: pulumi.Output[str], **inputs: object) -> AwsSecret:
        stack, name = self._shared.stack, f"{self._shared.stack}-{kind}"
        return AwsSecret(
            name,
            {
                "kind": kind,
                "parameter": aws_secrets.secret_parameter(stack, kind),
                "region": self._shared.spec.region,
                "root": str(self._root),
                **self._shared.settings,
                "version": version,
                "tags": tags(stack, name),
                "mechanism": "",
                "logs_in": False,
                **inputs,
            },
            self._shared.opts(self.certificates),
        )


def _version(*parts: pulumi.Input[str]) -> pulumi.Output[str]:
    """A text that changes with any of ``parts``."""
    return pulumi.Output.all(*parts).apply(
        lambda parts: hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    )
