"""Certificates of a cluster on this machine. Nodes keep copies of the files that they use."""

from earshot_pulumi.certificates import Certificates, CertificatesKind
from earshot_pulumi.local import node_files
from earshot_pulumi.properties import here
from earshot_pulumi.provider.kind import Operation, Properties


class LocalCertificates(Certificates):
    """The authority of a stack on this machine, and the certificates that it has issued."""

    FORMER_NAMES = ("Certificates",)


class LocalCertificatesKind(CertificatesKind):
    """Copies each node's files before it rewrites them."""

    def apply(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        for directory in sorted(here(news["root"]).glob("node-*")):
            node_files.keep(directory)
        return super().apply(operation, olds, news)
