"""The texts that all formats share: headline, counts, times, vantages."""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime

from earshot.report.digest import Pair, broker_name, pairs
from earshot.validation.result import Cell, Report, Vantage
from earshot.validation.terms import Verdict

WORDS = {
    Verdict.PASS: "passed",
    Verdict.FAIL: "failed",
    Verdict.SKIP: "skipped",
    Verdict.INCONCLUSIVE: "inconclusive",
}


def headline(report: Report) -> str:
    """`earshot doctor: PASS, 6 of 6 cells passed`."""
    return f"earshot {report.kind}: {report.verdict.upper()}, {tally(report)}"


def tally(report: Report) -> str:
    """The verdicts of cells, deliveries and replications, counted; vantages that did not pass."""
    texts = [counted("cell", (cell.verdict for cell in report.cells))]
    if report.delivery:
        texts.append(counted("delivery", (pair.verdict for pair in pairs(report)), "deliveries"))
    if report.replication:
        texts.append(_replications(report))
    odd = [vantage for vantage in report.vantages if vantage.verdict != Verdict.PASS]
    texts += [f"vantage {vantage.name} {WORDS[vantage.verdict]}" for vantage in odd]
    return "; ".join(texts)


def _replications(report: Report) -> str:
    """`6 of 6 replications passed`, with the number of broker pairs if some were not checked."""
    text = counted("replication", (pair.verdict for pair in report.replication))
    brokers = {id for pair in report.replication for id in (pair.leader, pair.follower)}
    tried_count, pair_count = len(report.replication), len(brokers) * (len(brokers) - 1)
    return text if tried_count >= pair_count else f"{text}, of {pair_count} pairs of brokers"


def counted(noun: str, verdicts: Iterable[Verdict], plural: str = "") -> str:
    """`4 of 6 cells passed, 2 failed`, or `no cell was checked`."""
    counts = Counter(verdicts)
    total = sum(counts.values())
    if not total:
        return f"no {noun} was checked"
    name = noun if total == 1 else plural or f"{noun}s"
    other_counts = [f"{counts[v]} {WORDS[v]}" for v in Verdict if v != Verdict.PASS and counts[v]]
    return ", ".join([f"{counts[Verdict.PASS]} of {total} {name} passed", *other_counts])


def subject(report: Report) -> str:
    """The cluster: `cluster local (id 4L6g3nShT-eMCtK--X86sw), placement local, …`."""
    texts = [f"cluster {' '.join(report.cluster.split())}"]
    if report.cluster_id not in ("", report.cluster):
        texts[0] += f" (id {report.cluster_id})"
    if report.placement:
        texts.append(f"placement {report.placement}")
    if report.kafka_version:
        texts.append(f"Kafka {report.kafka_version}")
    return ", ".join(texts)


def occasion(report: Report) -> str:
    """The start, the duration and the id of the run."""
    return f"{moment(report.started)}, {report.seconds:.2f} s, run {report.run}"


def moment(when: datetime) -> str:
    """``when`` in UTC, to the second."""
    return aware(when).strftime("%Y-%m-%d %H:%M:%S UTC")


def aware(when: datetime) -> datetime:
    """``when`` in UTC. A time without a zone counts as UTC."""
    return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)


def outcome(cell: Cell) -> str:
    """The text next to the mark in a matrix: the latency of a pass, the stage of a failure, or the
    verdict."""
    if cell.verdict == Verdict.FAIL and cell.failed_stage:
        return str(cell.failed_stage)
    if cell.verdict == Verdict.PASS:
        return "" if cell.latency_ms is None else f"{cell.latency_ms:.1f} ms"
    return WORDS[cell.verdict]


def standpoint(vantage: Vantage) -> str:
    """A vantage with its machine and resolvers: `host (machine a, resolvers 10.0.0.2)`."""
    facts: list[str] = [vantage.kind] if vantage.kind != vantage.name else []
    if vantage.where and vantage.where != vantage.name:
        facts.append(f"machine {vantage.where}")
    if vantage.resolvers:
        facts.append(f"resolvers {', '.join(vantage.resolvers)}")
    return f"{vantage.name} ({', '.join(facts)})" if facts else vantage.name


def reached_text(vantage: Vantage) -> str:
    """`2 of 3 addresses reached`."""
    count = sum(target.reached for target in vantage.reached)
    return f"{count} of {len(vantage.reached)} addresses reached"


def unreached(vantage: Vantage) -> tuple[str, ...]:
    """One line for each address to which this vantage could not connect."""
    return tuple(
        f"{target.listener}, {broker_name(target.broker)} ({target.address}): "
        f"{'resolved to ' + ', '.join(target.resolved) if target.resolved else 'not resolved'}; "
        f"{target.error or 'not reached'}"
        for target in vantage.reached
        if not target.reached
    )


def fates(pair: Pair) -> str:
    """`1500 acknowledged, 1500 read, 0 lost`, and other counts that are not 0."""
    return ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in pair.counts.items())
