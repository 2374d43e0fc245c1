"""Kafka and earshot, each about settings that others wrote: both refuse, or both take."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import pytest
from _pytest.mark import ParameterSet

from earshot.errors import EarshotError
from earshot.listeners.images import Family, broker_settings
from tests.judge.cases import cases, environments
from tests.judge.judge import (
    Judge,
    compare,
    compare_files,
    compare_without_release,
    examples,
    is_part,
    lints_refusal,
    our_refusal,
    started,
    verdicts,
)
from tests.judge.known import KNOWN, Vector
from tests.listeners.oracle import kafkas_own_exceptions as kafkas_own_exceptions
from tests.measured import MEASURED
from tests.skips import not_meant

SEED, SHARE = 20_261, 1000
"""The number of cases of one seed. `make kafka-judge` has thousands."""
SUPPORTED = ("3.9.2", "4.1.1")
"""Releases that `make test` asks."""
ASKED = ("2.8.2", "3.3.2", *SUPPORTED, "4.4.0")
"""Releases that `make test-all` asks; `make kafka-judge` asks all."""
WITH_SCRIPT = tuple(
    release for release in ASKED if tuple(map(int, release.split(".")[:2])) >= (3, 8)
)
"""Releases whose image apache/kafka has its start script in Kafka's own jar."""

IDS = [f"{index}-{','.join(reported.change)}" for index, reported in enumerate(KNOWN)]


@pytest.mark.parametrize("reported", KNOWN, ids=IDS)
def test_our_verdict(reported: Vector) -> None:
    for version in reported.judged_releases:
        major, minor = version.split(".")[:2]
        ours = our_refusal(reported.values, (int(major), int(minor)))
        assert bool(ours) == reported.refuses(version), (version, ours)
        in_file = lints_refusal(reported.values, (int(major), int(minor)))
        assert bool(in_file) == bool(ours) or is_part(reported.values), (version, in_file)


def release_parameters(releases: Iterable[str]) -> list[ParameterSet]:
    """The releases as parameters, of which `make test` has those that are supported."""
    not_supported = pytest.mark.combination
    return [
        pytest.param(release, marks=() if release in SUPPORTED else not_supported)
        for release in releases
    ]


@pytest.fixture(scope="module", params=release_parameters(ASKED))
def judge(request: pytest.FixtureRequest) -> Iterator[Judge]:
    try:
        running = started(request.param)
        judge = running.__enter__()
    except EarshotError as error:
        if "the repository has no" in error.observed:  # a mirror may lag behind
            not_meant(error.line)
        raise
    yield judge
    running.__exit__(None, None, None)


@pytest.mark.e2e
@pytest.mark.timeout(900)
def test_kafka_says_what_we_say_of_it(judge: Judge) -> None:
    known_cases = [
        known_case for known_case in KNOWN if judge.version in known_case.judged_releases
    ]
    for known_case, kafka in zip(
        known_cases, judge.refusals([known_case.values for known_case in known_cases]), strict=True
    ):
        assert bool(kafka) == known_case.refuses(judge.version), (known_case, kafka)
        assert not kafka or known_case.kafka in kafka


@pytest.mark.e2e
@pytest.mark.timeout(900)
def test_we_refuse_what_kafka_refuses_and_nothing_else(
    judge: Judge, record_property: Callable[[str, object], None]
) -> None:
    kafkas = verdicts(judge, list(cases(SEED, SHARE)))
    tally = compare(judge, kafkas)
    record_property(MEASURED, f"Kafka {judge.version} on {SHARE} cases of seed {SEED}: {tally}")
    differ = examples(judge, [*tally.missed_refusals, *tally.false_refusals])
    assert not differ, "\n".join(map(str, differ))
    assert min(tally.accepted_count, tally.refused_count) > SHARE / 20
    for release, file_tally in (
        (judge.release, compare_files(judge, kafkas)),
        (None, compare_without_release(judge, kafkas)),
    ):
        ours = partial(lints_refusal, release=release)
        differ = examples(judge, [*file_tally.missed_refusals, *file_tally.false_refusals], ours)
        assert not differ, "\n".join(map(str, differ))


@pytest.mark.e2e
@pytest.mark.timeout(900)
@pytest.mark.parametrize("judge", release_parameters(WITH_SCRIPT), indirect=True)
def test_the_image_hands_on_the_variables_as_we_take_them(judge: Judge) -> None:
    variable_sets, image = list(environments(SEED, SHARE)), f"apache/kafka:{judge.version}"
    for env, properties in zip(variable_sets, judge.properties(variable_sets), strict=True):
        assert broker_settings(Family.APACHE, env, image).values == properties, env
