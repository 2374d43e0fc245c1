"""Which resources of a stack belong together, with their ids known and not known yet."""

from __future__ import annotations

from typing import Any

from earshot.sources.stack_resources import (
    GROUPS,
    INTERFACE,
    SUBNETS,
    VPCS,
    References,
    RegisteredResource,
    RegisteredStack,
)


def made(
    type: str, name: str, depends: dict[str, tuple[str, ...]] | None = None, **props: Any
) -> RegisteredResource:
    return RegisteredResource(type, f"urn::{name}", props, depends=depends or {})


VPC = made(VPCS[0], "vpc", id="vpc-1")
NEW = made(VPCS[0], "new", id=None)
GROUP = made(GROUPS[0], "group", id=None)


def test_a_resource_is_called_by_its_ids() -> None:
    assert made(INTERFACE, "x", arn="arn:aws:ec2:r:1:network-interface/eni-1").ids == {"eni-1"}
    assert made(INTERFACE, "x", id="a", zoneId="b", allocationId="c").ids == {"a", "b", "c"}
    assert made(INTERFACE, "x", id=None).ids == frozenset()
    assert VPC.name == "vpc"


def test_a_text_is_one_that_is_known_and_says_something() -> None:
    holder = made("t", "x", a="text", b="", c=7.0, d=None, e=["text"])
    assert [holder.text(key) for key in "abcdef"] == ["text", *[None] * 5]


def test_references_are_found_by_id_and_by_dependency() -> None:
    stack = RegisteredStack([VPC, NEW, GROUP])

    def pointed(**more: Any) -> References:
        return stack.references(made(SUBNETS[0], "subnet", **more), "vpcId", *VPCS)

    assert pointed(vpcId="vpc-1").resources == (VPC,)
    assert pointed(vpcId="vpc-2") == References(foreign_ids=("vpc-2",))
    assert pointed(vpcId="vpc-2").keys == {"vpc-2"}
    assert pointed() == References()
    assert pointed(vpcId=None) == References(unknown=True)
    from_new = {"vpcId": (GROUP.urn, NEW.urn, "urn::gone")}
    assert pointed(vpcId=None, depends=from_new).resources == (NEW,)
    assert pointed(vpcId="vpc-2", depends=from_new).resources == (NEW,), "the id of another time"
    assert pointed(vpcId="vpc-1", depends=from_new).resources == (VPC,)


def test_lists_and_what_stands_inside_maps() -> None:
    stack = RegisteredStack([VPC])
    holder = made("t", "x", a=["vpc-1", None], b=[{"vpcId": "vpc-1"}, {}, None], c={"vpcId": "v"})
    assert stack.references(holder, "a", *VPCS) == References((VPC,), unknown=True)
    assert stack.references(holder, "b", *VPCS, inner="vpcId") == References((VPC,), unknown=True)
    assert stack.references(holder, "c", *VPCS, inner="vpcId") == References(foreign_ids=("v",))


def test_only_resources_of_the_wanted_types_are_pointed_at() -> None:
    assert RegisteredStack([made(GROUPS[0], "g", id="vpc-1")]).references(
        made("t", "x", vpcId="vpc-1"), "vpcId", *VPCS
    ) == References(foreign_ids=("vpc-1",))


def test_referrers_of_a_resource() -> None:
    subnets = [made(SUBNETS[0], name, vpcId=id) for name, id in (("a", "vpc-1"), ("b", "vpc-2"))]
    stack = RegisteredStack([VPC, *subnets])
    assert list(stack.referrers(VPC.urn, "vpcId", SUBNETS, VPCS)) == subnets[:1]
    assert stack.referrers(VPC.urn, "otherId", SUBNETS, VPCS) == ()
    assert stack.referrers(VPC.urn, "vpcId", GROUPS, VPCS) == ()
    assert stack.referrers(VPC.urn, "vpcId", SUBNETS, GROUPS) == ()
    assert stack.get("urn::a") == subnets[0]
    assert stack.get("urn::none") is None


def test_what_the_program_gave_is_told_from_what_aws_added() -> None:
    group = RegisteredResource(GROUPS[0], "urn::g", {"ingress": []}, inputs={"vpcId": None})
    assert not group.given("ingress")
    assert group.given("vpcId")
    assert made(GROUPS[0], "g", ingress=[]).given("ingress")


def test_references_are_whole_if_none_is_unknown_or_foreign() -> None:
    assert References().whole is References((VPC,)).whole is True
    for less in (References((VPC,), ("vpc-2",)), References((VPC,), unknown=True)):
        assert less.whole is False
    assert References((VPC,), ("vpc-2",)).keys == {"urn::vpc", "vpc-2"}
