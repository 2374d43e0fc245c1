from __future__ import annotations

import pickle

from earshot.errors import AddressError, EarshotError, SpecError

FULL = EarshotError("port 0", observed="is not usable", allowed="1 to 65535", remedy="choose one")


def test_a_message_names_object_finding_allowance_and_remedy() -> None:
    assert str(FULL) == "port 0: is not usable\n  allowed: 1 to 65535\n  fix: choose one"
    assert FULL.line == "port 0: is not usable; allowed: 1 to 65535; fix: choose one"
    assert str(EarshotError("port 0")) == "port 0"
    assert FULL.exit_code == 2


def test_an_error_survives_a_process_boundary() -> None:
    for error in (FULL, AddressError("host 'a_b'", observed="x"), SpecError.of("file", ["a", "b"])):
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), str(copy)) == (type(error), str(error))


def test_several_problems_stand_in_one_message() -> None:
    assert str(SpecError.of("file", ["one: x"])) == "file: one: x"
    assert str(SpecError.of("file", ["one: x", "two: y"])) == "file:\n  - one: x\n  - two: y"
