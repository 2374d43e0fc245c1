"""Files that `make mutants` leaves out, and maps that it rejects."""

from pathlib import Path
from typing import Any

import pytest

from tests.mutants import __main__ as command
from tests.mutants import reach, runs
from tests.mutants.__main__ import REAL
from tests.raised import raised
from toolchain.paths import ROOT


@pytest.mark.parametrize("file", REAL)
def test_what_is_left_out_is_there(file: str) -> None:
    assert (ROOT / file).is_file()


@pytest.mark.parametrize("code", [pytest.ExitCode.INTERNAL_ERROR, None])
def test_tests_that_ended_early_leave_no_map(
    code: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = tmp_path / "reach" / reach.SESSION

    def run(root: Path, arguments: list[str], log: Path, *options: Any) -> int | None:
        session.write_text("{}")
        log.write_text("INTERNALERROR> why\n")
        return code

    monkeypatch.setattr(command, "copy", lambda root, to: None)
    monkeypatch.setattr(command, "_files", list)
    monkeypatch.setattr(runs, "run", run)
    error = raised(SystemExit, command._map, tmp_path, session.parent)
    assert str(error) == "the unit tests did not run to their end:\nINTERNALERROR> why\n"
    assert not session.exists()
