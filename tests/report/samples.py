"""Crafted reports, each named after its content."""

from datetime import UTC, datetime

from earshot.listeners.address import Address, read_address
from earshot.listeners.terms import Scope
from earshot.validation.result import (
    Cause,
    Cell,
    Delivery,
    ReachedAddress,
    Replication,
    Report,
    StageResult,
    Vantage,
)
from earshot.validation.terms import Stage, Verdict

BROKERS = (1, 2, 3)
LISTENERS = {"INTERNAL": (Scope.INTERNAL, 19091), "EXTERNAL": (Scope.HOST, 9091)}
WHEN = datetime(2025, 3, 1, 12, 30, 15, tzinfo=UTC)


def stages(failing: Stage | None = None) -> tuple[StageResult, ...]:
    """The seven stages; those after a failing one are skipped with that reason."""
    results = []
    failed = False
    for i, stage in enumerate(Stage):
        if failed:
            detail = f"{failing} failed"
            results.append(StageResult(stage=stage, verdict=Verdict.SKIP, detail=detail))
        elif stage == failing:
            failed = True
            results.append(StageResult(stage=stage, verdict=Verdict.FAIL, seconds=0.25))
        else:
            seconds = 0.001 * (i + 1)
            results.append(StageResult(stage=stage, verdict=Verdict.PASS, seconds=seconds))
    return tuple(results)


def cell(listener: str, broker: int, vantage: str = "host") -> Cell:
    """A cell that passed."""
    scope, port = LISTENERS[listener]
    return Cell(
        vantage=vantage,
        listener=listener,
        broker=broker,
        scopes=(scope,),
        address=Address("localhost", port + broker),
        verdict=Verdict.PASS,
        stages=stages(),
        latency_ms=1.5 + broker / 4,
    )


def failed(good: Cell, stage: Stage, cause: Cause) -> Cell:
    """``good``, had it failed at ``stage``."""
    changes = {"stages": stages(stage), "cause": cause, "latency_ms": None}
    return good.model_copy(update={"verdict": Verdict.FAIL, **changes})


def undecided(good: Cell, verdict: Verdict, reason: str) -> Cell:
    """``good``, had no stage of it been tried."""
    changes = {"verdict": verdict, "stages": (), "latency_ms": None, "reason": reason}
    return good.model_copy(update=changes)


def reached_addresses(cells: list[Cell]) -> tuple[ReachedAddress, ...]:
    """The addresses of cells: none that failed was resolved."""
    return tuple(
        ReachedAddress(
            listener=cell.listener,
            broker=cell.broker,
            address=cell.address,
            resolved=("127.0.0.1",) if cell.verdict is Verdict.PASS else (),
            reached=cell.verdict is Verdict.PASS,
            error="" if cell.verdict is Verdict.PASS else "NXDOMAIN",
        )
        for cell in cells
    )


def report(cells: list[Cell], **changes: object) -> Report:
    """A doctor's report of ``cells`` from this host."""
    values: dict[str, object] = {
        "kind": "doctor",
        "run": "0f3a9c",
        "cluster": "local",
        "cluster_id": "5L6g3nShT-eMCtK-X86swQ",
        "placement": "local",
        "kafka_version": "4.1.1",
        "started": WHEN,
        "seconds": 0.4321,
        "cells": cells,
        "vantages": [Vantage(name="host", where="devbox", resolvers=("192.0.2.53",))],
        **changes,
    }
    return Report.model_validate(values)


def healthy_cells(vantage: str = "host") -> list[Cell]:
    return [cell(listener, broker, vantage) for listener in LISTENERS for broker in BROKERS]


def copied(leader: int, follower: int) -> Replication:
    """A pair of brokers that passed."""
    return Replication(leader=leader, follower=follower, listener="INTERNAL", verdict=Verdict.PASS)


PAIRS = [(leader, follower) for leader in BROKERS for follower in BROKERS if follower != leader]


