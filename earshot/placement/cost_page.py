"""The page about what the templates of placement aws cost, as formulas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from earshot.aws.costs import HOURS, PRICES, Item, bill
from earshot.config.aws import AwsSpec
from earshot.placement.aws import footprint

_HEAD = f"""\
# What a stack on AWS costs

What each template makes of what AWS charges for, and the formula of its cost in a month of {HOURS}
hours. Prices differ by region and change, so none stands here: each formula names the price it
takes, and the list below says on which of AWS's pages that is. What AWS does not charge for is left
out (VPC, subnets, internet gateway, S3 gateway endpoint, security groups, standard SSM parameters).

How much traffic there will be nobody knows beforehand: GiB stands for a month's.

This page is generated from the templates.
"""

_END = """\
## To stop paying

`make down STACK=NAME` (or `pulumi destroy`) removes what the stack made. With
`deletion_protection: true` that is refused: set it to false, `make up`, and then destroy. With
`data: keep` the data volumes stay, and go on being billed until they are deleted
(`aws ec2 delete-volume`; the stack's output `ids` names them, as do their tags).
"""


def cost_page(specs: Mapping[str, AwsSpec]) -> str:
    """The page about ``specs``, by the names of their stacks."""
    bills = {name: bill(footprint(spec)) for name, spec in specs.items()}
    parts = [_HEAD, *(_stack(name, items) for name, items in bills.items())]
    used = {item.price for items in bills.values() for item in items}
    return "\n".join([*parts, _prices(used), _END])


def _stack(name: str, items: tuple[Item, ...]) -> str:
    rows = [
        f"| {item.what} | {'' if item.count is None else item.count} | `{item.formula}` |"
        for item in items
    ]
    return "\n".join(
        [f"## {name}\n", "| What | How many | In a month |", "|---|---|---|", *rows, ""]
    )


def _prices(used: set[str]) -> str:
    def lines() -> Iterator[str]:
        for key, (what, page) in PRICES.items():
            if key in used:
                yield f"| `{key}` | {what} | <{page}> |"

    head = ["## The prices\n", "| Price | Of | Page |", "|---|---|---|"]
    return "\n".join([*head, *lines(), ""])
