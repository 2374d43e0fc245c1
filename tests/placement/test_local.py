"""Where the data of local brokers may lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from earshot.errors import EarshotError
from earshot.listeners.properties import read_properties
from earshot.listeners.render import server_properties
from earshot.placement import plan_local
from tests.config.read import read_local


@pytest.mark.parametrize(
    ("root", "shown", "why"),
    [
        ("/a,b/kafka", "/a,b/kafka", "a comma in its path, at which Kafka would take `log.dirs`"),
        ("/a\udcfcb", "/a\\udcfcb", "a path that is no UTF-8 text, which Java cannot open"),
    ],
)
def test_a_path_that_kafka_cannot_take_is_refused(root: str, shown: str, why: str) -> None:
    with pytest.raises(EarshotError) as caught:
        plan_local(read_local({"placement": "local"}, "test"), Path(root))
    message = str(caught.value)
    assert message.startswith(f"data folder {shown}: has {why}")
    assert message.endswith("fix: move the project to another path")


@pytest.mark.parametrize("root", ["/home/jürgen", "/a b/#c=d:e", "/back\\slash", "/👂/100%"])
def test_any_other_path_reaches_kafka_as_it_is(root: str) -> None:
    local = plan_local(read_local({"placement": "local"}, "test"), Path(root))
    text = server_properties(local.plan, local.plan.nodes[0])
    assert read_properties(text).values["log.dirs"] == f"{root}/node-1/log"
