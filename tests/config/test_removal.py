"""When a listener may go."""

from datetime import UTC, date, datetime
from typing import Any

import pytest

from earshot.config.docker import DockerSpec
from earshot.config.document import read_spec
from earshot.config.local import LocalSpec
from earshot.config.removal import goes_anyway
from earshot.errors import SpecError
from tests.raised import raised


def read(value: Any, placement: str = "local") -> str:
    spec = read_spec({"placement": placement, "remove": value}, "test")
    assert isinstance(spec, LocalSpec | DockerSpec)
    return spec.remove


@pytest.mark.parametrize("placement", ["local", "docker"])
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("unused", "unused"),
        ("anyway", "anyway"),
        ("2030-12-31", "2030-12-31"),
        (date(2030, 12, 31), "2030-12-31"),
        ("2030-12-31 00:00:00 +0000 UTC", "2030-12-31"),
    ],
)
def test_values_that_are_accepted(value: Any, expected: str, placement: str) -> None:
    assert read(value, placement) == expected


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("never", "'never'"),
        ("2030-02-30", "'2030-02-30'"),
        ("31.12.2030", "'31.12.2030'"),
        ("20301231", "'20301231'"),
        ("2030-12-31 08:00:00 +0000 UTC", "'2030-12-31 08:00:00 +0000 UTC'"),
        (datetime(2030, 12, 31, 8, tzinfo=UTC), "'2030-12-31T08:00:00+00:00'"),
        (20301231, "20301231"),
        (True, "true"),
        (None, "nothing"),
        (["anyway"], "['anyway']"),
    ],
)
def test_values_that_are_refused(value: Any, shown: str) -> None:
    error = raised(SpecError, read, value)
    text = " ".join(str(error).split())
    assert text.startswith(f"test: remove: found {shown}"), text
    assert "allowed: unused, anyway, or a date such as 2030-12-31, from which it is removed" in text


def test_a_listener_is_removed_anyway_from_its_day() -> None:
    days = [date(2030, 12, 30), date(2030, 12, 31), date(2031, 1, 1)]
    assert [goes_anyway("2030-12-31", day) for day in days] == [False, True, True]
    assert [goes_anyway(word, days[0]) for word in ("unused", "anyway")] == [False, True]
