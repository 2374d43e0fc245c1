"""Ends: by the clock, by order, and by SIGTERM."""

import os
import signal
import threading

import pytest

from earshot.validation.deadline import Deadline, unwinding_on_sigterm


def test_time_left_is_bounded_by_the_limit_and_never_negative() -> None:
    assert Deadline(100).left(2.0) == 2.0
    assert 0 < Deadline(1.0).left() <= 1.0
    assert Deadline(-1).left() == 0.0


def test_a_stopped_run_has_no_time_left() -> None:
    end = Deadline(100)
    end.stop.set()
    assert end.left() == end.left(5.0) == 0.0


def test_sigterm_unwinds_and_the_default_returns() -> None:
    cleared = []
    with pytest.raises(SystemExit) as caught, unwinding_on_sigterm():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            signal.pause()
        finally:
            cleared.append(True)
    assert caught.value.code == 143
    assert cleared == [True]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_handler_of_the_program_stays() -> None:
    got = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: got.append(number))
    try:
        with unwinding_on_sigterm():
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert got == [signal.SIGTERM]


def test_other_threads_change_no_handler() -> None:
    seen = []

    def inside() -> None:
        with unwinding_on_sigterm():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert seen == [signal.SIG_DFL]
