"""The pack on programs of plain pulumi-aws: what is stopped in preview, what before an instance
exists, and what only fails the update."""

import base64
from typing import Any

import pytest
from earshot_pulumi.gate import GATE_TYPE

from earshot.placement.aws import node_user_data, plan_aws
from earshot.sources import stack_resources as aws
from tests.config.aws_documents import TWO_LISTENERS, read_aws
from tests.placement.test_aws import given
from tests.policies.calls import UNKNOWN, Pack, headline
from tests.policies.programs import Declared, Program, Ref, Text

OWN_ID = "5L6g3nShT-eMCtK-X86swQ"
SILENT_RESOLVERS = {"resolvers": {"external": ["127.0.0.1:1"]}, "timeout": 0.05}
"""No resolver answers: the network of the tests has no part in what they find."""
REGION = "eu-central-1"
OFFICE = "203.0.113.0/24"
PROPERTIES = """\
node.id={id}
process.roles=broker,controller
controller.quorum.voters=1@ip-10-0-0-11.eu-central-1.compute.internal:9093,2@ip-10-0-0-12.eu-central-1.compute.internal:9093
listeners=INTERNAL://0.0.0.0:19092,EXTERNAL://0.0.0.0:9092,CONTROLLER://0.0.0.0:9093
advertised.listeners=INTERNAL://{internal}:19092,EXTERNAL://{external}:9092,CONTROLLER://{own}:9093
listener.security.protocol.map=INTERNAL:PLAINTEXT,EXTERNAL:SSL,CONTROLLER:PLAINTEXT
inter.broker.listener.name=INTERNAL
controller.listener.names=CONTROLLER
"""


def private(id: int) -> str:
    return f"ip-10-0-0-1{id}.{REGION}.compute.internal"


def public(id: int) -> str:
    return f"ec2-198-51-100-1{id}.{REGION}.compute.amazonaws.com"


def script(properties: str) -> str:
    return f"#!/bin/bash\ncat > /opt/kafka/server.properties <<'EOF'\n{properties}EOF\n"


class Plain(Program):
    """A VPC with one group; brokers are added to it."""

    def __init__(self, hostnames: bool = True, ingress: list[dict[str, Any]] | None = None) -> None:
        super().__init__()
        self.vpc = self.add(
            aws.VPCS[0],
            "vpc",
            {"cidrBlock": "10.0.0.0/16", "enableDnsHostnames": hostnames},
            id="vpc-1",
        )
        self.subnet = self.add(aws.SUBNETS[0], "subnet", {"vpcId": self.vpc["id"]}, id="subnet-1")
        block = {} if ingress is None else {"ingress": ingress}
        self.group = self.add(aws.GROUPS[0], "kafka", {"vpcId": self.vpc["id"], **block}, id="sg-1")

    def broker(
        self,
        id: int = 1,
        internal: Any = None,
        external: Any = None,
        elastic: bool = True,
        properties: str = PROPERTIES,
        **more: Any,
    ) -> Declared:
        """``external`` is a name or an output; default: that of an Elastic IP of its own."""
        eip = None
        if elastic:
            eip = self.add(
                aws.EIP,
                f"eip-{id}",
                {"domain": "vpc"},
                id=f"eipalloc-{id}",
                publicIp=f"198.51.100.1{id}",
                publicDns=public(id),
            )
            external = external or eip["publicDns"]
        refs = tuple(item for item in (internal, external) if isinstance(item, Ref))
        hosts = ["%s" if isinstance(item, Ref) else item for item in (internal, external)]
        inside = hosts[0] or private(id)
        text = script(properties.format(id=id, internal=inside, external=hosts[1], own=private(id)))
        instance = self.add(
            aws.INSTANCE,
            f"broker-{id}",
            {
                "subnetId": self.subnet["id"],
                "privateIp": f"10.0.0.1{id}",
                "vpcSecurityGroupIds": [self.group["id"]],
                "userData": Text(text, refs),
                **more,
            },
            id=f"i-{id}",
            availabilityZone=f"{REGION}a",
            privateDns=private(id),
            publicIp=f"198.51.100.9{id}",
        )
        if eip is not None:
            self.add(
                aws.EIP_ASSOCIATION,
                f"eip-{id}",
                {"allocationId": eip["id"], "instanceId": instance["id"]},
            )
        return instance

    def zone(self, name: str, vpc: Any = None) -> Declared:
        inputs = {"name": name} if vpc is None else {"name": name, "vpcs": [{"vpcId": vpc}]}
        id = f"Z{len(self.resources)}"
        return self.add(aws.ZONE, id, inputs, id=id, zoneId=id)

    def record(self, zone: Declared, name: str, address: str) -> Declared:
        inputs = {"zoneId": zone["zoneId"], "name": name, "type": "A", "records": [address]}
        return self.add(aws.RECORD, f"record-{len(self.resources)}", inputs, fqdn=name)


