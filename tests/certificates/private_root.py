"""A private CA of ACM that is a root, made by the calls with which anybody makes one."""

from typing import Any


def new_private_ca(pca: Any) -> str:
    """Its ARN; ``pca`` is boto3's client of the service."""
    made = pca.create_certificate_authority(
        CertificateAuthorityType="ROOT",
        CertificateAuthorityConfiguration={
            "KeyAlgorithm": "RSA_2048",
            "SigningAlgorithm": "SHA256WITHRSA",
            "Subject": {"CommonName": "Example Root"},
        },
    )
    own = {"CertificateAuthorityArn": str(made["CertificateAuthorityArn"])}
    issued = pca.issue_certificate(
        **own,
        Csr=pca.get_certificate_authority_csr(**own)["Csr"].encode(),
        SigningAlgorithm="SHA256WITHRSA",
        TemplateArn="arn:aws:acm-pca:::template/RootCACertificate/V1",
        Validity={"Value": 10, "Type": "YEARS"},
    )
    own_certificate = {**own, "CertificateArn": issued["CertificateArn"]}
    pca.get_waiter("certificate_issued").wait(**own_certificate)
    root = pca.get_certificate(**own_certificate)["Certificate"]
    pca.import_certificate_authority_certificate(**own, Certificate=root.encode())
    return own["CertificateAuthorityArn"]
