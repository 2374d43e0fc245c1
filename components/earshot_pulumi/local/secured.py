"""Certificates of a cluster on this machine, whose nodes keep the files that they run with."""

from earshot_pulumi.certificates import CertificatesProvider
from earshot_pulumi.dynamic import Props, here
from earshot_pulumi.local import node_files


class LocalCertificatesProvider(CertificatesProvider):
    """Lets each node have copies of its files before those are written anew."""

    def made(self, olds: Props, news: Props) -> Props:
        for directory in sorted(here(news["root"]).glob("node-*")):
            node_files.keep(directory)
        return super().made(olds, news)