def tcp(port: int, source: str) -> dict[str, Any]:
    return {"protocol": "tcp", "fromPort": port, "toPort": port, "cidrBlocks": [source]}


GOOD = [tcp(19092, "10.0.0.0/16"), tcp(9093, "10.0.0.0/16"), tcp(9092, OFFICE)]


def run(program: Program, preview: bool = False, **config: Any) -> tuple[dict[str, Any], Any]:
    return program.run(Pack({**SILENT_RESOLVERS, **config}), preview)


def stops(findings: dict[str, Any]) -> set[str]:
    return {name for name in findings if name.startswith("kl")}


def test_a_program_that_is_well_passes() -> None:
    program = Plain(ingress=GOOD)
    program.broker()
    by_resource, at_the_end = run(program)
    assert by_resource == {}
    assert set(at_the_end) == {"advice-stack"}
    assert any(
        f"{public(1)} is taken on its declaration" in text for _, text in at_the_end["advice-stack"]
    )


def test_its_preview_says_what_is_not_known_and_stops_nothing() -> None:
    program = Plain(ingress=GOOD)
    program.broker()
    by_resource, at_the_end = run(program, preview=True)
    assert set(by_resource) == {"broker-1"}
    (text,) = by_resource["broker-1"]["not-known-yet"]
    assert text == (
        "cluster: user data: not known yet, so it is not clear whether a broker runs here [KL011]\n"
        "  expected: the instance's user data, checked again with their value\n"
        "  fix: nothing yet: the update checks it before the instance exists\n"
        "  source: https://kafka.apache.org/documentation/#brokerconfigs_advertised.listeners"
    )
    assert at_the_end == {}


@pytest.mark.parametrize("preview", [True, False])
def test_a_private_name_for_external_clients_is_stopped_before_the_instance(preview: bool) -> None:
    program = Plain(ingress=GOOD)
    program.broker(external=private(1))
    by_resource, at_the_end = run(program, preview)
    (text,) = by_resource["broker-1"]["kl011"]
    assert text.startswith(f"broker 1, listener EXTERNAL (scope external): {private(1)} does not")
    assert "only the resolver of its VPC knows it" in text
    assert not any(
        "EXTERNAL (scope external)" in text for _, text in at_the_end.get("kl011-stack", ())
    )


@pytest.mark.parametrize("preview", [True, False])
def test_a_name_of_ec2s_without_the_vpcs_attribute_fails(preview: bool) -> None:
    program = Plain(hostnames=False, ingress=GOOD)
    program.broker(external=public(1))
    by_resource, at_the_end = run(program, preview)
    assert by_resource == {}
    texts = [text for _, text in at_the_end["kl011-stack"]]
    assert any(
        "EXTERNAL" in text and "enableDnsHostnames of the VPC: off" in text for text in texts
    )
    assert all(text.startswith("instance broker-1, broker 1, ") for text in texts)


def test_a_name_of_ec2s_without_an_elastic_ip_fails_the_update() -> None:
    program = Plain(ingress=GOOD)
    instance = program.broker(external=public(1).replace("-11.", "-91."), elastic=False)
    by_resource, at_the_end = run(program)
    assert by_resource == {}
    assert stops(at_the_end) == {"kl009-stack"}
    ((urn, text),) = at_the_end["kl009-stack"]
    assert urn == instance.urn
    assert headline(text) == (
        "instance broker-1, broker 1, listener EXTERNAL (scope external): advertises "
        "ec2-198-51-100-91.eu-central-1.compute.amazonaws.com, which is 198.51.100.91, and "
        "broker 1 has no Elastic IP [KL009]"
    )


