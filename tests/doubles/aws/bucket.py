"""Doubles of aws:s3 Bucket, BucketPublicAccessBlock and BucketServerSideEncryptionConfiguration."""

from typing import Any

from tests.doubles.aws.cloud import ClientError, Cloud
from tests.doubles.aws.kind import AwsKind, constant, given, pairs, shape, tags_found
from tests.doubles.aws.names import FIRST_REGION, domain, partition
from tests.doubles.plugin.values import Plain

BLOCKS = {
    "blockPublicAcls": "BlockPublicAcls",
    "blockPublicPolicy": "BlockPublicPolicy",
    "ignorePublicAcls": "IgnorePublicAcls",
    "restrictPublicBuckets": "RestrictPublicBuckets",
}


class Bucket(AwsKind):
    """What else a bucket may have is asked for with resources of its own."""

    named = "bucket"
    shape = shape("bucket", "forceDestroy", "tags", "region")
    defaults = constant(forceDestroy=False)
    in_place = frozenset({"forceDestroy"})
    settled_later = frozenset({"region"})
    outputs = frozenset(
        {"arn", "bucketDomainName", "bucketRegion", "bucketRegionalDomainName", "tagsAll"}
    )
    absent = frozenset({"hostedZoneId", "websiteDomain", "websiteEndpoint"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        region = cloud.region_of(inputs)
        elsewhere = {"CreateBucketConfiguration": {"LocationConstraint": region}}
        cloud.client("s3", inputs).create_bucket(
            Bucket=inputs["bucket"], **({} if region == FIRST_REGION else elsewhere)
        )
        return str(inputs["bucket"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        s3, region = cloud.client("s3", state), cloud.region_of(state)
        s3.head_bucket(Bucket=id)
        return tags_found(cloud, _tags(s3, id), state) | {
            "bucket": id,
            "arn": f"arn:{partition(region)}:s3:::{id}",
            "bucketRegion": region,
            "bucketDomainName": f"{id}.s3.{domain(region)}",
            "bucketRegionalDomainName": f"{id}.s3.{region}.{domain(region)}",
        }

    def tag(self, cloud: Cloud, id: str, inputs: Plain, new: Plain, old: list[str]) -> None:
        s3, tags = cloud.client("s3", inputs), inputs.get("tagsAll", {})
        if tags:
            s3.put_bucket_tagging(Bucket=id, Tagging={"TagSet": pairs(tags)})
        else:
            s3.delete_bucket_tagging(Bucket=id)

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        s3 = cloud.client("s3", state)
        if state.get("forceDestroy"):
            listed = s3.list_object_versions(Bucket=id)
            for item in [*listed.get("Versions", []), *listed.get("DeleteMarkers", [])]:
                s3.delete_object(Bucket=id, Key=item["Key"], VersionId=item["VersionId"])
        s3.delete_bucket(Bucket=id)


class BucketPublicAccessBlock(AwsKind):
    shape = shape("bucket", *BLOCKS, "region")
    defaults = constant(**dict.fromkeys(BLOCKS, False))
    in_place = frozenset(BLOCKS)
    settled_later = frozenset({"region"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        self._put(cloud, inputs)
        return str(inputs["bucket"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        answer = cloud.client("s3", state).get_public_access_block(Bucket=id)
        found = answer["PublicAccessBlockConfiguration"]
        return {"bucket": id, **{name: found[block] for name, block in BLOCKS.items()}}

    def adjust(self, cloud: Cloud, id: str, found: Plain, inputs: Plain) -> None:
        if any(found[name] != inputs.get(name, False) for name in BLOCKS):
            self._put(cloud, inputs)

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client("s3", state).delete_public_access_block(Bucket=id)

    def _put(self, cloud: Cloud, inputs: Plain) -> None:
        wanted = {block: inputs.get(name, False) for name, block in BLOCKS.items()}
        cloud.client("s3", inputs).put_public_access_block(
            Bucket=inputs["bucket"], PublicAccessBlockConfiguration=wanted
        )


class BucketServerSideEncryptionConfiguration(AwsKind):
    algorithm = shape("sseAlgorithm", "kmsMasterKeyId")
    shape = shape(
        "bucket", "region",
        rules=shape("bucketKeyEnabled", applyServerSideEncryptionByDefault=algorithm),
    )  # fmt: skip
    in_place = frozenset({"rules"})
    settled_later = frozenset({"region"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        self._put(cloud, inputs)
        return str(inputs["bucket"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        answer = cloud.client("s3", state).get_bucket_encryption(Bucket=id)
        return {
            "bucket": id,
            "rules": [
                _encryption_found(rule)
                for rule in answer["ServerSideEncryptionConfiguration"]["Rules"]
            ],
        }

    def adjust(self, cloud: Cloud, id: str, found: Plain, inputs: Plain) -> None:
        if _encryption(found) != _encryption(inputs):
            self._put(cloud, inputs)

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client("s3", state).delete_bucket_encryption(Bucket=id)

    def _put(self, cloud: Cloud, inputs: Plain) -> None:
        cloud.client("s3", inputs).put_bucket_encryption(
            Bucket=inputs["bucket"],
            ServerSideEncryptionConfiguration={"Rules": _encryption(inputs)},
        )


def _encryption(values: Plain) -> list[dict[str, Any]]:
    return [
        {
            "ApplyServerSideEncryptionByDefault": given(
                rule.get("applyServerSideEncryptionByDefault", {}),
                SSEAlgorithm="sseAlgorithm",
                KMSMasterKeyID="kmsMasterKeyId",
            ),
            "BucketKeyEnabled": rule.get("bucketKeyEnabled", False),
        }
        for rule in values["rules"]
    ]


def _encryption_found(rule: Plain) -> Plain:
    by_default = rule["ApplyServerSideEncryptionByDefault"]
    reported = {
        "sseAlgorithm": by_default["SSEAlgorithm"],
        "kmsMasterKeyId": by_default.get("KMSMasterKeyID"),
    }
    return {
        "applyServerSideEncryptionByDefault": {k: v for k, v in reported.items() if v is not None},
        "bucketKeyEnabled": rule.get("BucketKeyEnabled", False),
    }


def _tags(s3: Any, bucket: str) -> list[dict[str, str]]:
    try:
        found: list[dict[str, str]] = s3.get_bucket_tagging(Bucket=bucket)["TagSet"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchTagSet":
            raise
        return []
    return found
