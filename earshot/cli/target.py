"""The target of a command: the contract of a stack or of a file, and bootstrap addresses."""

import contextlib
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from earshot.errors import AddressError, EarshotError
from earshot.files.reading import read_all
from earshot.files.stack_files import stack_name
from earshot.listeners.address import Address, parse_address
from earshot.project import Project
from earshot.sources.files import text_of
from earshot.validation.client_file import read_client_file
from earshot.validation.contract import Contract, read_contract

PULUMI_SECONDS = 60


@dataclass(frozen=True)
class Target:
    """A contract, bootstrap addresses, or both; with a stack, if the contract is from one."""

    contract: Contract | None
    bootstrap: tuple[Address, ...]
    project: Project | None = None
    stack: str = ""
    """The stack's name in the project; empty without a stack."""
    files: tuple[Path, ...] = ()
    """The files of the target, which a result must not replace."""

    def client_properties(self, file: Path | None) -> dict[str, str]:
        """The properties in ``file``, else the validator's if the stack has them, else none.

        Raises EarshotError.
        """
        if file is None and self.project is not None:
            credentials_file = self.project.credentials_file(self.stack)
            file = credentials_file if credentials_file.exists() else None
        return {} if file is None else read_client_file(file, f"--client-config {file}")

    @property
    def report_file(self) -> Path | None:
        """The file with the last report of this stack; None without a stack."""
        return self.project.report_file(self.stack) if self.project is not None else None


def target(stack: str | None, contract: str | None, bootstrap: str | None) -> Target:
    """The target in a command's options. Raises EarshotError if they name none or two."""
    if stack is None and contract is None and bootstrap is None:
        raise EarshotError(
            "nothing to look at",
            observed="neither --stack nor --contract nor --bootstrap is given",
            remedy="name a stack (--stack local), a contract (--contract FILE, or - for stdin) "
            "or a broker (--bootstrap HOST:PORT)",
        )
    if stack is not None and contract is not None:
        subject = "--stack and --contract"
        raise EarshotError(subject, observed="are both given", allowed="one of them")
    addresses = parse_bootstrap(bootstrap) if bootstrap is not None else ()
    if contract is not None:
        files = () if contract == "-" else (Path(contract),)
        return Target(_contract_in(contract), addresses, files=files)
    if stack is not None:
        project = Project.find()
        stack_files = (
            project.stack_file(stack),
            project.contract_file(stack),
            project.credentials_file(stack),
        )
        of_stack = stack_contract(project, stack)
        return Target(of_stack, addresses, project, stack_name(stack), stack_files)
    return Target(None, addresses)


def parse_bootstrap(text: str) -> tuple[Address, ...]:
    """The distinct addresses in `host:port,host:port`. Raises EarshotError.

    Names that earshot would not advertise are accepted, as Kafka's clients accept them: names with
    underscores, which Compose makes, and names with a trailing dot.
    """
    seeds = dict.fromkeys(
        _seed(address_text.strip()) for address_text in text.split(",") if address_text.strip()
    )
    return tuple(seeds) or (parse_address(text),)


def _seed(text: str) -> Address:
    try:
        return parse_address(text)
    except AddressError:
        host, _, port = text.rpartition(":")
        plain = host.removesuffix(".").replace("_", "x")
        with contextlib.suppress(AddressError):
            return Address(host, parse_address(f"{plain}:{port}").port)
        raise


def stack_contract(project: Project, stack: str) -> Contract:
    """The contract of the last update of ``stack``, from its folder or from Pulumi."""
    file = project.contract_file(stack)
    if file.exists():
        return read_contract(text_of(file), str(file))
    error = EarshotError(
        f"stack {stack_name(stack)}",
        observed=f"has no contract yet: {file} does not exist",
        remedy=f"deploy it (make up STACK={stack_name(stack)}), or name a --contract",
    )
    pulumi = shutil.which("pulumi")
    if pulumi is None:
        error.observed += ", and there is no pulumi on PATH to ask"
        raise error
    command = [pulumi, "stack", "output", "contract", "--json", "--stack", stack]
    quiet: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
    try:
        process = subprocess.run(
            [*command, "--non-interactive"], cwd=project.root, timeout=PULUMI_SECONDS, **quiet
        )
    except subprocess.TimeoutExpired:
        error.observed += f", and `pulumi` did not answer within {PULUMI_SECONDS} s"
        raise error from None
    if process.returncode != 0:
        complaint = " ".join(process.stderr.split()).removeprefix("error: ")
        error.observed += f", and `{' '.join(command[1:])}` says: {complaint}"
        raise error
    return read_contract(process.stdout, "pulumi stack output contract")


def _contract_in(name: str) -> Contract:
    if name == "-":
        try:
            return read_contract(read_all(sys.stdin.buffer).decode("utf-8"), "stdin")
        except OSError as reason:
            raise EarshotError("stdin", observed=f"cannot be read ({reason.strerror})") from None
        except UnicodeDecodeError:
            raise EarshotError("stdin", observed="is no UTF-8 text") from None
    return read_contract(text_of(Path(name)), name)
