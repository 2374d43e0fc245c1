"""Names, addresses, instances and volumes: where the AWS double says what AWS says, and moto by
itself does not."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.doubles.aws.addresses import POOL_VARIABLE
from tests.doubles.aws_world import AwsResource, World
from tests.doubles.plugin.kind import ProviderError


def instances(world: World, id: str) -> dict[str, Any]:
    instance = world.ec2().describe_instances(InstanceIds=[id])["Reservations"][0]["Instances"][0]
    return dict(instance)


def test_private_names_come_and_go_with_the_vpcs_attributes(world: World) -> None:
    interface = world.interface()
    dashes = interface["privateIp"].replace(".", "-")
    assert interface["privateDnsName"] == f"ip-{dashes}.us-west-2.compute.internal"
    for attribute_off in ({"enableDnsHostnames": False}, {"enableDnsSupport": False}):
        world.vpc.update(**{"enableDnsHostnames": True, "enableDnsSupport": True} | attribute_off)
        assert interface.refresh() == []
        assert interface["privateDnsName"] == ""


def test_public_names_are_of_the_address_and_of_the_instance(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    interface = world.interface()
    broker = world.on(interface)
    assert (broker["publicIp"], broker["publicDns"]) == ("", "")
    monkeypatch.setenv(POOL_VARIABLE, "203.0.113.6/31")
    address = world.address()
    name = "ec2-203-0-113-6.us-west-2.compute.amazonaws.com"
    world.make("EipAssociation", allocationId=address.id, networkInterfaceId=interface.id)
    assert address.refresh() == []
    assert (address["publicDns"], address["privateIp"]) == (name, interface["privateIp"])
    assert broker.refresh() == []
    assert (broker["publicIp"], broker["publicDns"]) == ("203.0.113.6", name)

    world.vpc.update(enableDnsHostnames=False)
    assert broker.refresh() == [] and address.refresh() == []
    assert (broker["publicIp"], broker["publicDns"]) == ("203.0.113.6", "")
    assert address["publicDns"] == name, "the plugin makes it from the address alone"


def test_elastic_ips_come_from_a_range(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(POOL_VARIABLE, "198.51.100.248/30")
    first_address, second_address = world.address(), world.address()
    assert (first_address["publicIp"], second_address["publicIp"]) == (
        "198.51.100.249",
        "198.51.100.250",
    )
    with pytest.raises(ProviderError, match=r"every address of 198\.51\.100\.248/30 is taken"):
        world.address()
    first_address.delete()
    assert world.address()["publicIp"] == "198.51.100.249"


def test_public_addresses_need_a_way_out(world: World) -> None:
    interface, address = world.interface(), world.make("Eip", domain="vpc")
    message = f"Gateway.NotAttached: network {world.vpc.id} is not attached"
    binding = {"allocationId": address.id, "networkInterfaceId": interface.id}
    with pytest.raises(ProviderError, match=f"AssociateAddress: {message}"):
        world.make("EipAssociation", **binding)
    with pytest.raises(ProviderError, match=f"CreateNatGateway: {message}"):
        world.make("NatGateway", subnetId=world.subnet.id, allocationId=address.id)
    assert world.gateway.id
    assert world.make("EipAssociation", **binding)["publicIp"] == address["publicIp"]


def test_an_elastic_ip_moves(world: World) -> None:
    address, first_interface, second_interface = (
        world.address(),
        world.interface(),
        world.interface(),
    )
    association = world.make(
        "EipAssociation", allocationId=address.id, networkInterfaceId=first_interface.id
    )
    world.make("EipAssociation", allocationId=address.id, networkInterfaceId=second_interface.id)
    assert association.read() is None
    address.refresh()
    assert address["privateIp"] == second_interface["privateIp"]


def test_an_interface_has_one_instance_and_outlives_it(world: World) -> None:
    interface = world.interface()
    first_instance = world.on(interface)
    in_use = rf"InvalidNetworkInterface\.InUse: .*{first_instance.id}"
    with pytest.raises(ProviderError, match=f"RunInstances: {in_use}"):
        world.on(interface)
    with pytest.raises(ProviderError, match=f"DeleteNetworkInterface: {in_use}"):
        interface.delete()
    first_instance.delete()
    assert world.on(interface)["privateIp"] == interface["privateIp"]


def test_an_interface_made_with_an_instance_goes_with_it(world: World) -> None:
    broker = world.instance(privateIp="10.0.0.40", vpcSecurityGroupIds=[world.group.id])
    address = world.address()
    world.make("EipAssociation", allocationId=address.id, instanceId=broker.id)
    assert (broker["privateIp"], broker["vpcSecurityGroupIds"]) == ("10.0.0.40", [world.group.id])
    with pytest.raises(ProviderError, match=r"DependencyViolation: .* is used by eni-"):
        world.group.delete()
    broker.delete()
    assert address.refresh() == [] and address["privateIp"] is None, "bound to nothing"
    for resource in (address, world.group, world.gateway, world.subnet, world.vpc):
        resource.delete()


@pytest.mark.parametrize(
    ("inputs", "error"),
    [
        ({"ami": "ami-00000000000000000"}, r"InvalidAMIID\.NotFound"),
        ({"instanceType": "m5.large"}, r"the architecture of m5\.large \(x86_64\) .* \(arm64\)"),
        ({"userData": "x" * 16385}, "limited to 16384 bytes, these are 16385"),
    ],
)
def test_instances_that_ec2_would_not_run(world: World, inputs: dict[str, str], error: str) -> None:
    with pytest.raises(ProviderError, match=f"RunInstances: .*{error}"):
        world.instance(**inputs)


def test_user_data_of_the_greatest_length_are_taken(world: World) -> None:
    assert len(world.instance(userData="x" * 16384)["userData"]) == 16384


def test_an_instance_changes_in_place(world: World) -> None:
    broker = world.instance(userData="a", rootBlockDevice={"volumeSize": 10, "volumeType": "gp3"})
    other_group = world.make("SecurityGroup", name="other", vpcId=world.vpc.id)
    profile = world.make("InstanceProfile", name=f"p-{world.mark}", role=world.role.id)
    changes = {
        "userData": "b",
        "instanceType": "t4g.medium",
        "vpcSecurityGroupIds": [other_group.id],
        "iamInstanceProfile": profile.id,
        "metadataOptions": {"httpTokens": "required"},
        "disableApiTermination": True,
        "rootBlockDevice": {"volumeSize": 12, "volumeType": "gp3", "deleteOnTermination": False},
    }
    broker.update(**changes)
    assert broker.refresh() == []
    for name in changes.keys() - {"metadataOptions", "rootBlockDevice"}:
        assert broker[name] == changes[name]
    assert broker["metadataOptions"]["httpTokens"] == "required"
    assert broker["rootBlockDevice"]["volumeSize"] == 12
    assert broker["instanceState"] == "running", "started again"

    broker.update(iamInstanceProfile=None)
    assert "IamInstanceProfile" not in instances(world, broker.id)
    assert broker.refresh() == []


def test_a_protected_instance_stays_unless_it_is_forced(world: World) -> None:
    broker = world.instance(disableApiTermination=True)
    with pytest.raises(ClientError, match="OperationNotPermitted"):
        broker.delete()
    broker.update(forceDestroy=True)
    broker.delete()
    assert broker.read() is None


def attach_volume(
    world: World, volume: AwsResource, instance: AwsResource, **inputs: Any
) -> AwsResource:
    attachment_inputs = {"deviceName": "/dev/sdf"} | inputs
    return world.make(
        "VolumeAttachment", volumeId=volume.id, instanceId=instance.id, **attachment_inputs
    )


def test_a_volume_has_one_instance_in_its_own_zone(world: World) -> None:
    volume = world.make("Volume", availabilityZone=world.zone, size=8)
    volume_in_other_zone = world.make("Volume", availabilityZone="us-west-2b", size=8)
    spare_volume = world.make("Volume", availabilityZone=world.zone, size=8)
    first_instance, second_instance = world.instance(), world.instance()
    attach_volume(world, volume, first_instance)
    with pytest.raises(ProviderError, match=f"VolumeInUse: attached to {first_instance.id}"):
        attach_volume(world, volume, second_instance)
    with pytest.raises(ProviderError, match=r"InvalidVolume\.ZoneMismatch: it is in us-west-2b"):
        attach_volume(world, volume_in_other_zone, first_instance)
    with pytest.raises(ProviderError, match="/dev/sdf is already in use"):
        attach_volume(world, spare_volume, first_instance)
    first_instance.delete()
    with pytest.raises(ProviderError, match=f"IncorrectState: {first_instance.id} is terminated"):
        attach_volume(world, spare_volume, first_instance)
    assert attach_volume(world, volume, second_instance).read() is not None


def test_a_volume_outlives_its_instance_and_does_not_shrink(world: World) -> None:
    volume = world.make("Volume", availabilityZone=world.zone, size=8, type="gp3")
    broker = world.instance()
    binding = attach_volume(world, volume, broker)
    volume.update(size=16, throughput=500)
    assert (volume["size"], volume["throughput"], volume.refresh()) == (16, 500, [])
    with pytest.raises(ProviderError, match="has 16 GiB and cannot shrink to 8"):
        volume.update(size=8)
    broker.delete()
    assert binding.read() is None
    assert volume.read() is not None
    binding.delete()


@pytest.mark.parametrize(
    ("inputs", "state"),
    [
        ({}, "running"),
        ({"stopInstanceBeforeDetaching": True}, "stopped"),
    ],
)
def test_how_a_volume_is_taken_off(world: World, inputs: dict[str, bool], state: str) -> None:
    volume = world.make("Volume", availabilityZone=world.zone, size=8)
    broker = world.instance()
    attach_volume(world, volume, broker, **inputs).delete()
    instance = instances(world, broker.id)
    assert (instance["State"]["Name"], len(instance["BlockDeviceMappings"])) == (state, 1)