def all_pass() -> Report:
    """Three brokers, two listeners, a whole validation: everything came back."""
    delivery = [
        Delivery(
            written_through=written_listener,
            read_through=read_listener,
            broker=broker,
            acknowledged=500,
            read=500,
        )
        for written_listener in LISTENERS
        for read_listener in LISTENERS
        for broker in BROKERS
    ]
    reached = reached_addresses(healthy_cells())
    return report(
        healthy_cells(),
        kind="validation",
        seconds=21.5,
        delivery=delivery,
        replication=[copied(*pair) for pair in PAIRS],
        vantages=[Vantage(name="host", where="devbox", reached=reached)],
        incarnations={"broker-1": "4242@1740832000", "broker-2": "4243@1740832000"},
    )


def dead_broker() -> Report:
    """Broker 2 is gone: both of its cells fail, and its records are unknown, not lost."""
    cells = []
    for healthy_cell in healthy_cells():
        cause = Cause(
            kind="refused",
            observed=f"localhost resolved to 127.0.0.1; connecting to {healthy_cell.address} "
            "was refused",
            expected=f"broker 2 answers on {healthy_cell.address}",
            remedy="start broker 2 again: pulumi up --refresh",
        )
        cells.append(
            failed(healthy_cell, Stage.TCP, cause) if healthy_cell.broker == 2 else healthy_cell
        )
    delivery = [
        Delivery(
            written_through="INTERNAL",
            read_through="EXTERNAL",
            broker=2,
            acknowledged=200,
            unknown=300,
            read=190,
            lost=10,
            duplicated=1,
            out_of_order=2,
            foreign=4,
            examples=tuple(
                f"partition 1, sequence {number} never came back" for number in range(5)
            ),
        )
    ]
    return report(cells, kind="validation", delivery=delivery)


def not_replicated() -> Report:
    """Clients reach every broker, and no other broker reaches broker 3."""
    cause = Cause(
        kind="not-replicated",
        observed="broker 3 acknowledged no record within 20 s that brokers 1 and 2 had to copy",
        expected="brokers 1 and 2 copy from broker 3 (localhost:19094) through INTERNAL",
        remedy="see that brokers 1 and 2 can connect to what broker 3 advertises for INTERNAL",
    )
    changes = {"verdict": Verdict.FAIL, "cause": cause}
    pairs = [copied(*pair).model_copy(update=changes if pair[0] == 3 else {}) for pair in PAIRS]
    return report(healthy_cells(), kind="validation", replication=pairs)


def drift() -> Report:
    """Broker 3 advertises another port than the contract has."""
    cells = healthy_cells()
    cause = Cause(
        kind="drift",
        observed="broker 3 advertises localhost:9999",
        expected="localhost:9094, as the contract says",
        remedy="bring the broker back to its plan: pulumi up --refresh",
    )
    cells[5] = failed(cells[5], Stage.METADATA, cause)
    note = "the contract was written by the update of 2025-02-28, and names no cluster_id"
    return report(cells, cluster_id="", notes=[note])


def inconclusive() -> Report:
    """The vantage itself is broken, and one listener was left out on purpose."""
    broken = "no resolver answers from here, not even for the control name"
    cells = [
        undecided(good, Verdict.INCONCLUSIVE, broken)
        if good.listener == "EXTERNAL"
        else undecided(good, Verdict.SKIP, "its clients stand elsewhere")
        for good in healthy_cells()
    ]
    vantage = Vantage(
        name="host", where="devbox", verdict=Verdict.INCONCLUSIVE, reason="no resolver answers"
    )
    return report(cells, vantages=[vantage])


def executor_fails() -> Report:
    """An executor cannot resolve a name that the driver can."""
    cells = healthy_cells("executor-1")
    for index, good in enumerate(cells):
        cause = Cause(
            kind="unresolvable",
            observed=f"{good.address}: the name does not exist (NXDOMAIN) for resolver 192.0.2.7",
            expected="a name that executors resolve",
            remedy="advertise a name that the resolver of executor-1 knows",
        )
        if good.listener == "EXTERNAL":
            cells[index] = failed(good, Stage.RESOLVE, cause)
    executor = Vantage(
        name="executor-1",
        kind="executor",
        where="worker-a",
        resolvers=("192.0.2.7",),
        reached=reached_addresses(cells),
        verdict=Verdict.FAIL,
    )
    return report(
        [*healthy_cells("driver"), *cells],
        kind="validation",
        vantages=[Vantage(name="driver", where="devbox"), executor],
    )


