"""Certificates of a stack on AWS: what another checkout has made comes from the stack's parameters.

What stands there is what instances have been given, so it goes before what lies here.
"""

from pulumi.output import Unknown

from earshot.listeners.properties import read_properties
from earshot.listeners.security import VALIDATOR
from earshot.placement.aws_secrets import COPY_PARAMETER, VALIDATOR_PARAMETER, secret_parameter
from earshot_pulumi.aws.credentials import reader
from earshot_pulumi.certificates import CertificatesProvider, store_of
from earshot_pulumi.dynamic import Props, on_lines_of_its_own
from earshot_pulumi.writing import writing


class AwsCertificatesProvider(CertificatesProvider):
    """Takes over what stands in parameters before it looks at its folder."""

    def differs(self, olds: Props, news: Props) -> bool:
        if not isinstance(news["hosts"], Unknown):
            with on_lines_of_its_own():
                self._take_over(news)
        return super().differs(olds, news)

    def made(self, olds: Props, news: Props) -> Props:
        self._take_over(news)
        return super().made(olds, news)

    def _take_over(self, props: Props) -> None:
        stack, store = props["stack"], store_of(props)
        kinds = (COPY_PARAMETER, VALIDATOR_PARAMETER, *props["hosts"])
        names = {secret_parameter(stack, kind): kind for kind in kinds}
        by_name = reader(self._config, props["region"])(list(names))
        found = {names[name]: text for name, text in by_name.items()}
        copy = found.pop(COPY_PARAMETER, "")
        if not copy:
            return
        if VALIDATOR_PARAMETER in found:
            values = read_properties(found.pop(VALIDATOR_PARAMETER)).values
            parts = ("ssl.keystore.key", "ssl.keystore.certificate.chain")
            found[VALIDATOR] = "".join(values.get(it, "") for it in parts)
        with writing("certificates", store.folder):
            store.restore(copy, {name: f"{text.strip()}\n" for name, text in found.items()})
