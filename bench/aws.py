"""Previews of many brokers on AWS, with an engine and a cloud that answer from memory.

Addresses, groups, records, user data and all else of the cluster are registered as in a preview;
what the engine and AWS themselves would take is not in it.
"""

import gc
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pulumi
import yaml
from earshot_pulumi.aws.brokers import AwsBrokers
from earshot_pulumi.deployment import ClusterContext
from earshot_pulumi.docker import host_resources
from earshot_pulumi.gate import PROVIDER_TYPE
from earshot_pulumi.stack_program import on_new_hosts
from pulumi.runtime import mocks

from bench.figures import measure_in_turn, show
from earshot.config.aws import AwsSpec
from earshot.config.balancer import MAX_LISTENERS
from earshot.config.docker import DockerSpec
from earshot.config.document import read_spec
from earshot.names.aws import private_name, public_name
from toolchain.paths import ROOT

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
BALANCED: dict[str, Any] = {
    "listeners": [
        {"name": "INTERNAL", "port": 19092, "scopes": ["internal"]},
        {
            "name": "EXTERNAL",
            "port": 9092,
            "scopes": ["external"],
            "protocol": "SSL",
            "address": {"strategy": "port", "base_port": 9100},
        },
    ],
}
BALANCED_SIZES = (12, 24, MAX_LISTENERS - 1)
"""Brokers behind a balancer, which has a listener for each and one for the bootstrap."""
EXPOSED: dict[str, Any] = {
    "nlb": {"kind": "nlb"},
    "privatelink": {"kind": "privatelink", "principals": {"us": "arn:aws:iam::111122223333:root"}},
}
HOSTS = 20
"""The largest number of Docker hosts of a stack."""
TEMPLATE = ROOT / "stacks" / "Pulumi.aws-docker.yaml"
INSTANCE = "aws:ec2/instance:Instance"
FORWARDER = "aws:lb/listener:Listener"
CONTAINER = "docker:index/container:Container"


class _Cloud(mocks.Mocks):
    """A double of engine and AWS. With ``names_known`` the names exist already."""

    def __init__(self, *, names_known: bool) -> None:
        self._known = names_known
        self._count = 0
        self.resources: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        """The inputs of resources, by their type."""

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        outputs = dict(args.inputs)
        if args.typ == PROVIDER_TYPE and "plan" in outputs:
            outputs["approved"] = "0123456789abcdef"
        self.resources[args.typ].append(outputs)
        if not args.custom or not self._known:
            return "", outputs
        self._count += 1
        place = f"{self._count // 250}.{self._count % 250 + 1}"
        private, public = f"10.0.{place}", f"198.51.{place}"
        if args.typ == "aws:ec2/networkInterface:NetworkInterface":
            outputs |= {"privateIp": private, "privateDnsName": private_name(private, REGION)}
        elif args.typ == "aws:ec2/eip:Eip":
            outputs |= {"publicIp": public, "publicDns": public_name(public, REGION)}
            outputs["allocationId"] = f"eipalloc-{self._count}"
        elif args.typ == "aws:route53/record:Record":
            outputs["fqdn"] = outputs["name"]
        elif args.typ == "aws:route53/zone:Zone":
            outputs["zoneId"] = "ZPRIVATE"
        elif args.typ == "aws:lb/targetGroup:TargetGroup":
            outputs["arn"] = f"arn:aws:elasticloadbalancing:{REGION}:123:targetgroup/{args.name}"
        elif args.typ == "aws:ssm/parameter:Parameter":
            outputs["arn"] = f"arn:aws:ssm:{REGION}:123:parameter{outputs['name']}"
        return f"vol-{self._count:017x}", outputs

    def call(self, args: mocks.MockCallArgs) -> Any:
        answers = {"region": REGION, "insecureValue": "ami-0123456789abcdef0", "ids": []}
        return {**answers, "zoneIds": ["euc1-az1", "euc1-az2", "euc1-az3"]}