def vantages() -> Report:
    """Three scopes, each from the vantage of its clients: one fails, one could not be used."""
    scopes = {
        "internal": ("BOB", Scope.INTERNAL, "kafka0:29092"),
        "host": ("FRED", Scope.HOST, "localhost:9092"),
        "external": ("ALICE", Scope.EXTERNAL, "never-gonna-give-you-up:29094"),
    }
    engine_reason = "no process could run there: Docker engine at ssh://devbox: does not answer"
    cause = Cause(
        kind="refused",
        observed="localhost:9092: 127.0.0.1:9092 refused the connection",
        expected="localhost:9092 accepts a connection",
        remedy="start broker 0; if it runs, see that FRED binds port 9092 on every interface",
    )
    cells = []
    for name, (listener, scope, address) in scopes.items():
        vantage_cell = cell("INTERNAL", 0, name).model_copy(
            update={"listener": listener, "scopes": (scope,), "address": read_address(address)}
        )
        if name == "host":
            vantage_cell = failed(vantage_cell, Stage.TCP, cause)
        elif name == "external":
            vantage_cell = undecided(vantage_cell, Verdict.INCONCLUSIVE, engine_reason)
        cells.append(vantage_cell)
    delivery = Delivery(
        written_through="BOB", read_through="BOB", broker=0, acknowledged=1000, read=1000
    )
    return report(
        cells,
        kind="validation",
        run="0f3a9c+11d2b4",
        cluster="docker",
        placement="docker",
        seconds=21.5,
        delivery=[delivery],
        vantages=[
            Vantage(
                name="internal",
                kind="container",
                where="devbox, network docker",
                resolvers=("127.0.0.11",),
            ),
            Vantage(name="host", where="laptop", resolvers=("192.0.2.53",)),
            Vantage(
                name="external",
                kind="container",
                verdict=Verdict.INCONCLUSIVE,
                reason=engine_reason,
            ),
        ],
    )


def hostile() -> Report:
    """A broker that answers with everything a format might trip over."""
    good = cell("EXTERNAL", 1)
    nasty = "\x1b[2J</script><script>alert(1)</script> | `*` ]]> & \" ' \x00 \u202e end"
    cause = Cause(kind="drift", observed=nasty, expected=nasty, remedy="first\nsecond")
    bad = failed(good, Stage.METADATA, cause).model_copy(update={"address": Address(nasty, 9092)})
    return report([bad], notes=[nasty], cluster=nasty)


def one_of_each() -> Report:
    """One of each kind of cell, delivery, replication and vantage: it has every key and part."""
    passed, nasty, unseen = all_pass(), hostile(), inconclusive()
    (vantage,), (blind,) = passed.vantages, unseen.vantages
    there = {"vantage": "container"}
    return report(
        [
            passed.cells[0],
            *nasty.cells,
            *(cell.model_copy(update=there) for cell in (unseen.cells[0], unseen.cells[3])),
        ],
        kind="validation",
        cluster=nasty.cluster,
        delivery=[passed.delivery[0], *dead_broker().delivery],
        replication=[passed.replication[0], not_replicated().replication[-1]],
        vantages=[
            vantage.model_copy(update={"reached": vantage.reached[:1]}),
            blind.model_copy(update={"name": "container", "kind": "container"}),
        ],
        incarnations=passed.incarnations,
        notes=nasty.notes,
    )


ALL = {
    "all_pass": all_pass,
    "dead_broker": dead_broker,
    "not_replicated": not_replicated,
    "drift": drift,
    "inconclusive": inconclusive,
    "executor_fails": executor_fails,
    "vantages": vantages,
    "hostile": hostile,
}