@pytest.mark.parametrize("preview", [True, False])
def test_a_name_of_a_private_zone_for_external_clients_fails(preview: bool) -> None:
    program, host = Plain(ingress=GOOD), "b1.kafka.example.com"
    program.broker(external=host)
    zone = program.zone("kafka.example.com", program.vpc["id"])
    program.record(zone, host, "10.0.0.11")
    _, at_the_end = run(program, preview)
    assert stops(at_the_end) == {"kl011-stack"}
    assert headline(at_the_end["kl011-stack"][0][1]) == (
        "instance broker-1, broker 1, listener EXTERNAL (scope external): nothing shows that "
        "b1.kafka.example.com resolves: 127.0.0.1:1 did not answer for any name, and nothing "
        "declares the name; its one record is in zone kafka.example.com, which is private [KL011]"
    )
    program.record(program.zone("kafka.example.com"), host, "198.51.100.11")
    _, at_the_end = run(program, preview)
    assert stops(at_the_end) == set()


@pytest.mark.parametrize("preview", [True, False])
def test_a_private_zone_that_the_vpc_does_not_see_fails(preview: bool) -> None:
    host = "b1.kafka.example.com"
    for vpc, association in ((None, False), ("vpc-other", True), ("vpc-other", False)):
        program = Plain(ingress=GOOD)
        program.broker(internal=host, external=public(1))
        zone = program.zone("kafka.example.com", vpc or program.vpc["id"])
        program.record(zone, host, "10.0.0.11")
        if association:
            inputs = {"zoneId": zone["zoneId"], "vpcId": program.vpc["id"]}
            program.add(aws.ZONE_ASSOCIATION, "second", inputs, id="x")
        _, at_the_end = run(program, preview)
        assert stops(at_the_end) == (set() if association or vpc is None else {"kl011-stack"})
    assert headline(at_the_end["kl011-stack"][0][1]) == (
        "instance broker-1, broker 1, listener INTERNAL (scope internal): nothing shows that "
        "b1.kafka.example.com resolves: no resolver of scope internal can be asked from here, and "
        "nothing declares the name; zone kafka.example.com is private, and not associated with "
        "VPC vpc [KL011]"
    )


def inline(program: Plain, port: int, source: str) -> None:
    program.group.inputs["ingress"].append(tcp(port, source))


def older(program: Plain, port: int, source: str) -> None:
    block = {**tcp(port, source), "type": "ingress", "securityGroupId": program.group["id"]}
    program.add(aws.RULES[0], f"{port}", block, id=f"sgrule-{port}")


def advised(program: Plain, port: int, source: str) -> None:
    rule = {"ipProtocol": "tcp", "fromPort": port, "toPort": port, "cidrIpv4": source}
    inputs = {**rule, "securityGroupId": program.group["id"]}
    program.add(aws.RULES[1], f"{port}", inputs, id=f"sgr-{port}")


@pytest.mark.parametrize("preview", [True, False])
@pytest.mark.parametrize("shape", [inline, older, advised])
def test_ports_are_checked_whatever_opens_them(shape: Any, preview: bool) -> None:
    def findings(*rules: tuple[int, str]) -> list[str]:
        program = Plain(ingress=[] if shape is inline else None)
        program.broker(external=public(1))
        for port, source in rules:
            shape(program, port, source)
        _, at_the_end = run(program, preview)
        return [text for _, text in at_the_end.get("kl007-stack", ())]

    inside, office = (19092, "10.0.0.0/16"), (9092, OFFICE)
    assert findings(inside, office) == []
    (text,) = findings(inside)
    assert headline(text) == (
        "instance broker-1, broker 1, listener EXTERNAL: no security group opens port 9092 to "
        "anybody, and clients of scope external need it [KL007]"
    )
    (text,) = findings(inside, (9092, "0.0.0.0/0"))
    assert headline(text) == (
        "instance broker-1, broker 1, listener EXTERNAL: port 9092 is open to more than its "
        "clients: 9092 from 0.0.0.0/0 [KL007]"
    )