def preview_seconds(brokers: int, *, names_known: bool, kind: str = "") -> float:
    """CPU seconds of the program's part of a preview of ``brokers`` over three zones.

    With ``names_known`` the stack exists: all names are known, and user data is rendered. Otherwise
    it is new. ``kind`` is that of `expose`, if the external listener is behind a balancer.
    """
    exposed = {"expose": EXPOSED[kind], **BALANCED} if kind else {}
    spec = read_spec(DOCUMENT | exposed | {"brokers": brokers}, "bench")
    assert isinstance(spec, AwsSpec)
    cloud = _Cloud(names_known=names_known)

    def register() -> pulumi.Output[str]:
        return AwsBrokers(ClusterContext("bench", pulumi.ResourceOptions(), Path()), spec).ready.urn

    seconds = _seconds(cloud, register)
    assert len(cloud.resources[INSTANCE]) == len(spec.node_ids)
    if names_known:
        texts = [
            instance_inputs["userData"]["value"] for instance_inputs in cloud.resources[INSTANCE]
        ]  # secrets
        assert all(text.startswith("#cloud-config") for text in texts)
    assert len(cloud.resources[FORWARDER]) == (brokers + 1 if kind else 0)
    return seconds


def docker_seconds(brokers: int) -> float:
    """CPU seconds for a new stack of ``brokers`` in containers on HOSTS new Docker hosts."""
    document = yaml.safe_load(TEMPLATE.read_text())["config"]["earshot:cluster"]
    document["hosts"]["aws"] |= {
        "host_zones": {f"h{number}": f"{REGION}{'abc'[number % 3]}" for number in range(HOSTS)},
        "deployers": {"here": "203.0.113.0/24"},
    }
    spec = read_spec(document | {"brokers": brokers}, "bench")
    assert isinstance(spec, DockerSpec) and spec.provisioned is not None
    hosts, cloud = spec.provisioned, _Cloud(names_known=False)
    # hooks are the engine's to call, and no engine is here
    with mock.patch.object(host_resources, "clearing", lambda *_: pulumi.ResourceHookBinding()):
        seconds = _seconds(cloud, lambda: on_new_hosts("bench", spec, hosts).contract)
    assert len(cloud.resources[INSTANCE]) == HOSTS and len(cloud.resources[CONTAINER]) == brokers
    return seconds


def _seconds(cloud: _Cloud, register: Callable[[], Any]) -> float:
    """CPU seconds of what ``register`` registers in a preview."""
    mocks.set_mocks(cloud, "earshot", "bench", True)
    preview = pulumi.runtime.test(register)  # type: ignore[no-untyped-call]
    gc.collect()  # no size pays for another's garbage
    begun = time.process_time()
    preview()
    return time.process_time() - begun


def measured(runs: int) -> None:
    """Previews of many brokers on AWS against fewer, as far as the program itself goes."""
    measures: dict[str, tuple[Sequence[int], Callable[[int], float]]] = {
        "new stack": (SIZES, partial(preview_seconds, names_known=False)),
        "stack made": (SIZES, partial(preview_seconds, names_known=True)),
        **{
            f"expose: {kind}": (
                BALANCED_SIZES,
                partial(preview_seconds, names_known=True, kind=kind),
            )
            for kind in EXPOSED
        },
        f"{HOSTS} Docker hosts": (SIZES, docker_seconds),
    }
    for sizes, measure in measures.values():
        measure(sizes[0])  # its modules are loaded when they are used first
    seconds_by_name = measure_in_turn(
        {
            f"{stack}, {brokers} brokers": partial(measure, brokers)
            for stack, (sizes, measure) in measures.items()
            for brokers in sizes
        },
        runs,
    )
    rows = []
    for stack, (sizes, _) in measures.items():
        share = {
            size: statistics.median(seconds_by_name[f"{stack}, {size} brokers"]) / size
            for size in sizes
        }
        rows += [(f"{stack}, each of {size}", f"{1000 * share[size]:.1f} ms", "") for size in sizes]
        smallest, largest = sizes[0], sizes[-1]
        growth = f"{share[largest] / share[smallest]:.2f}"
        rows.append((f"{stack}, each of {largest} / of {smallest}", growth, "at most 1.1"))
    show("Previews on AWS (CPU time)", seconds_by_name, rows)
