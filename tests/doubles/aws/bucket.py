"""Doubles of aws:s3: Bucket, what can be configured of one, and BucketObject."""

import json
from abc import abstractmethod
from pathlib import Path
from typing import Any

from tests.doubles.aws.cloud import ClientError, Cloud
from tests.doubles.aws.endpoints import same_document
from tests.doubles.aws.kind import (
    AwsKind,
    arguments,
    aws_name,
    constant,
    outputs_of,
    pairs,
    shape,
    tags_of,
)
from tests.doubles.aws.names import FIRST_REGION, partition
from tests.doubles.plugin.values import Plain

BLOCKS = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
ANY = ":s3:::"
NOT_ENFORCED = ":s3:::not-enforced-here."
"""moto ignores conditions, and so would deny always what a policy denies over plain HTTP. Here a
statement with a condition names buckets that do not exist."""


class Bucket(AwsKind):
    """Other properties of a bucket are resources of their own."""

    name_input = "bucket"
    shape = shape("bucket", "forceDestroy", "tags", "region")
    defaults = constant(forceDestroy=False)
    in_place = frozenset({"forceDestroy"})
    outputs = frozenset({"arn"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        region = cloud.region_of(inputs)
        location = {"CreateBucketConfiguration": {"LocationConstraint": region}}
        cloud.client("s3", inputs).create_bucket(
            Bucket=inputs["bucket"], **({} if region == FIRST_REGION else location)
        )
        return str(inputs["bucket"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        s3, region = cloud.client("s3", state), cloud.region_of(state)
        s3.head_bucket(Bucket=id)
        return tags_of(cloud, _tags(s3, id), state) | {
            "bucket": id,
            "arn": f"arn:{partition(region)}:s3:::{id}",
        }

    def tag(self, cloud: Cloud, id: str, inputs: Plain, tags: Plain, removed: list[str]) -> None:
        s3, all_tags = cloud.client("s3", inputs), inputs.get("tagsAll", {})
        if all_tags:
            s3.put_bucket_tagging(Bucket=id, Tagging={"TagSet": pairs(all_tags)})
        else:
            s3.delete_bucket_tagging(Bucket=id)

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        s3 = cloud.client("s3", state)
        if state.get("forceDestroy"):
            versions = s3.list_object_versions(Bucket=id)
            for version in [*versions.get("Versions", []), *versions.get("DeleteMarkers", [])]:
                s3.delete_object(Bucket=id, Key=version["Key"], VersionId=version["VersionId"])
        s3.delete_bucket(Bucket=id)


class BucketObject(AwsKind):
    """From a file of this machine: `source` is the path of an asset, and its hash."""

    shape = shape("bucket", "key", "source", "region")
    in_place = frozenset({"source"})
    outputs = frozenset({"arn"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        cloud.client("s3", inputs).put_object(
            Body=Path(inputs["source"]["path"]).read_bytes(),
            **arguments(inputs, "bucket", "key"),
        )
        return f"{inputs['bucket']}/{inputs['key']}"

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        bucket, _, key = id.partition("/")
        cloud.client("s3", state).head_object(Bucket=bucket, Key=key)
        return {
            "bucket": bucket,
            "key": key,
            "source": state.get("source"),
            "arn": f"arn:{partition(cloud.region_of(state))}:s3:::{id}",
        }

    def update(self, cloud: Cloud, id: str, state: Plain, inputs: Plain) -> Plain:
        self.make(cloud, inputs)
        return super().update(cloud, id, state, inputs)

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client("s3", state).delete_object(Bucket=state["bucket"], Key=state["key"])


class BucketPart(AwsKind):
    """A configuration of which a bucket has one, so that the bucket's name is its id."""

    deletion: str
    """The call of S3 that removes it."""

    @abstractmethod
    def put(self, s3: Any, inputs: Plain) -> None:
        """Sets the whole configuration."""

    @abstractmethod
    def configuration(self, s3: Any, bucket: str, state: Plain) -> Plain:
        """The inputs other than the bucket, as S3 has them."""

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        self.put(cloud.client("s3", inputs), inputs)
        return str(inputs["bucket"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        return {"bucket": id} | self.configuration(cloud.client("s3", state), id, state)

    def adjust(self, cloud: Cloud, id: str, current: Plain, inputs: Plain) -> None:
        if any(
            current[name] != inputs.get(name, self.defaults.get(name)) for name in self.in_place
        ):
            self.make(cloud, inputs)

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        getattr(cloud.client("s3", state), self.deletion)(Bucket=id)


class BucketPublicAccessBlock(BucketPart):
    shape = shape("bucket", *BLOCKS, "region")
    defaults = constant(**dict.fromkeys(BLOCKS, False))
    in_place = frozenset(BLOCKS)
    deletion = "delete_public_access_block"

    def put(self, s3: Any, inputs: Plain) -> None:
        blocks = {aws_name(name): inputs.get(name, False) for name in BLOCKS}
        s3.put_public_access_block(Bucket=inputs["bucket"], PublicAccessBlockConfiguration=blocks)

    def configuration(self, s3: Any, bucket: str, state: Plain) -> Plain:
        answer = s3.get_public_access_block(Bucket=bucket)
        return outputs_of(answer["PublicAccessBlockConfiguration"], *BLOCKS)


class BucketServerSideEncryptionConfiguration(BucketPart):
    algorithm = shape("sseAlgorithm")
    shape = shape("bucket", "region", rules=shape(applyServerSideEncryptionByDefault=algorithm))
    in_place = frozenset({"rules"})
    deletion = "delete_bucket_encryption"

    def put(self, s3: Any, inputs: Plain) -> None:
        algorithms = (rule["applyServerSideEncryptionByDefault"] for rule in inputs["rules"])
        rules = [
            {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": algorithm["sseAlgorithm"]}}
            for algorithm in algorithms
        ]
        s3.put_bucket_encryption(
            Bucket=inputs["bucket"], ServerSideEncryptionConfiguration={"Rules": rules}
        )

    def configuration(self, s3: Any, bucket: str, state: Plain) -> Plain:
        answer = s3.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]
        algorithms = (rule["ApplyServerSideEncryptionByDefault"] for rule in answer["Rules"])
        rules = [
            {"applyServerSideEncryptionByDefault": {"sseAlgorithm": algorithm["SSEAlgorithm"]}}
            for algorithm in algorithms
        ]
        return {"rules": rules}


class BucketPolicy(BucketPart):
    shape = shape("bucket", "policy", "region")
    in_place = frozenset({"policy"})
    deletion = "delete_bucket_policy"

    def put(self, s3: Any, inputs: Plain) -> None:
        policy = json.loads(inputs["policy"])
        for statement in policy["Statement"]:
            if "Condition" in statement:
                resources = statement["Resource"]
                arns = [resources] if isinstance(resources, str) else resources
                statement["Resource"] = [arn.replace(ANY, NOT_ENFORCED) for arn in arns]
        s3.put_bucket_policy(Bucket=inputs["bucket"], Policy=json.dumps(policy))

    def configuration(self, s3: Any, bucket: str, state: Plain) -> Plain:
        text = s3.get_bucket_policy(Bucket=bucket)["Policy"].replace(NOT_ENFORCED, ANY)
        return {"policy": same_document(state.get("policy"), text)}


class BucketLifecycleConfiguration(BucketPart):
    shape = shape(
        "bucket", "region",
        rules=shape("id", "status", filter=shape("prefix"), expiration=shape("days")),
    )  # fmt: skip
    in_place = frozenset({"rules"})
    deletion = "delete_bucket_lifecycle"

    def put(self, s3: Any, inputs: Plain) -> None:
        rules: list[dict[str, Any]] = [
            {
                "ID": rule["id"],
                "Status": rule["status"],
                "Filter": {"Prefix": rule["filter"]["prefix"]},
                "Expiration": {"Days": rule["expiration"]["days"]},
            }
            for rule in inputs["rules"]
        ]
        s3.put_bucket_lifecycle_configuration(
            Bucket=inputs["bucket"], LifecycleConfiguration={"Rules": rules}
        )

    def configuration(self, s3: Any, bucket: str, state: Plain) -> Plain:
        answer = s3.get_bucket_lifecycle_configuration(Bucket=bucket)
        return {
            "rules": [
                {
                    "id": rule["ID"],
                    "status": rule["Status"],
                    "filter": {"prefix": rule["Filter"]["Prefix"]},
                    "expiration": {"days": rule["Expiration"]["Days"]},
                }
                for rule in answer["Rules"]
            ]
        }


def _tags(s3: Any, bucket: str) -> list[dict[str, str]]:
    try:
        tags: list[dict[str, str]] = s3.get_bucket_tagging(Bucket=bucket)["TagSet"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchTagSet":
            raise
        return []
    return tags
