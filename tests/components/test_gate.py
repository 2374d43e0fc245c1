"""The seal: it exists for a plan that was judged, and for no other."""

from __future__ import annotations

import pytest

from components.gate import NOBODY, _refuse_unjudged, digest
from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan, Scope
from earshot.placement.plan import NodeNames, plan
from earshot.spec.document import read_spec


def planned(host: str = "localhost") -> ClusterPlan:
    spec = read_spec({"placement": "local", "brokers": 1}, "test")
    hosts = {Scope.INTERNAL: "localhost", Scope.CONTROLLER: "localhost", Scope.HOST: host}
    return plan(spec, {1: NodeNames(hosts=hosts)})


def test_the_digest_is_the_plans_own() -> None:
    assert digest(planned()) == digest(planned())
    assert digest(planned()) != digest(planned("other.example"))


def test_the_digest_survives_the_way_through_the_engine() -> None:
    plan = planned()
    assert digest(ClusterPlan.model_validate(plan.model_dump(mode="json"))) == digest(plan)


@pytest.mark.parametrize("props", [{}, {"judged": NOBODY}, {"judged": "another"}, {"judged": None}])
def test_what_nobody_judged_is_refused(props: dict[str, str]) -> None:
    with pytest.raises(EarshotError, match="no policy pack has judged"):
        _refuse_unjudged({"digest": "d", **props})


def test_what_was_judged_is_sealed() -> None:
    _refuse_unjudged({"digest": "d", "judged": "d"})
