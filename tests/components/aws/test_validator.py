"""The validator in the VPC as it is registered: where it stands, and the baseline, with sources.

FSBP stands for the controls of AWS Foundational Security Best Practices in Security Hub:
https://docs.aws.amazon.com/securityhub/latest/userguide/fsbp-standard.html
"""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from earshot.aws.roles import SESSION_MANAGER
from earshot.config.aws_parts import ValidatorInstanceSpec
from tests.components.aws import registered as aws
from tests.components.aws.registered import Answers, deployed
from tests.components.engine_double import Engine, Registered
from tests.config.aws_documents import ONE_LISTENER, TWO_LISTENERS

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
    found = engine.one(f"aws:s3/{kind[0].lower()}{kind[1:]}:{kind}")
    assert found.inputs["bucket"] == NAME
    return found.inputs


def test_it_is_in_a_private_subnet_without_ingress(engine: Engine) -> None:
    """FSBP EC2.9: no public address; EC2.18 and EC2.19 hold where there is no rule at all."""
    interface, instance = own(engine, aws.INTERFACE), own(engine, aws.INSTANCE)
    assert interface.inputs["subnetId"] == "id of mine-private-a"
    assert interface.inputs["securityGroups"] == [f"id of {NAME}"]
    assert instance.inputs["primaryNetworkInterface"] == {"networkInterfaceId": f"id of {NAME}"}
    assert NAME not in engine.of(aws.ADDRESS) and NAME not in engine.of(aws.ASSOCIATION)
    assert NAME in engine.of(aws.GROUP)
    assert not [it for it in engine.of(aws.INGRESS).values() if "validator" in str(it.inputs)]


def test_it_reaches_what_it_boots_from(engine: Engine) -> None:
    ways = engine.of("aws:ec2/route:Route")
    assert own(engine, aws.INTERFACE).depends_on(ways["mine-private-a"])
    assert own(engine, aws.INSTANCE).depends_on(own(engine, OBJECT))


def test_it_is_made_as_any_instance_here_is(engine: Engine) -> None:
    """FSBP EC2.8 (tokens), EC2.3 (encryption); nothing before the names were checked."""
    inputs = own(engine, aws.INSTANCE).inputs
    assert inputs["metadataOptions"]["httpTokens"] == "required"
    assert inputs["rootBlockDevice"]["encrypted"] and "keyName" not in inputs
    assert inputs["userDataReplaceOnChange"]
    assert own(engine, aws.INSTANCE).is_below(engine.one(aws.GATE))
    assert "arm64" in inputs["ami"]


def test_its_role_gets_orders_and_puts_reports(engine: Engine) -> None:
    """FSBP IAM.1 and IAM.21; actions of the IAM reference for S3 and Systems Manager."""
    assert own(engine, aws.INSTANCE).inputs["iamInstanceProfile"] == NAME
    assert own(engine, aws.ROLE).inputs["assumeRolePolicy"]
    bundle = own(engine, OBJECT).inputs["key"]
    statements = json.loads(own(engine, aws.POLICY).inputs["policy"])["Statement"]
    found = {item["Sid"]: (item["Action"], item["Resource"]) for item in statements}
    secrets, decrypt = found.pop("Secrets", None), found.pop("Decrypt", None)
    assert found == {
        "Orders": (["s3:GetObject"], [f"{BUCKET}/order.json", f"{BUCKET}/{bundle}"]),
        "Reports": (["s3:PutObject"], [f"{BUCKET}/status.json", f"{BUCKET}/reports/*"]),
        "Sessions": (list(SESSION_MANAGER), ["*"]),
    }
    if secrets is not None:
        arn = "arn:aws:ssm:eu-central-1:123456789012:parameter/kafka/a"
        assert secrets == (["ssm:GetParameter"], [arn])
        assert decrypt == (["kms:Decrypt"], ["*"])


def test_its_bucket_is_private_encrypted_and_reached_over_tls(engine: Engine) -> None:
    """FSBP S3.8 (no public access), S3.5 (TLS alone); the S3 guide on default encryption."""
    block = bucket_part(engine, "BucketPublicAccessBlock")
    flags = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
    assert all(block[flag] for flag in flags)
    (rule,) = bucket_part(engine, "BucketServerSideEncryptionConfiguration")["rules"]
    assert rule["applyServerSideEncryptionByDefault"] == {"sseAlgorithm": "AES256"}
    (denied,) = json.loads(bucket_part(engine, "BucketPolicy")["policy"])["Statement"]
    assert (denied["Effect"], denied["Principal"], denied["Action"]) == ("Deny", "*", "s3:*")
    assert denied["Resource"] == [BUCKET, f"{BUCKET}/*"]
    assert denied["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_old_reports_expire_and_nothing_else(engine: Engine) -> None:
    """FSBP S3.13 (a lifecycle); the order and the bundle lie elsewhere."""
    (rule,) = bucket_part(engine, "BucketLifecycleConfiguration")["rules"]
    assert rule["filter"] == {"prefix": "reports/"} and rule["status"] == "Enabled"
    assert int(rule["expiration"]["days"]) in (7, 30)


def test_its_user_data_fetch_the_very_bundle_that_was_carried_there(engine: Engine) -> None:
    text = own(engine, aws.INSTANCE).inputs["userData"]
    files = {item["path"]: item["content"] for item in yaml.safe_load(text)["write_files"]}
    prepare = files["/usr/local/sbin/earshot-prepare"]
    key = own(engine, OBJECT).inputs["key"]
    assert f"bundle=s3://{NAME}/{key}\n" in prepare
    assert f"sha256={key.removeprefix('bundles/').removesuffix('.tar')}\n" in prepare
    every = ValidatorInstanceSpec().every if "/kafka/a" not in text else 15
    assert f"-mmin +{every}" in files["/usr/local/sbin/earshot-validate"]


def test_a_preview_shows_it_with_what_is_known(tmp_path: Path) -> None:
    engine = deployed(tmp_path, Answers(preview=True), validator=True)
    assert own(engine, aws.INSTANCE) and own(engine, OBJECT).inputs["key"].startswith("bundles/")


def test_without_one_nothing_of_it_is_there(tmp_path: Path) -> None:
    engine = deployed(tmp_path, flow_logs=False)
    assert not [it for it in engine.seen if "validator" in it.name]
    assert not [it for it in engine.seen if it.type.startswith("aws:s3/")]
