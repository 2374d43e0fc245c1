"""The validator in the VPC: its place, and the security baseline, with sources.

FSBP stands for the controls of AWS Foundational Security Best Practices in Security Hub:
https://docs.aws.amazon.com/securityhub/latest/userguide/fsbp-standard.html
"""

import json
from pathlib import Path
from typing import Any

import pytest

from earshot.aws.roles import SESSION_MANAGER
from earshot.config.aws_sections import ValidatorInstanceSpec
from tests.components.aws import registered as aws
from tests.components.aws.registered import Answers, deployed, inputs
from tests.components.engine_double import Engine, Registered
from tests.config.aws_documents import ONE_LISTENER, TWO_LISTENERS
from tests.user_data.properties import files_in

NAME = "mine-validator"
BUCKET = f"arn:aws:s3:::{NAME}"
OBJECT = "aws:s3/bucketObject:BucketObject"
SHAPES: list[dict[str, Any]] = [
    {"validator": True},
    {"validator": {"every": 15, "keep_days": 7, "secrets": {"a.pem": "/kafka/a"}}, **ONE_LISTENER},
    {"validator": True, "deletion_protection": False, **TWO_LISTENERS},
]


@pytest.fixture(scope="module", params=range(len(SHAPES)))
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return deployed(tmp_path_factory.mktemp("state"), **SHAPES[request.param])


def own(engine: Engine, type: str) -> Registered:
    return engine.of(type)[NAME]


def bucket_part(engine: Engine, kind: str) -> dict[str, Any]:
    part = engine.one(f"aws:s3/{kind[0].lower()}{kind[1:]}:{kind}").inputs
    assert part["bucket"] == NAME
    return part


def test_it_is_in_a_private_subnet_without_ingress(engine: Engine) -> None:
    """FSBP EC2.9: no public address; EC2.18 and EC2.19 hold without any rule."""
    interface, instance = own(engine, aws.INTERFACE), own(engine, aws.INSTANCE)
    assert interface.inputs["subnetId"] == "id of mine-private-a"
    assert interface.inputs["securityGroups"] == [f"id of {NAME}"]
    assert instance.inputs["primaryNetworkInterface"] == {"networkInterfaceId": f"id of {NAME}"}
    assert NAME not in engine.of(aws.ADDRESS) and NAME not in engine.of(aws.ASSOCIATION)
    assert NAME in engine.of(aws.GROUP)
    assert not [it for it in inputs(engine, aws.INGRESS).values() if "validator" in str(it)]
    assert interface.depends_on(engine.of("aws:ec2/route:Route")["mine-private-a"]), "to boot"


def test_it_is_an_instance_like_others_after_the_gate_and_its_bundle(engine: Engine) -> None:
    """FSBP EC2.8 (tokens), EC2.3 (encryption)."""
    instance, bundle = own(engine, aws.INSTANCE), own(engine, OBJECT)
    assert instance.inputs["metadataOptions"]["httpTokens"] == "required"
    assert instance.inputs["rootBlockDevice"]["encrypted"] and "keyName" not in instance.inputs
    assert instance.inputs["userDataReplaceOnChange"]
    assert instance.is_below(engine.one(aws.GATE)) and instance.depends_on(bundle)
    assert "arm64" in instance.inputs["ami"]
    files = files_in(instance.inputs["userData"])
    prepare, key = files["/usr/local/sbin/earshot-prepare"], bundle.inputs["key"]
    assert f"bundle=s3://{NAME}/{key}\n" in prepare
    assert f"sha256={key.removeprefix('bundles/').removesuffix('.tar')}\n" in prepare
    has_secret = "/kafka/a" in instance.inputs["userData"]
    every = 15 if has_secret else ValidatorInstanceSpec().every
    assert f"-mmin +{every}" in files["/usr/local/sbin/earshot-validate"]


def test_its_role_gets_orders_and_puts_reports(engine: Engine) -> None:
    """FSBP IAM.1 and IAM.21; actions of the IAM reference for S3 and Systems Manager."""
    assert own(engine, aws.INSTANCE).inputs["iamInstanceProfile"] == NAME
    assert own(engine, aws.ROLE).inputs["assumeRolePolicy"]
    bundle = own(engine, OBJECT).inputs["key"]
    statements = json.loads(own(engine, aws.POLICY).inputs["policy"])["Statement"]
    granted = {it["Sid"]: (it["Action"], it["Resource"]) for it in statements}
    secrets, decrypt = granted.pop("Secrets", None), granted.pop("Decrypt", None)
    assert granted == {
        "Orders": (["s3:GetObject"], [f"{BUCKET}/order.json", f"{BUCKET}/{bundle}"]),
        "Reports": (["s3:PutObject"], [f"{BUCKET}/status.json", f"{BUCKET}/reports/*"]),
        "Sessions": (list(SESSION_MANAGER), ["*"]),
    }
    if secrets is not None:
        arn = "arn:aws:ssm:eu-central-1:123456789012:parameter/kafka/a"
        assert secrets == (["ssm:GetParameter"], [arn])
        assert decrypt == (["kms:Decrypt"], ["*"])


def test_its_bucket_is_private_encrypted_and_over_tls_and_old_reports_expire(
    engine: Engine,
) -> None:
    """FSBP S3.8 (no public access), S3.5 (only TLS), S3.13 (a lifecycle, for reports only); the S3
    guide on default encryption."""
    block = bucket_part(engine, "BucketPublicAccessBlock")
    assert [value for name, value in block.items() if name != "bucket"] == [True] * 4
    (rule,) = bucket_part(engine, "BucketServerSideEncryptionConfiguration")["rules"]
    assert rule["applyServerSideEncryptionByDefault"] == {"sseAlgorithm": "AES256"}
    (denied,) = json.loads(bucket_part(engine, "BucketPolicy")["policy"])["Statement"]
    assert (denied["Effect"], denied["Principal"], denied["Action"]) == ("Deny", "*", "s3:*")
    assert denied["Resource"] == [BUCKET, f"{BUCKET}/*"]
    assert denied["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    (rule,) = bucket_part(engine, "BucketLifecycleConfiguration")["rules"]
    assert rule["filter"] == {"prefix": "reports/"} and rule["status"] == "Enabled"
    assert int(rule["expiration"]["days"]) in (7, 30)


def test_a_preview_shows_it_with_what_is_known(tmp_path: Path) -> None:
    engine = deployed(tmp_path, Answers(preview=True), validator=True)
    assert own(engine, aws.INSTANCE) and own(engine, OBJECT).inputs["key"].startswith("bundles/")


def test_without_one_nothing_of_it_is_there(tmp_path: Path) -> None:
    engine = deployed(tmp_path, flow_logs=False)
    assert not [it for it in engine.seen if "validator" in it.name]
    assert not [it for it in engine.seen if it.type.startswith("aws:s3/")]
