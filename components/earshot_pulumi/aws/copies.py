"""Certificates of a stack on AWS. Copies of all of them are in SSM parameters.

Another checkout may have issued the copies. Instances have fetched them, so they take precedence
over the files of this checkout's folder.
"""

from earshot.listeners.properties import read_properties
from earshot.listeners.security import VALIDATOR
from earshot.placement.aws_secrets import COPY_PARAMETER, VALIDATOR_PARAMETER, secret_parameter
from earshot_pulumi.aws.credentials import reader
from earshot_pulumi.aws_settings import AwsKind
from earshot_pulumi.certificates import Certificates, CertificatesKind, store_of
from earshot_pulumi.provider.kind import UNKNOWN, Operation, Properties
from earshot_pulumi.writing import writing


class AwsCertificates(Certificates):
    """The authority of a stack on AWS and its certificates."""


class AwsCertificatesKind(AwsKind, CertificatesKind):
    """Copies the certificates in parameters into its folder before it reads the folder."""

    def differs(self, operation: Operation, olds: Properties, news: Properties) -> bool:
        if news["hosts"] is not UNKNOWN:
            self._restore_copies(operation, news)
        return super().differs(operation, olds, news)

    def apply(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        self._restore_copies(operation, news)
        return super().apply(operation, olds, news)

    def _restore_copies(self, operation: Operation, props: Properties) -> None:
        stack, store = props["stack"], store_of(props)
        kinds = (COPY_PARAMETER, VALIDATOR_PARAMETER, *props["hosts"])
        names = {secret_parameter(stack, kind): kind for kind in kinds}
        values = reader(self.settings(operation), props["region"])(list(names))
        texts = {names[name]: text for name, text in values.items()}
        copy = texts.pop(COPY_PARAMETER, "")
        if not copy:
            return
        if VALIDATOR_PARAMETER in texts:
            properties = read_properties(texts.pop(VALIDATOR_PARAMETER)).values
            keys = ("ssl.keystore.key", "ssl.keystore.certificate.chain")
            texts[VALIDATOR] = "".join(properties.get(key, "") for key in keys)
        with writing("certificates", store.folder):
            store.restore(copy, {name: f"{text.strip()}\n" for name, text in texts.items()})
