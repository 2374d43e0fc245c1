"""Certificates from a private CA of ACM, for keys that stay on this machine.

Templates: https://docs.aws.amazon.com/privateca/latest/userguide/template-definitions.html. The
template for end entities takes subject and names from the request, for servers and clients.
"""

import functools
from collections.abc import Iterable

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa

from earshot.certificates.authority import Subject, new_request
from earshot.certificates.aws_calls import answer, client
from earshot.certificates.names import SubjectNames
from earshot.certificates.node_pem import read_node
from earshot.certificates.places import parts_of_ca
from earshot.errors import EarshotError


@functools.cache
def authority_of(arn: str) -> str:
    """The CA's certificate and those up to its root, as PEM, read once per process.

    Raises EarshotError.
    """
    with client("acm-pca", arn, parts_of_ca(arn)[1]) as pca:
        response = answer(
            arn,
            "acm-pca:GetCertificateAuthorityCertificate",
            pca.get_certificate_authority_certificate,
            CertificateAuthorityArn=arn,
        )
    return _lines(response["Certificate"], response.get("CertificateChain"))


def issued_by(arn: str, subject: Subject, hosts: Iterable[str], days: int) -> str:
    """A new key, and the chain of a certificate with exactly ``hosts`` as its names, as PEM.

    Raises EarshotError, also if the CA issues another certificate than requested.
    """
    requested = SubjectNames.of_hosts(hosts)
    request = new_request(subject, requested)
    partition, region, _ = parts_of_ca(arn)
    authority = authority_of(arn)
    trusted = x509.load_pem_x509_certificates(authority.encode())
    is_rsa = isinstance(trusted[0].public_key(), rsa.RSAPublicKey)  # otherwise the CA has an EC key
    with client("acm-pca", arn, region) as pca:
        certificate = answer(
            arn,
            "acm-pca:IssueCertificate",
            pca.issue_certificate,
            CertificateAuthorityArn=arn,
            Csr=request.text.encode(),
            SigningAlgorithm="SHA256WITHRSA" if is_rsa else "SHA256WITHECDSA",
            TemplateArn=f"arn:{partition}:acm-pca:::template/EndEntityCertificate/V1",
            Validity={"Value": days, "Type": "DAYS"},
        )
        arguments = {
            "CertificateAuthorityArn": arn,
            "CertificateArn": certificate["CertificateArn"],
        }
        wait = pca.get_waiter("certificate_issued").wait
        answer(arn, "acm-pca:GetCertificate", wait, **arguments)
        response = answer(arn, "acm-pca:GetCertificate", pca.get_certificate, **arguments)
    chain = _lines(response["Certificate"], response.get("CertificateChain"))
    node = read_node(arn, arn, {arn: (request.key + chain).encode()}, b"", trusted)
    if (refused := node.shown.refusal) is not None:
        observed = f"has issued a certificate that clients refuse: {refused.observed}"
        raise EarshotError(arn, observed=observed, allowed=refused.expected, remedy=refused.remedy)
    names = node.shown.names
    if not names.has_same_names(requested) or node.principal != subject.principal:
        observed = f"has issued a certificate for {names} to {node.principal}"
        allowed = f"the request, {requested} to {subject.principal}"
        raise EarshotError(arn, observed=observed, allowed=allowed)
    return node.store


def _lines(*texts: str | None) -> str:
    """``texts``, each with a line break at the end."""
    return "".join(f"{text.strip()}\n" for text in texts if text)
