"""A broker on EC2 that is left at its default, as many begin: what its clients see, and the fix.

A plain program of pulumi-aws and a plain script, without anything of this project but the box.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.doubles.aws.addresses import POOL_VARIABLE
from tests.e2e.aws_project import Project, aws_project
from tests.e2e.box.cloud_box import CloudBox
from tests.e2e.box.place import Place
from tests.e2e.clients import kcat_listing
from toolchain.paths import POLICIES

pytestmark = [pytest.mark.e2e, pytest.mark.combination, pytest.mark.timeout(900)]

READY_SECONDS = 150
KAFKA = "/opt/kafka/bin"
PROGRAM = """
vpc = aws.ec2.Vpc("vpc", cidr_block="{vpc}", enable_dns_hostnames=True)
gateway = aws.ec2.InternetGateway("gateway", vpc_id=vpc.id)
subnet = aws.ec2.Subnet(
    "subnet", vpc_id=vpc.id, cidr_block="{subnet}", availability_zone="us-west-2a"
)
group = aws.ec2.SecurityGroup(
    "kafka", vpc_id=vpc.id, description="a broker and its clients",
    ingress=[
        dict(protocol="tcp", from_port=9092, to_port=9092, cidr_blocks=["{office}", "{vpc}"]),
        dict(protocol="tcp", from_port=19092, to_port=19092, cidr_blocks=["{vpc}"]),
    ],
    egress=[dict(protocol="-1", from_port=0, to_port=0, cidr_blocks=["0.0.0.0/0"])],
)
address = aws.ec2.Eip("address", domain="vpc", opts=pulumi.ResourceOptions(depends_on=[gateway]))
image = aws.ssm.get_parameter(
    name="/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-arm64"
)
broker = aws.ec2.Instance(
    "broker",
    ami=image.value,
    instance_type="t4g.small",
    subnet_id=subnet.id,
    vpc_security_group_ids=[group.id],
    user_data=address.public_dns.apply(lambda external: '''{script}'''),
    user_data_replace_on_change=True,
    tags=dict(Name="broker"),
    opts=pulumi.ResourceOptions(delete_before_replace=True),
)
aws.ec2.EipAssociation(
    "binding", allocation_id=address.id, instance_id=broker.id,
    opts=pulumi.ResourceOptions(delete_before_replace=True),
)
pulumi.export("external", address.public_dns)
"""
SCRIPT = """#!/bin/bash
set -eux
mkdir /opt/kafka
curl --silent --fail --retry 10 {url} | tar -xz -C /opt/kafka --strip-components 1
cat > /opt/kafka/server.properties <<END
node.id=1
process.roles=broker,controller
controller.quorum.voters=1@localhost:9093
controller.listener.names=CONTROLLER
{listeners}
log.dirs=/var/lib/kafka
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
END
/opt/kafka/bin/kafka-storage.sh format -t ZWFyc2hvdC10ZXN0cy1ydQ -c /opt/kafka/server.properties
systemd-run --unit=kafka --setenv=KAFKA_HEAP_OPTS=-Xmx256m \\
    /opt/kafka/bin/kafka-server-start.sh /opt/kafka/server.properties
"""
LEFT_AT_ITS_DEFAULT = "listeners=PLAINTEXT://:9092,CONTROLLER://localhost:9093"
OPTION_1 = f"""{LEFT_AT_ITS_DEFAULT}
advertised.listeners=PLAINTEXT://' + external + ':9092"""
OPTION_2 = """listeners=INTERNAL://0.0.0.0:19092,EXTERNAL://0.0.0.0:9092,CONTROLLER://localhost:9093
listener.security.protocol.map=INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT
advertised.listeners=INTERNAL://$(hostname):19092,EXTERNAL://' + external + ':9092
inter.broker.listener.name=INTERNAL"""