def test_members_of_a_group_may_come_in() -> None:
    program = Plain(ingress=[tcp(9092, OFFICE), {**tcp(19092, ""), "cidrBlocks": [], "self": True}])
    program.broker()
    assert stops(run(program)[1]) == set()


def test_a_group_that_is_not_of_the_stack_is_not_checked() -> None:
    program = Plain()
    program.broker(vpcSecurityGroupIds=["sg-elsewhere"])
    _, at_the_end = run(program)
    assert stops(at_the_end) == set()
    assert (
        "instance broker-1, broker 1, listener EXTERNAL: port 9092 is not known to be open to "
        "anybody, and clients of scope external need it: 0-65535 from group sg-elsewhere, which is "
        "not of this stack cannot be read [KL007]"
    ) in [headline(text) for _, text in at_the_end["not-known-yet-stack"]]


@pytest.mark.parametrize("preview", [True, False])
def test_two_brokers_on_one_name_are_stopped_before_the_second_exists(preview: bool) -> None:
    program = Plain(ingress=GOOD)
    program.broker(1, external=public(1))
    program.broker(2, external=public(1))
    by_resource, _ = run(program, preview)
    assert list(by_resource) == ["broker-2"]
    (text,) = by_resource["broker-2"]["kl004"]
    assert headline(text) == (
        "broker 2, listener EXTERNAL: advertises "
        "ec2-198-51-100-11.eu-central-1.compute.amazonaws.com:9092, which instance broker-1 "
        "has taken [KL004]"
    )


def test_two_names_of_one_address_fail_the_update() -> None:
    program = Plain(ingress=GOOD)
    zone = program.zone("example.com")
    for id in (1, 2):
        program.broker(id, external=f"b{id}.example.com")
        program.record(zone, f"b{id}.example.com", "198.51.100.11")
    by_resource, at_the_end = run(program)
    assert by_resource == {}
    assert stops(at_the_end) == {"kl004-stack", "kl012-stack"}


@pytest.mark.parametrize(("address", "policy"), [(11, "kl012-stack"), (200, "advice-stack")])
def test_a_name_that_leads_elsewhere(address: int, policy: str) -> None:
    """To another broker: wrong. To nobody known: perhaps a load balancer, and advice."""
    program, host = Plain(ingress=GOOD), "b2.example.com"
    program.broker(1)
    instance = program.broker(2, external=host)
    program.record(program.zone("example.com"), host, f"198.51.100.{address}")
    _, at_the_end = run(program)
    assert ("kl012-stack" in at_the_end) is (policy == "kl012-stack")
    reported = f"{host}, which resolves to 198.51.100.{address}"
    assert {urn for urn, text in at_the_end[policy] if reported in text} == {instance.urn}


def test_an_interface_of_its_own_carries_groups_and_address() -> None:
    program = Plain(ingress=GOOD)
    interface = program.add(
        aws.INTERFACE,
        "eni",
        {"subnetId": program.subnet["id"], "securityGroups": [program.group["id"]]},
        id="eni-1",
        privateIp="10.0.0.11",
    )
    eip = program.add(
        aws.EIP,
        "eip",
        {"networkInterface": interface["id"]},
        id="eipalloc-1",
        publicIp="198.51.100.11",
        publicDns=public(1),
    )
    text = script(PROPERTIES.format(id=1, internal=private(1), own=private(1), external="%s"))
    program.add(
        aws.INSTANCE,
        "broker-1",
        {
            "primaryNetworkInterface": {"networkInterfaceId": interface["id"]},
            "userData": Text(text, (eip["publicDns"],)),
        },
        id="i-1",
        privateIp="10.0.0.11",
        privateDns=private(1),
        availabilityZone=f"{REGION}a",
    )
    by_resource, at_the_end = run(program)
    assert by_resource == {}
    assert set(at_the_end) == {"advice-stack"}


