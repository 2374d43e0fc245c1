"""`make up` of a stack that extends the template `aws-docker`, in a box.

Three hosts with a broker each. They are instances that boot real user data, with a real engine. The
tests go on from each other; what goes wrong there is in `test_box_docker_failures.py`; two hosts,
what engines let in, and what a replaced host keeps, are in `test_box_docker_hosts.py`.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from earshot.validation.contract import Contract
from tests.doubles.aws.server import REGION
from tests.e2e.box.cloud_box import CloudBox
from tests.e2e.box.command_stack import HOSTS, CommandStack, command_stack
from tests.e2e.box.stack import passed_cells
from tests.e2e.distant_producer import DistantProducer
from tests.e2e.steady_producer import assert_all_read, longest_wait_of_a_partition
from tests.measured import MEASURED
from toolchain.paths import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.combination, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def stack(
    box: CloudBox, kafka_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CommandStack]:
    with command_stack(box, kafka_image, tmp_path_factory.mktemp("made")) as stack:
        yield stack


def test_one_command_makes_and_proves_all_of_it(stack: CommandStack, tmp_path: Path) -> None:
    output = stack.up()
    report = stack.report()
    cells = {(listener, broker) for _, listener, broker in passed_cells(report)}
    assert cells == {
        (description, id) for description in ("INTERNAL", "EXTERNAL") for id in (1, 2, 3)
    }, output
    (vpc,) = (
        description
        for description in stack.box.server.client("ec2").describe_vpcs()["Vpcs"]
        if description["CidrBlock"] == str(stack.box.ground.vpc.range)
    )
    assert not vpc["IsDefault"]
    contract = tmp_path / "contract.json"
    stack_contract = Contract.model_validate_json(
        stack.project.contract_file(stack.name).read_text()
    )
    contract.write_text(
        stack_contract.for_scope(stack_contract.listener("EXTERNAL").scopes[0]).to_json()
    )
    words = ["-m", "earshot", "doctor", "--contract", str(contract), "--format", "json"]
    with stack.box.place("inside") as apps:  # another machine of the VPC
        completed = subprocess.run(
            apps.command(sys.executable, *words), capture_output=True, text=True, timeout=180
        )
    assert completed.returncode == 0, completed.stdout + completed.stderr


def test_every_host_is_a_rack_and_has_no_partition_alone(
    stack: CommandStack, tmp_path: Path
) -> None:
    file = stack.client_file(tmp_path)
    with stack.box.place("inside") as apps:
        words = apps.command(sys.executable, "-m", "tests.e2e.racks", str(file), "spread")
        completed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert completed.returncode == 0, completed.stderr
    placement = json.loads(completed.stdout)
    assert placement["racks"] == {str(id): host for id, host in enumerate(HOSTS, 1)}
    assert len(placement["partitions"]) == 12
    assert all(len(set(partition)) == 2 for partition in placement["partitions"]), placement


def test_a_second_run_changes_nothing(stack: CommandStack) -> None:
    hosts = stack.ids()
    output = stack.up()
    assert "Nothing changed; validating what runs" in output
    assert " unchanged" in output and " updated" not in output and " replaced" not in output, output
    assert stack.ids() == hosts


def test_types_and_images_change_under_load_host_by_host_and_no_record_is_lost(
    stack: CommandStack, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """EC2 changes the type in place: it stops the instance. Another image replaces it."""
    old_ids, ec2 = stack.ids(), stack.box.server.client("ec2")
    (reservation,) = ec2.describe_instances(InstanceIds=[old_ids["a"]])["Reservations"]
    image = ec2.copy_image(
        Name="own", SourceImageId=reservation["Instances"][0]["ImageId"], SourceRegion=REGION
    )["ImageId"]
    with (
        stack.box.place("inside") as apps,
        DistantProducer(apps.command, stack.client_file(tmp_path), "kept") as producer,
    ):
        stack.roll({"type": "t4g.large", "root_gib": 16})
        assert stack.ids() == old_ids
        stack.roll({"type": "t4g.large", "root_gib": 16, "ami": image})
        assert not {*stack.ids().values()} & {*old_ids.values()}
    assert len(passed_cells(stack.report())) == 6
    assert producer.failed == [] and len(producer.acknowledged) == producer.sent > 0
    assert_all_read(producer.acknowledged, producer.records)
    assert len(producer.records) == producer.sent, "and none was written twice"
    worst = longest_wait_of_a_partition(producer.acknowledged)
    record_property(
        MEASURED,
        f"acks=all with two replicas in sync while three Docker hosts got another type and then "
        f"another image: {producer.sent} records acknowledged, none lost; longest time of a "
        f"partition without an acknowledgement {worst:.2f} s",
    )
