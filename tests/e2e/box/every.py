"""Every option with every naming, three brokers each, from both vantages: `make test-box`.

Not collected by itself, for it takes minutes; what every run shows is in `tests/e2e/test_box*.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.box.cloud_box import CloudBox
from tests.e2e.box.stack import OPTION_1, passed

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

OPTION_2: dict[str, Any] = {}
SIDES = {
    "option 1": (OPTION_1, {("internal", "PLAINTEXT"), ("external", "PLAINTEXT")}),
    "option 2": (OPTION_2, {("internal", "INTERNAL"), ("external", "EXTERNAL")}),
}
IDS = (1, 2, 3)


@pytest.mark.parametrize("naming", ["aws", "zone"])
@pytest.mark.parametrize("option", SIDES)
def test_it_is_proved_from_both_sides(
    box: CloudBox, tmp_path: Path, option: str, naming: str
) -> None:
    settings, sides = SIDES[option]
    stack = box.stack(tmp_path / "stack")
    stack.configure(box.cluster(3, **settings, **named(box, naming)))
    stack.up()
    assert passed(stack.validate(tmp_path)) == {(*side, id) for side in sides for id in IDS}
    assert "unchanged" in stack.up("--expect-no-changes")
    stack.destroy()
    box.settle()
    assert box.fleet.left == []


def named(box: CloudBox, naming: str) -> dict[str, Any]:
    if naming == "aws":
        return {}
    zone = {"name": "kafka.example.com", "public_zone_id": box.public_zone("example.com")}
    return {"naming": "zone", "zone": zone}


def test_controllers_of_their_own_in_private_subnets(box: CloudBox, tmp_path: Path) -> None:
    stack = box.stack(tmp_path / "stack")
    apart = {"mode": "separate", "count": 3, "port": 29092}
    stack.configure(box.cluster(1, controllers=apart, controller_volume={"size_gib": 1}))
    stack.up()
    held = box.held().machines.values()
    assert sorted(bool(it.elastic) for it in held) == [False, False, False, True]
    _, sides = SIDES["option 2"]
    assert passed(stack.validate(tmp_path)) == {(*side, 1) for side in sides}
    stack.destroy()
