"""The target contents of a stack's folder, and the numbers in names of its files."""

from dataclasses import replace

from earshot.certificates.authority import Subject
from earshot.certificates.target import TargetCertificates, numbered

TARGET = TargetCertificates(
    stack="test", nodes={"node-1": ("localhost",)}, node=Subject("node", "nodes"),
    users=("app", "ops"), days=397, renew_days=30,
)  # fmt: skip


def test_the_first_number_is_not_in_a_file_name() -> None:
    assert numbered("ca.pem", 1) == "ca.pem"
    assert numbered("ca.pem", 2) == "ca@2.pem"
    assert numbered("a.b.password", "*") == "a.b@*.password"


def test_each_user_has_the_password_of_its_number() -> None:
    target = replace(TARGET, numbers={"ops": 3})
    assert target.passwords == {"app": "app.password", "ops": "ops@3.password"}


def test_users_have_key_stores_without_hosts() -> None:
    assert TARGET.hosts == {"node-1": ("localhost",), "app": (), "ops": ()}


def test_another_authority_is_trusted_in_addition_or_instead() -> None:
    assert not TARGET.trusts_more
    assert replace(TARGET, authorities=(1, 2)).trusts_more
    assert replace(TARGET, authorities=(2,)).issuer == 2
    for change in ({"given": {"node-1": "PEM"}}, {"private_ca": "arn"}):
        target = replace(TARGET, **change)
        assert target.is_of_others and target.trusts_more
