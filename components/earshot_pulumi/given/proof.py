"""Proof of a contract: the doctor, or Spark with records, as a custom resource.

Pulumi reads the schema from the annotations and docstrings below. They must not be strings, so this
module does not postpone annotations.
"""

import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NotRequired, TypedDict, TypeGuard

import pulumi
from pydantic import ValidationError

from earshot.doctor.doctor import examine
from earshot.errors import EarshotError
from earshot.extras import folder_of
from earshot.files.temporary import TemporaryFolder
from earshot.listeners.problems import describe, shown, unknown_key
from earshot.listeners.properties import NodeSettings, write_properties
from earshot.listeners.terms import CLIENT_SCOPES
from earshot.validation.client import misspelt, translate
from earshot.validation.contract import Contract
from earshot.validation.result import Cell
from earshot.validation.terms import Stage
from earshot_pulumi.outputs import read_inputs
from earshot_pulumi.provider.kind import (
    UNKNOWN,
    Kind,
    Operation,
    OperationFailed,
    Properties,
    Unknown,
    has_unknown,
)
from earshot_pulumi.provider.resource import EarshotResource, snake_case
from earshot_pulumi.validation import FAILED, REPORT, failure_kept, unproved, validate

DEFAULTS = {"records": 0, "deadline": 60, "readySeconds": 60}
LIMITS = {"records": (0, 10_000_000), "deadline": (1, 86_400), "readySeconds": (0, 86_400)}
"""The lowest and the highest value of each number."""
ASK_SECONDS = 5.0
"""Time limit in seconds of one round of requests to starting brokers."""
STARTING = (Stage.BOOTSTRAP, Stage.METADATA, Stage.TCP)
"""Stages at which a broker that has not started yet fails."""
STARTING_TLS = ("protocol", "no-answer")
"""Causes of a TLS handshake that a broker which has not started yet does not make."""


class ProofArgs(TypedDict):
    """The inputs of a proof."""

    contract: pulumi.Input[Properties]
    """The contract of `Listeners` or of a cluster."""
    after: NotRequired[pulumi.Input[list[pulumi.Input[str]]]]
    """Values that change with a broker, such as container or instance ids: any change proves the
    contract again."""
    scopes: NotRequired[list[str]]
    """Scopes whose listeners are proved from here. Default: all. Listeners of other scopes are in
    `unproved`."""
    records: NotRequired[int]
    """Records that Spark sends through every listener. Default: 0, which runs only the doctor and
    needs no Java."""
    deadline: NotRequired[int]
    """Seconds for the whole run. Default: 60."""
    ready_seconds: NotRequired[int]
    """Seconds to wait for brokers to answer. Default: 60."""
    client: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]
    """Kafka client properties to log in with; a secret."""