def test_a_broker_left_at_its_default_advertises_its_own_name() -> None:
    program = Plain(ingress=GOOD)
    left = PROPERTIES.replace("advertised.listeners", "#").replace("0.0.0.0", "")
    program.broker(properties=left)
    by_resource, at_the_end = run(program)
    assert by_resource == {}
    assert any(private(1) in text for _, text in at_the_end["kl011-stack"])


def test_what_the_instance_computes_is_said_and_not_checked() -> None:
    text = (
        script(PROPERTIES)
        .replace("'EOF'", "EOF")
        .format(
            id=1,
            internal=private(1),
            own=private(1),
            external="$(curl -s http://169.254.169.254/public-hostname)",
        )
    )
    program = Plain(ingress=GOOD)
    program.broker(userData=text)
    by_resource, at_the_end = run(program)
    reported = (
        "cluster: a listener's host is computed on the instance: $(curl -s "
        "http://169.254.169.254/public-hostname) [KL011]\n"
        "  expected: a name that the program gives it\n"
        "  fix: advertise the name of a resource (an Elastic IP, a record), or prove "
        "the listeners where their clients are with `earshot doctor`\n"
        "  source: https://kafka.apache.org/documentation/#brokerconfigs_advertised.listeners"
    )
    assert by_resource == {"broker-1": {"not-known-yet": [reported]}}
    assert behind_gate(text) == set()
    assert stops(at_the_end) == set()
    assert "not-known-yet-stack" not in at_the_end


@pytest.mark.parametrize(("props", "advice"), [
    ({"userData": "#!/bin/sh\nawk -f a advertised.listeners=A://b:1 c.properties\n"},
     ("user data: advertised.listeners is set in a way that is not read here (read are files in "
      "a cloud-config, and here-documents, `echo` and `sed -i` in a script); not checked")),
    ({"userDataBase64": "H4sIAAAA"},
     ("user data in base64: cannot be read: Compressed file ended before the "
      "end-of-stream marker was reached; not checked")),
    (
        {
            "userData": script(
                "zookeeper.connect=z:1\nbroker.id=1\nadvertised.listeners=PLAINTEXT://b_1:1\n"
            )
        },
        (
            "/opt/kafka/server.properties: KL011 is not checked: advertised.listeners: host "
            "'b_1' has the label 'b_1'; it may be right, and is not looked up"
        ),
    ),
    ({"userData": script(PROPERTIES.format(id=1, internal=private(1), external=public(1),
                                           own=private(1))).replace("cat >", "cat >>")},
     ("/opt/kafka/server.properties: KL008 is not checked: the earlier content of "
      "/opt/kafka/server.properties is not known")),
], ids=["another way", "base64", "a host", "an earlier content"])  # fmt: skip
def test_unchecked_parts_of_user_data_are_named(props: dict[str, str], advice: str) -> None:
    findings = Pack(SILENT_RESOLVERS).analyze(aws.INSTANCE, props)
    assert list(findings) == ["advice"] and advice in findings["advice"]


@pytest.mark.parametrize(
    "props", [{}, {"userData": "#!/bin/sh\ntrue\n"}, {"userData": "#cloud-config\npackages: [x]\n"}]
)
def test_other_instances_are_not_checked(props: dict[str, Any]) -> None:
    program = Program()
    program.add(aws.INSTANCE, "web", props, id="i-1")
    assert run(program) == ({}, {})


def test_a_waived_name_passes_and_is_remembered() -> None:
    program = Plain(ingress=GOOD)
    program.broker(external=private(1))
    by_resource, _ = run(program, waived={private(1): "all clients come through the VPN"})
    assert by_resource == {}


def test_instances_behind_our_gate_pass_without_a_word() -> None:
    spec = read_aws(**TWO_LISTENERS)
    made, pack = plan_aws(spec, given(spec)), Pack(SILENT_RESOLVERS)
    for id in spec.node_ids:
        text = node_user_data(
            made, spec, "mine", id, OWN_ID, f"vol-0123456789abcde{id}", f"/p/{id}"
        )
        for value in (text, UNKNOWN):
            props, name = {"userData": value}, f"{id}{value is text}"
            parents = f"x:y:Aws${GATE_TYPE}$"
            assert pack.analyze(aws.INSTANCE, props, name=name, parents=parents) == {}
    assert pack.analyze_stack([]) == {}