class Story:
    """The program, at different times, and who looks at its broker."""

    def __init__(self, box: CloudBox, folder: Path) -> None:
        self.box = box
        subnet = next(box.ground.vpc.range.subnets(new_prefix=24))
        self._facts = {"vpc": box.ground.vpc.range, "subnet": subnet, "office": box.ground.office}
        self.project: Project = aws_project(
            folder, box.server, {POOL_VARIABLE: str(box.ground.elastic)}
        )

    def write(self, listeners: str, *, needs_address: bool = True) -> None:
        """With ``needs_address`` the user data is known only after the address."""
        script = SCRIPT.format(url=f"{self.box.depot.url}/kafka.tgz", listeners=listeners)
        text = PROGRAM.format(**self._facts, script=script.replace("\\\n", "\\\\\n"))
        if not needs_address:
            text = text.replace("address.public_dns.apply(lambda external: ", "(")
        self.project.write(text.replace("' + external + '", "''' + external + '''"))

    def up(self, listeners: str) -> str:
        """Deploys the broker. Returns its external name."""
        self.write(listeners)
        self.project.up()
        self.box.settle()  # or the instance before may still answer
        return str(self.project.outputs()["external"])

    @property
    def internal(self) -> str:
        """The name that EC2 gave the instance."""
        (machine,) = self.box.moto_state().machines.values()
        return f"ip-{machine.private.replace('.', '-')}.us-west-2.compute.internal"

    def await_broker(self, place: Place, bootstrap: str) -> list[str]:
        """Waits for the broker. Returns the listing of `kcat -L`."""
        end = time.monotonic() + READY_SECONDS
        while True:
            try:
                return place.client.listing(bootstrap)
            except AssertionError:
                assert time.monotonic() < end, self.box.instance("broker").journal()[-4000:]
                time.sleep(1)


def listing(bootstrap: str, advertised: str, source: str = "1") -> list[str]:
    """The lines that `kcat -L` prints for broker 1 at ``bootstrap``."""
    source_text = f"1: {bootstrap}/1" if source == "1" else f"-1: {bootstrap}/bootstrap"
    return kcat_listing(source_text, advertised, broker=1)


def test_a_broker_left_at_its_default_and_what_helps(box: CloudBox, tmp_path: Path) -> None:
    story = Story(box, tmp_path / "project")
    with box.place("inside") as inside, box.place("outside") as laptop:
        external = story.up(LEFT_AT_ITS_DEFAULT)
        bootstrap, internal = f"{external}:9092", f"{story.internal}:9092"
        story.await_broker(inside, bootstrap)

        assert laptop.opens(external, 9092), "things are looking good"
        assert laptop.client.listing(bootstrap) == listing(bootstrap, internal, "-1")
        failure = laptop.client.failure(bootstrap, "test")
        assert f"Failed to resolve '{internal}'" in failure and "timed out" in failure

        # the same on the broker itself
        broker = box.instance("broker")
        tool = f"{KAFKA}/kafka-console-producer.sh --bootstrap-server {bootstrap} --topic test"
        assert "ERROR" not in broker.run("sh", "-c", f"echo foo | {tool} 2>&1")
        tool = f"{KAFKA}/kafka-console-consumer.sh --bootstrap-server {bootstrap} --topic test"
        read_records = broker.run(
            "sh", "-c", f"{tool} --from-beginning --max-messages 1 2>/dev/null"
        )
        assert read_records == "foo\n"
        inside.client.produce(bootstrap, "test", "bar")

        assert story.up(OPTION_1) == external
        assert story.await_broker(laptop, bootstrap) == listing(bootstrap, bootstrap)
        assert inside.client.listing(bootstrap) == listing(bootstrap, bootstrap)
        check_serves(laptop, bootstrap)
        check_serves(inside, bootstrap)

        story.up(OPTION_2)
        assert story.await_broker(laptop, bootstrap) == listing(bootstrap, bootstrap)
        internal_bootstrap = f"{story.internal}:19092"
        assert inside.client.listing(internal_bootstrap) == listing(
            internal_bootstrap, internal_bootstrap
        )
        check_serves(laptop, bootstrap)
        check_serves(inside, internal_bootstrap)
        assert not laptop.opens(external, 19092)
    story.project.destroy()


def check_serves(place: Place, bootstrap: str) -> None:
    topic = f"from-{place.container}"
    place.client.produce(bootstrap, topic, "test")
    assert place.client.consume(bootstrap, topic, 1) == ["test"]


def test_the_pack_stops_that_broker_before_it_exists(box: CloudBox, tmp_path: Path) -> None:
    story = Story(box, tmp_path / "project")
    story.project.environment["PULUMI_OPTION_POLICY_PACK"] = str(POLICIES)
    story.write(LEFT_AT_ITS_DEFAULT, needs_address=False)
    output = story.project.failed_output(command="preview")
    name = "(the private name of instance broker: not known yet)"
    finding = f"9092 from {box.ground.office}; clients from there are sent to {name} [KL007]"
    assert finding in output
    assert not box.moto_state().machines
