"""The security baseline, on what is registered: each line with its source.

FSBP stands for the controls of AWS Foundational Security Best Practices in Security Hub:
https://docs.aws.amazon.com/securityhub/latest/userguide/fsbp-standard.html
"""

import json
from typing import Any

import pytest

from tests.components.aws import registered as aws
from tests.components.aws.registered import inputs, registered
from tests.components.engine_double import Engine
from tests.config.aws_documents import ONE_LISTENER, OWN_ZONE, TWO_LISTENERS, read_aws

SEPARATE = {"controllers": {"mode": "separate"}}
SHAPES: list[dict[str, Any]] = [{}, ONE_LISTENER, {**TWO_LISTENERS, **OWN_ZONE, **SEPARATE}]


@pytest.fixture(scope="module", params=range(len(SHAPES)))
def engine(request: pytest.FixtureRequest) -> Engine:
    return registered(read_aws(flow_logs=True, **SHAPES[request.param]))


def all_inputs(engine: Engine, type: str) -> list[dict[str, Any]]:
    resources = inputs(engine, type)
    assert resources
    return list(resources.values())


def test_instances_answer_for_their_metadata_with_a_token_only(engine: Engine) -> None:
    """FSBP EC2.8; one hop, so that no container on the instance gets there (EC2 guide, IMDS)."""
    for instance in all_inputs(engine, aws.INSTANCE):
        options = instance["metadataOptions"]
        assert (options["httpTokens"], options["httpPutResponseHopLimit"]) == ("required", 1)


def test_disks_are_encrypted(engine: Engine) -> None:
    """FSBP EC2.3 and EC2.7."""
    assert all(item["rootBlockDevice"]["encrypted"] for item in all_inputs(engine, aws.INSTANCE))
    assert all(item["encrypted"] for item in all_inputs(engine, aws.VOLUME))


def test_no_public_address_but_an_elastic_ip(engine: Engine) -> None:
    """FSBP EC2.9 and EC2.15; Elastic IPs are for brokers with external clients, and for NAT."""
    assert not any(item["mapPublicIpOnLaunch"] for item in all_inputs(engine, aws.SUBNET))
    for item in all_inputs(engine, aws.INSTANCE):
        assert "associatePublicIpAddress" not in item and "subnetId" not in item
    addressed = {name for name in engine.of(aws.ADDRESS) if "-nat-" not in name}
    assert addressed == set(engine.of(aws.ASSOCIATION))
    assert all("broker" in name for name in addressed)


def test_groups_admit_only_kafka_and_named_clients(engine: Engine) -> None:
    """FSBP EC2.18 and EC2.19: no port is open to the world, and none that is no listener's."""
    for item in all_inputs(engine, aws.INGRESS):
        assert item["ipProtocol"] == "tcp"
        assert item["fromPort"] == item["toPort"] in (9092, 19092, 29092)
        assert item.get("cidrIpv4") not in ("0.0.0.0/0",) and "cidrIpv6" not in item
    for item in all_inputs(engine, aws.GROUP):
        assert "ingress" not in item


def test_the_world_comes_in_where_it_was_written_out_and_there_alone() -> None:
    settings = {**TWO_LISTENERS, "clients": {"anywhere": True}}
    rules = all_inputs(registered(read_aws(**settings)), aws.INGRESS)
    assert [int(it["fromPort"]) for it in rules if it.get("cidrIpv4") == "0.0.0.0/0"] == [9092]


def test_no_key_pair_allows_a_login(engine: Engine) -> None:
    """Sessions go through Systems Manager: no key pair, no port 22 (FSBP EC2.13)."""
    assert not any("keyName" in item for item in all_inputs(engine, aws.INSTANCE))
    assert not [it for it in all_inputs(engine, aws.INGRESS) if int(it["fromPort"]) == 22]


def test_a_role_is_one_nodes_own_and_can_next_to_nothing(engine: Engine) -> None:
    """FSBP IAM.21 and IAM.1: no action is a pattern, none but Session Manager's is for all."""
    assert len(all_inputs(engine, aws.ROLE)) == len(all_inputs(engine, aws.INSTANCE))
    profiles = [item["iamInstanceProfile"] for item in all_inputs(engine, aws.INSTANCE)]
    assert len(set(profiles)) == len(profiles)
    for name, item in engine.of(aws.POLICY).items():
        for statement in json.loads(item.inputs["policy"])["Statement"]:
            assert not any("*" in action for action in statement["Action"])
            if statement["Sid"] != "Sessions":
                own = engine.of(aws.PARAMETER)[name].inputs["name"]
                assert statement["Action"] == ["ssm:PutParameter"]
                assert statement["Resource"][0].endswith(f":parameter{own}")


def test_flow_logs_are_kept_in_a_closed_bucket(engine: Engine) -> None:
    """FSBP EC2.6 and S3.8."""
    log = engine.one("aws:ec2/flowLog:FlowLog")
    closed = engine.one("aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock")
    assert log.inputs["trafficType"] == "ALL" and log.depends_on(closed)
    flags = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
    assert all(closed.inputs[flag] for flag in flags)


def test_nothing_that_holds_data_or_a_name_goes_by_accident(engine: Engine) -> None:
    """EC2 guide, "Change instance termination protection"; Pulumi's `protect`; data is retained."""
    protected = {resource.type for resource in engine.seen if resource.request.protect}
    assert protected >= {aws.VPC, aws.VOLUME, aws.INTERFACE}
    assert protected <= {aws.VPC, aws.VOLUME, aws.INTERFACE, aws.ADDRESS, aws.ZONE}
    for volume in engine.of(aws.VOLUME).values():
        assert volume.request.protect and volume.request.retainOnDelete
    assert all(item["disableApiTermination"] for item in all_inputs(engine, aws.INSTANCE))


def test_protection_can_be_taken_off() -> None:
    engine = registered(read_aws(deletion_protection=False, data="delete", **TWO_LISTENERS))
    assert not any(it.request.protect or it.request.retainOnDelete for it in engine.seen)
    assert not any(it["disableApiTermination"] for it in all_inputs(engine, aws.INSTANCE))


def test_an_instance_is_replaced_after_its_deletion(engine: Engine) -> None:
    """An interface and a volume are attached to one instance at a time (EC2 and EBS guides)."""
    for instance in engine.of(aws.INSTANCE).values():
        assert instance.request.deleteBeforeReplace
        assert instance.inputs["userDataReplaceOnChange"]
    attachments = all_inputs(engine, aws.ATTACHMENT)
    assert all(attachment["stopInstanceBeforeDetaching"] for attachment in attachments)


def test_user_data_hold_no_secret() -> None:
    """Whoever may describe an instance reads them (EC2 guide, user data)."""
    spec = read_aws(brokers=1, secrets={"key.pem": "/kafka/{id}/key"})
    (instance,) = all_inputs(registered(spec), aws.INSTANCE)
    text = instance["userData"]
    assert "/kafka/1/key" in text
    assert "PRIVATE KEY" not in text and "password" not in text.lower()
