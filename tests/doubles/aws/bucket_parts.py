"""Doubles of aws:s3 BucketObject, BucketPolicy and BucketLifecycleConfiguration."""

import json
from pathlib import Path
from typing import Any

from tests.doubles.aws.cloud import Cloud
from tests.doubles.aws.endpoints import same_document
from tests.doubles.aws.kind import AwsKind, given, shape
from tests.doubles.aws.names import partition
from tests.doubles.plugin.values import Plain

ANY = ":s3:::"
NOT_ENFORCED = ":s3:::not-enforced-here."
"""moto takes no notice of conditions, and what is denied over plain HTTP alone it denies always: so
a statement that has one is kept there with resources that are nobody's."""


class BucketObject(AwsKind):
    """From a file of this machine: `source` is the path of an asset, and its hash."""

    shape = shape("bucket", "key", "source", "contentType", "region")
    in_place = frozenset({"source", "contentType"})
    settled_later = frozenset({"contentType", "region"})
    outputs = frozenset({"arn"})
    absent = frozenset({"tagsAll", "versionId"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        self._put(cloud, inputs)
        return f"{inputs['bucket']}/{inputs['key']}"

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        bucket, _, key = id.partition("/")
        found = cloud.client("s3", state).head_object(Bucket=bucket, Key=key)
        return {
            "bucket": bucket,
            "key": key,
            "source": state.get("source"),
            "contentType": found["ContentType"],
            "arn": f"arn:{partition(cloud.region_of(state))}:s3:::{id}",
        }

    def update(self, cloud: Cloud, id: str, state: Plain, inputs: Plain) -> Plain:
        self._put(cloud, inputs)
        return super().update(cloud, id, state, inputs)

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client("s3", state).delete_object(Bucket=state["bucket"], Key=state["key"])

    def _put(self, cloud: Cloud, inputs: Plain) -> None:
        cloud.client("s3", inputs).put_object(
            Body=Path(inputs["source"]["path"]).read_bytes(),
            **given(inputs, Bucket="bucket", Key="key", ContentType="contentType"),
        )


class BucketPolicy(AwsKind):
    shape = shape("bucket", "policy", "region")
    in_place = frozenset({"policy"})
    settled_later = frozenset({"region"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        self._put(cloud, inputs)
        return str(inputs["bucket"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        held = cloud.client("s3", state).get_bucket_policy(Bucket=id)["Policy"]
        text = held.replace(NOT_ENFORCED, ANY)
        return {"bucket": id, "policy": same_document(state.get("policy"), text)}

    def adjust(self, cloud: Cloud, id: str, found: Plain, inputs: Plain) -> None:
        if found["policy"] != inputs["policy"]:
            self._put(cloud, inputs)

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client("s3", state).delete_bucket_policy(Bucket=id)

    def _put(self, cloud: Cloud, inputs: Plain) -> None:
        policy = json.loads(inputs["policy"])
        for statement in policy["Statement"]:
            if "Condition" in statement:
                named = statement["Resource"]
                listed = [named] if isinstance(named, str) else named
                statement["Resource"] = [it.replace(ANY, NOT_ENFORCED) for it in listed]
        cloud.client("s3", inputs).put_bucket_policy(
            Bucket=inputs["bucket"], Policy=json.dumps(policy)
        )


class BucketLifecycleConfiguration(AwsKind):
    shape = shape(
        "bucket", "region",
        rules=shape("id", "status", filter=shape("prefix"), expiration=shape("days")),
    )  # fmt: skip
    in_place = frozenset({"rules"})
    settled_later = frozenset({"region"})

    def make(self, cloud: Cloud, inputs: Plain) -> str:
        self._put(cloud, inputs)
        return str(inputs["bucket"])

    def find(self, cloud: Cloud, id: str, state: Plain) -> Plain:
        found = cloud.client("s3", state).get_bucket_lifecycle_configuration(Bucket=id)["Rules"]
        return {
            "bucket": id,
            "rules": [
                {
                    "id": rule["ID"],
                    "status": rule["Status"],
                    "filter": {"prefix": rule["Filter"]["Prefix"]},
                    "expiration": {"days": rule["Expiration"]["Days"]},
                }
                for rule in found
            ],
        }

    def adjust(self, cloud: Cloud, id: str, found: Plain, inputs: Plain) -> None:
        if found["rules"] != inputs["rules"]:
            self._put(cloud, inputs)

    def remove(self, cloud: Cloud, id: str, state: Plain) -> None:
        cloud.client("s3", state).delete_bucket_lifecycle(Bucket=id)

    def _put(self, cloud: Cloud, inputs: Plain) -> None:
        rules: list[dict[str, Any]] = [
            {
                "ID": rule["id"],
                "Status": rule["status"],
                "Filter": {"Prefix": rule["filter"]["prefix"]},
                "Expiration": {"Days": rule["expiration"]["days"]},
            }
            for rule in inputs["rules"]
        ]
        cloud.client("s3", inputs).put_bucket_lifecycle_configuration(
            Bucket=inputs["bucket"], LifecycleConfiguration={"Rules": rules}
        )
