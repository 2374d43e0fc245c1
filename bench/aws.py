"""Previews of many brokers on AWS, with an engine and a cloud that answer from memory.

Addresses, groups, records, user data and all else of the cluster are registered as in a preview;
what the engine and AWS themselves would take is not in it.
"""

from __future__ import annotations

import gc
import statistics
import time
from functools import partial
from pathlib import Path
from typing import Any

import pulumi
from earshot_pulumi.aws.brokers import AwsBrokers
from earshot_pulumi.deployment import ClusterContext
from earshot_pulumi.gate import PROVIDER_TYPE
from pulumi.runtime import mocks

from bench.figures import interleaved, show
from earshot.config.aws import AwsSpec
from earshot.config.document import read_spec
from earshot.names.aws import private_name, public_name

REGION = "eu-central-1"
DOCUMENT = {
    "placement": "aws",
    "region": REGION,
    "vpc": {"zones": [f"{REGION}{letter}" for letter in "abc"]},
    "archive": {"url": "https://archive.example/kafka_2.13-4.1.1.tgz", "sha512": "0f" * 64},
    "naming": "zone",
    "zone": {"name": "kafka.example.com", "public_zone_id": "Z0123456789ABC"},
    "listeners": [
        {"name": "INTERNAL", "port": 19092, "scopes": ["internal"]},
        {"name": "EXTERNAL", "port": 9092, "scopes": ["external"], "protocol": "SSL"},
    ],
    "clients": {"ranges": {"office": "203.0.113.0/24"}},
    "controllers": {"mode": "separate"},
}
SIZES = (25, 100, 200, 300)
"""Brokers of a preview."""
INSTANCE = "aws:ec2/instance:Instance"


class _Cloud(mocks.Mocks):
    """What the engine and AWS answer; ``known`` says whether the names are there already."""

    def __init__(self, *, known: bool) -> None:
        self._known = known
        self._made = 0
        self.instances: list[dict[str, Any]] = []

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        outputs = dict(args.inputs)
        if args.typ == PROVIDER_TYPE and "plan" in outputs:
            outputs["approved"] = "0123456789abcdef"
        if args.typ == INSTANCE:
            self.instances.append(outputs)
        if not args.custom or not self._known:
            return "", outputs
        self._made += 1
        place = f"{self._made // 250}.{self._made % 250 + 1}"
        private, public = f"10.0.{place}", f"198.51.{place}"
        if args.typ == "aws:ec2/networkInterface:NetworkInterface":
            outputs |= {"privateIp": private, "privateDnsName": private_name(private, REGION)}
        elif args.typ == "aws:ec2/eip:Eip":
            outputs |= {"publicIp": public, "publicDns": public_name(public, REGION)}
            outputs["allocationId"] = f"eipalloc-{self._made}"
        elif args.typ == "aws:route53/record:Record":
            outputs["fqdn"] = outputs["name"]
        elif args.typ == "aws:route53/zone:Zone":
            outputs["zoneId"] = "ZPRIVATE"
        elif args.typ == "aws:ssm/parameter:Parameter":
            outputs["arn"] = f"arn:aws:ssm:{REGION}:123:parameter{outputs['name']}"
        return f"vol-{self._made:017x}", outputs

    def call(self, args: mocks.MockCallArgs) -> Any:
        return {"region": REGION, "insecureValue": "ami-0123456789abcdef0", "ids": []}


def preview_seconds(brokers: int, *, known: bool) -> float:
    """CPU seconds of the program's part of a preview of ``brokers`` over three zones.

    ``known``: of a stack that is there, so that all names are known and user data is rendered;
    else of a new one.
    """
    spec = read_spec(DOCUMENT | {"brokers": brokers}, "bench")
    assert isinstance(spec, AwsSpec)
    cloud = _Cloud(known=known)
    mocks.set_mocks(cloud, "earshot", "bench", True)

    def register() -> pulumi.Output[str]:
        return AwsBrokers(ClusterContext("bench", pulumi.ResourceOptions(), Path()), spec).ready.urn

    preview = pulumi.runtime.test(register)  # type: ignore[no-untyped-call]
    gc.collect()  # no size pays for another's garbage
    begun = time.process_time()
    preview()
    seconds = time.process_time() - begun
    assert len(cloud.instances) == len(spec.node_ids)
    if known:
        texts = [item["userData"]["value"] for item in cloud.instances]  # secrets
        assert all(text.startswith("#cloud-config") for text in texts)
    return seconds


def measured(runs: int) -> None:
    """Previews of 300 brokers on AWS against fewer, as far as the program itself goes."""
    preview_seconds(SIZES[0], known=True)  # and its modules are loaded when they are used first
    stacks = {"new stack": False, "stack made": True}
    found = interleaved(
        {
            f"{stack}, {brokers} brokers": partial(preview_seconds, brokers, known=known)
            for stack, known in stacks.items()
            for brokers in SIZES
        },
        runs,
    )
    rows = []
    for stack in stacks:
        each = {it: statistics.median(found[f"{stack}, {it} brokers"]) / it for it in SIZES}
        rows += [(f"{stack}, each of {it}", f"{1000 * each[it]:.1f} ms", "") for it in SIZES]
        few, many = SIZES[0], SIZES[-1]
        growth = f"{each[many] / each[few]:.2f}"
        rows.append((f"{stack}, each of {many} / of {few}", growth, "at most 1.1"))
    show("Previews on AWS (CPU time)", found, rows)