class Proof(EarshotResource):
    """A proof that every broker is reached through every listener, from the machine that runs the
    program.

    If a listener fails, the update fails with the whole matrix, the cause and the fix.
    """

    verdict: pulumi.Output[str]
    """`pass`; a contract that fails ends the update, and is proved again by the next one."""
    report: pulumi.Output[str]
    """The report of the last run, as text."""
    unproved: pulumi.Output[list[str]]
    """Listeners of the contract that this proof leaves out."""

    def __init__(
        self, name: str, args: ProofArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        inputs = read_inputs(args, name)
        if (client := inputs.get("client")) is not None:
            inputs["client"] = pulumi.Output.secret(client)
        self._register(name, inputs, opts)


class ProofKind(Kind):
    """Runs `earshot validate` against the contract."""

    secrets = ("client",)
    DECISIVE = ("contract", "after", "scopes", "records", "client")
    interrupted = "interrupted during the proof: nothing was changed, and nothing is proved"

    def problems(self, operation: Operation, olds: Properties, news: Properties) -> Iterator[str]:
        for key in [key for key, value in news.items() if value is None]:
            del news[key]
        news |= {**DEFAULTS, **news}
        keys = list(ProofArgs.__annotations__)
        for key in map(snake_case, news):
            if key not in keys:  # otherwise `record: 3000` would send no record
                yield f"{key}: {unknown_key(key, keys)}"
        yield from _scope_problems(news.get("scopes") or [])
        yield from _number_problems(news)
        yield from _client_problems(news.get("client", {}))
        yield from _contract_problems(news.get("contract"), news.get("scopes"))

    def differs(self, operation: Operation, olds: Properties, news: Properties) -> bool:
        return olds.get("verdict") == FAILED or super().differs(operation, olds, news)

    def create(self, operation: Operation, news: Properties) -> tuple[str, Properties]:
        if operation.preview:
            return "", {**news, "verdict": UNKNOWN, "report": UNKNOWN, "unproved": UNKNOWN}
        whole_contract = Contract.model_validate(news["contract"])
        scopes = news.get("scopes") or list(whole_contract.scopes)
        contract = _of_scopes(whole_contract, scopes)
        _wait_until_up(operation, contract, news)
        with TemporaryFolder("earshot-proof-") as folder:
            report = _prove(operation, folder.path, contract, news)
        proved_names = {listener.name for listener in contract.listeners}
        unproved_names = [
            listener.name
            for listener in whole_contract.listeners
            if listener.name not in proved_names
        ]
        outputs = {"verdict": "pass", "report": report, "unproved": unproved_names}
        return contract.cluster, {**news, **outputs}

    def update(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        with failure_kept({**news, "unproved": []}, "report"):
            return self.create(operation, news)[1]


def _scope_problems(scopes: object) -> Iterator[str]:
    allowed = ", ".join(CLIENT_SCOPES)
    if not isinstance(scopes, list | Unknown):
        yield f"scopes: found {shown(scopes)}; allowed: a list of {allowed}"
    for scope in scopes if isinstance(scopes, list) else ():
        if scope is not UNKNOWN and scope not in CLIENT_SCOPES:
            yield f"scopes: found {shown(scope)}; allowed: {allowed}"


def _number_problems(inputs: Properties) -> Iterator[str]:
    for key, (lowest, highest) in LIMITS.items():
        value, kinds = inputs[key], int if key == "records" else int | float
        is_number = isinstance(value, kinds) and not isinstance(value, bool)
        if value is not UNKNOWN and not (is_number and lowest <= value <= highest):
            yield f"{snake_case(key)}: found {shown(value)}; allowed: {lowest} to {highest}"
    if isinstance(inputs["records"], int) and inputs["records"] > 0:
        try:
            folder_of("pyspark", "records", ", or leave out `records`: the doctor needs no Spark")
        except EarshotError as error:
            yield error.line


def _client_problems(client: object) -> Iterator[str]:
    if client is UNKNOWN:
        return
    if not _are_properties(client):
        yield "client: allowed: a map of Kafka client properties, each a text"
        return
    misspelt_names = misspelt(client)
    for key, name in misspelt_names.items():
        observed = f"client.{key}: is not a property of Kafka's clients"
        yield f"{observed}; did you mean {name}?"
    if not (misspelt_names or has_unknown(client)):
        try:
            translate(client)
        except EarshotError as error:
            yield f"client: {error.line}"


def _contract_problems(contract: object, scopes: object) -> Iterator[str]:
    if has_unknown(contract):
        return
    try:
        read_contract = Contract.model_validate(contract)
    except ValidationError as error:
        for problem in describe(error, Contract, contract)[:20]:
            yield f"contract: {problem}"
        return
    if isinstance(scopes, list) and not has_unknown(scopes):
        yield from _unserved_scopes(
            read_contract, [scope for scope in scopes if scope in CLIENT_SCOPES]
        )


def _unserved_scopes(contract: Contract, scopes: Iterable[str]) -> Iterator[str]:
    """A problem for each of ``scopes`` that no listener serves: nothing of it would be proved."""
    for scope in scopes:
        if scope not in contract.scopes:
            allowed = ", ".join(contract.scopes)
            observed = f"found {scope}, and no listener of the contract serves it"
            yield f"scopes: {observed}; allowed: {allowed}"


def _are_properties(client: object) -> TypeGuard[Mapping[str, str]]:
    return isinstance(client, Mapping) and all(
        isinstance(value, str) or value is UNKNOWN for value in client.values()
    )


def _of_scopes(contract: Contract, scopes: Collection[str]) -> Contract:
    """The listeners of ``contract`` that serve one of ``scopes``. Raises OperationFailed."""
    if problems := list(_unserved_scopes(contract, scopes)):
        raise OperationFailed("; ".join(problems))
    names = [listener.name for listener in contract.listeners if set(listener.scopes) & set(scopes)]
    return contract.with_listeners(names)


def _wait_until_up(operation: Operation, contract: Contract, inputs: Properties) -> None:
    """Waits until every broker answers at every listener, at most `readySeconds`.

    A published port accepts connections before its broker does, so brokers are asked for metadata.
    Brokers that do not answer by then are reported by the proof.
    """
    end = time.monotonic() + inputs["readySeconds"]
    logged_addresses = ""
    while True:
        report = examine(contract, client=inputs.get("client"), deadline=ASK_SECONDS, produce=False)
        waiting_cells = [cell for cell in report.cells if _may_be_starting(cell)]
        if not waiting_cells or time.monotonic() > end:
            return
        addresses = ", ".join(str(cell.address) for cell in waiting_cells[:3])
        if addresses != logged_addresses:
            operation.log(f"waiting for {addresses}")
        logged_addresses = addresses
        operation.wait(0.5)


def _may_be_starting(cell: Cell) -> bool:
    if cell.failed_stage is Stage.SECURITY:
        return cell.cause is not None and cell.cause.kind in STARTING_TLS
    return cell.failed_stage in STARTING


def _prove(operation: Operation, folder: Path, contract: Contract, inputs: Properties) -> str:
    """The text of the report. Raises OperationFailed with it unless the verdict is a pass."""
    options: list[str] = []
    if client := inputs.get("client"):
        file = folder / "client.properties"
        file.touch(mode=0o600)
        file.write_text(write_properties(NodeSettings(client, {})))
        options = ["--client-config", str(file)]
    code, errors = validate(operation, contract, folder, inputs, options, os.environ)
    if code != 0:
        raise OperationFailed(unproved(folder / REPORT, code, errors))
    from earshot.report import render
    from earshot.validation.result import Report

    return render(Report.model_validate_json((folder / REPORT).read_text()), "text")
