"""Kafka itself on settings that others wrote: many cases in one call of one JVM per release."""

import contextlib
import importlib.util
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaGateway

from earshot.checks.lone_settings import is_of_broker, mistakes_in_properties, settings_in
from earshot.facts.settings import BrokerSettings
from earshot.jvm.jars import kafka_broker_jars
from earshot.listeners.placeholders import is_known
from earshot.listeners.properties import NodeSettings, write_properties
from earshot.rules.kl002_kafka import FIRST_KRAFT, startup_refusals, unusable
from earshot.rules.rule import Severity
from tests.judge.cases import Case
from tests.listeners.oracle import java_with

RELEASES = (
    "2.8.2", "3.3.2", "3.8.1", "3.9.2", "4.0.2", "4.1.1", "4.2.1", "4.3.1", "4.4.0",
)  # fmt: skip
"""The newest is the newest that Maven's central repository had."""
BATCH = 1000
QUICK = "-Djdk.net.hosts.file=/dev/null"
"""Kafka looks the voters' hosts up and ignores the result: an empty table answers at once."""


@dataclass
class Judge:
    """One JVM with the jars of one release."""

    version: str
    gateway: JavaGateway

    @property
    def release(self) -> tuple[int, int]:
        major, minor = self.version.split(".")[:2]
        return int(major), int(minor)

    def refusals(self, cases: Sequence[Mapping[str, str]]) -> list[str]:
        """Kafka's message for each; an empty text where it takes the settings."""
        messages: list[str] = []
        for at in range(0, len(cases), BATCH):
            texts = [write_properties(NodeSettings(case)) for case in cases[at : at + BATCH]]
            messages += self._judge.refusals("\0".join(texts)).split("\0")
        assert len(messages) == len(cases)
        return messages

    def properties(self, environments: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
        """The properties that the start script of apache/kafka passes to Kafka."""
        texts = [
            "\n".join(f"{name}={value}" for name, value in env.items()) for env in environments
        ]
        answers = self._image.properties("\0".join(texts)).split("\0")
        return [dict(line.split("=", 1) for line in text.split("\n") if line) for text in answers]

    @cached_property
    def _judge(self) -> Any:
        return self._compiled("Judge")

    @cached_property
    def _image(self) -> Any:
        return self._compiled("Image")

    def _compiled(self, name: str) -> Any:
        """An instance of the class in the file of this folder. A JRE has no compiler."""
        compiler = self.gateway.jvm.org.codehaus.janino.SimpleCompiler()
        compiler.cook(Path(__file__).with_name(f"{name}.java").read_text())
        (constructor,) = compiler.getClassLoader().loadClass(name).getDeclaredConstructors()
        return constructor.newInstance(self.gateway.new_array(self.gateway.jvm.Object, 0))


@contextlib.contextmanager
def started(version: str) -> Iterator[Judge]:
    """A judge of ``version``; raises EarshotError where its jars cannot be had."""
    with java_with((*kafka_broker_jars(version), *_compiler_jars()), QUICK) as gateway:
        yield Judge(version, gateway)


def _compiler_jars() -> list[Path]:
    """Janino, which PySpark ships."""
    spec = importlib.util.find_spec("pyspark")
    (folder,) = (spec.submodule_search_locations or []) if spec else []
    compiler_jars = [jar for name in ("janino", "commons-compiler")
             for jar in Path(folder, "jars").glob(f"{name}-*.jar")]  # fmt: skip
    assert len(compiler_jars) == 2, compiler_jars
    return compiler_jars


@dataclass(frozen=True)
class Disagreement:
    """Settings of which we say one thing and Kafka another."""

    values: Case
    kafka: str
    ours: str

    def __str__(self) -> str:
        lines = [f"    {key}={value}" for key, value in sorted(self.values.items())]
        verdicts = [f"  Kafka: {self.kafka or 'takes it'}", f"  ours:  {self.ours or 'nothing'}"]
        return "\n".join([*verdicts, *lines])


@dataclass
class Tally:
    """The numbers of cases accepted and refused by both, and the cases where both differ."""

    accepted_count: int = 0
    refused_count: int = 0
    missed_refusals: list[Disagreement] = field(default_factory=list)
    """Refused by Kafka alone."""
    false_refusals: list[Disagreement] = field(default_factory=list)
    """Refused by us alone."""

    def __str__(self) -> str:
        return (
            f"{self.accepted_count} taken, {self.refused_count} refused, "
            f"{len(self.missed_refusals)} missed, {len(self.false_refusals)} false"
        )


def has_verdicts(case: Case, release: tuple[int, int]) -> bool:
    """True if both sides have a verdict.

    Of a variable or a template nothing is known, what Kafka before 3.2 called KRaft was a preview,
    and a node without any role, which 4.0 and 4.1 take with an empty `process.roles`, runs nothing.
    """
    roles = case.get("process.roles", "").strip()
    idle = "process.roles" in case and not roles and (4, 0) <= release < (4, 2)
    return all(map(is_known, case.values())) and not (roles and release < FIRST_KRAFT) and not idle


Verdicts = Sequence[tuple[Case, str]]
"""Settings, each with Kafka's refusal or an empty text."""


def verdicts(judge: Judge, cases: Sequence[Case]) -> Verdicts:
    """Kafka's verdict on ``cases``, those that `is_asked` allows."""
    allowed_cases = [case for case in cases if has_verdicts(case, judge.release)]
    return list(zip(allowed_cases, judge.refusals(allowed_cases), strict=True))


def compare(judge: Judge, kafkas: Verdicts) -> Tally:
    """Compares our verdict on settings with Kafka's."""
    return _tally((case, kafka, our_refusal(case, judge.release)) for case, kafka in kafkas)


def compare_files(judge: Judge, kafkas: Verdicts) -> Tally:
    """The findings of `earshot lint` for a properties file with the settings, and Kafka's verdict.

    A part of a file, which something else completes, is left out where lint says nothing of it.
    """
    judged_cases = ((case, kafka, lints_refusal(case, judge.release)) for case, kafka in kafkas)
    return _tally(
        judged_case for judged_case in judged_cases if judged_case[2] or not is_part(judged_case[0])
    )


def compare_without_release(judge: Judge, kafkas: Verdicts) -> Tally:
    """Like `compared_in_files`, without a release: lint refuses settings that no release since 3.9
    accepts.

    Only a refusal of what this release takes is a difference.
    """
    allowed_cases = [
        (case, kafka)
        for case, kafka in kafkas
        if judge.release >= (3, 9) and ("process.roles" in case or judge.release < (4, 0))
    ]
    judged_cases = ((case, kafka, lints_refusal(case, None)) for case, kafka in allowed_cases)
    return _tally(
        judged_case for judged_case in judged_cases if judged_case[2] or not judged_case[1]
    )


def _tally(items: Iterable[tuple[Case, str, str]]) -> Tally:
    tally = Tally()
    for case, kafka, ours in items:
        if bool(kafka) == bool(ours):
            tally.refused_count += bool(kafka)
            tally.accepted_count += not kafka
        else:
            (tally.missed_refusals if kafka else tally.false_refusals).append(
                Disagreement(case, kafka, ours)
            )
    return tally


def is_part(case: Case) -> bool:
    """True if lint treats a file with these settings as a part, or as no broker's."""
    text = write_properties(NodeSettings(case))
    return not is_of_broker(text) or not settings_in(case, None, complete=True).complete


def lints_refusal(case: Case, release: tuple[int, int] | None) -> str:
    """The refusals that `earshot lint` predicts for a properties file with these settings."""
    text = write_properties(NodeSettings(case))
    if not is_of_broker(text):
        return ""
    findings = [
        finding
        for finding in mistakes_in_properties(text, release)
        if finding.severity is Severity.ERROR  # a misspelt property is ignored
    ]
    # addresses that no client can use are not refused
    usable = {
        finding.observed for finding in unusable(settings_in(case, release, complete=True).read())
    }
    return next((finding.observed for finding in findings if finding.observed not in usable), "")


def our_refusal(case: Case, release: tuple[int, int]) -> str:
    """The findings for a node with these properties, all of which are known."""
    findings = startup_refusals(BrokerSettings(case, complete=True, release=release))
    return findings[0].observed if findings else ""


def smallest(judge: Judge, disagreement: Disagreement, ours: Callable[[Case], str]) -> Disagreement:
    """``disagreement`` without every setting that both do not need to differ in the same way."""
    while True:
        smaller_cases = [
            {key: value for key, value in disagreement.values.items() if key != removed_key}
            for removed_key in disagreement.values
        ]
        smaller_cases = [case for case in smaller_cases if has_verdicts(case, judge.release)]
        for case, kafka in zip(smaller_cases, judge.refusals(smaller_cases), strict=True):
            our_message = ours(case)
            if bool(kafka) == bool(disagreement.kafka) and bool(our_message) == bool(
                disagreement.ours
            ):
                disagreement = Disagreement(case, kafka, our_message)
                break
        else:
            return disagreement


def examples(
    judge: Judge,
    disagreements: Sequence[Disagreement],
    ours: Callable[[Case], str] | None = None,
    limit: int = 5,
) -> list[Disagreement]:
    """The smallest form of some ``disagreements``, one of each kind. ``ours`` is our verdict."""
    kinds: dict[str, Disagreement] = {}
    for disagreement in disagreements:
        kinds.setdefault((disagreement.kafka or disagreement.ours)[:40], disagreement)
    verdict = ours or partial(our_refusal, release=judge.release)
    return [smallest(judge, disagreement, verdict) for disagreement in list(kinds.values())[:limit]]