BEHIND = f"x:y:Aws${GATE_TYPE}$"


def behind_gate(user_data: str) -> set[str]:
    pack = Pack(SILENT_RESOLVERS)
    return set(pack.analyze(aws.INSTANCE, {"userData": user_data}, parents=BEHIND))


@pytest.mark.parametrize(("internal", "external", "alone", "behind"), [
    (private(1), private(1), {"kl011"}, {"kl011"}),
    ("198.51.100.7", public(1), {"advice"}, set()),
], ids=["an error", "advice"])  # fmt: skip
def test_only_errors_are_reported_again_behind_a_gate(
    internal: str, external: str, alone: set[str], behind: set[str]
) -> None:
    text = script(PROPERTIES.format(id=1, internal=internal, external=external, own=private(1)))
    assert set(Pack(SILENT_RESOLVERS).analyze(aws.INSTANCE, {"userData": text})) == alone
    assert behind_gate(text) == behind


def test_what_surrounds_an_instance_is_checked_where_no_gate_has_seen_it() -> None:
    for parents, stopped in (("", {"kl007-stack"}), (BEHIND, set())):
        program = Plain(ingress=GOOD[:2])
        program.parents = {aws.INSTANCE: parents}
        program.broker()
        _, at_the_end = run(program)
        assert stops(at_the_end) == stopped


def test_instances_that_are_gone_at_the_end_are_passed_over() -> None:
    program, pack = Plain(ingress=[]), Pack(SILENT_RESOLVERS)
    gone = script(PROPERTIES.format(id=2, internal=private(2), external=public(2), own=private(2)))
    assert pack.analyze(aws.INSTANCE, {"userData": gone}, name="gone") == {}
    instance = program.broker()
    _, at_the_end = program.run(pack, preview=False)
    assert {urn for urn, _ in at_the_end["kl007-stack"]} == {instance.urn}


def test_one_report_names_all_instances_that_it_is_about() -> None:
    program = Plain(ingress=[])
    for id in (1, 2):
        program.broker(id)
    _, at_the_end = run(program)
    assert [text.partition(", listener")[0] for _, text in at_the_end["kl007-stack"]] == [
        "instances broker-1, broker-2, brokers 1, 2"
    ] * len(at_the_end["kl007-stack"])
    assert {urn.rpartition("::")[2] for urn, _ in at_the_end["kl007-stack"]} == {"broker-1"}


def test_a_name_of_its_own_that_a_preview_does_not_know_is_said_of_its_instance() -> None:
    program = Plain(ingress=GOOD)
    left = PROPERTIES.replace("advertised.listeners", "#").replace("0.0.0.0", "")
    instance = program.broker(properties=left, elastic=False, external=public(1))
    _, at_the_end = run(program, preview=True)
    texts = sorted({text.splitlines()[0] for _, text in at_the_end["not-known-yet-stack"]})
    unknown = "its host is not known yet: the private name of instance broker-1 [KL011]"
    assert [text for text in texts if "not known yet" in text and "listener CON" not in text] == [
        f"instance broker-1, broker 1, listener {name}: {unknown}"
        for name in ("EXTERNAL (scope external)", "INTERNAL (scope internal)")
    ]
    assert {urn for urn, _ in at_the_end["not-known-yet-stack"]} == {instance.urn}


def test_user_data_that_are_base64_already_are_read_as_the_provider_passes_them_on() -> None:
    text = script(PROPERTIES.format(id=1, internal="0.0.0.0", external="a.example.com", own="b"))
    encoded = base64.b64encode(text.encode()).decode()
    pack = Pack(SILENT_RESOLVERS)
    empty = {"userData": "", "userDataBase64": encoded}
    for inputs in ({"userData": text}, {"userData": encoded}, {"userDataBase64": encoded}, empty):
        assert "kl002" in pack.analyze(aws.INSTANCE, inputs), inputs
