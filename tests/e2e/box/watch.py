"""Keeps instances and balancers of a box equal to its moto server's, while a block lasts."""

from __future__ import annotations

import threading
import traceback
from typing import Protocol, Self

from tests.doubles.aws.cloud import ClientError
from tests.doubles.aws.server import MotoServer
from tests.e2e.box.balancers import Balancers
from tests.e2e.box.fleet import Fleet
from tests.e2e.box.state import MotoState, read_state

LOOK_SECONDS = 1.0
"""Seconds between two reads of moto's state: six requests, which cost both processes 70 ms, and
more with a balancer."""


class Follower(Protocol):
    """A part outside the brokers' VPC that follows moto."""

    def follow(self, moto_state: MotoState) -> None: ...


class Watch:
    """A context: within it a thread follows moto. At its end all parts are switched off."""

    def __init__(self, server: MotoServer, fleet: Fleet, balancers: Balancers) -> None:
        self._server, self._fleet, self._balancers = server, fleet, balancers
        self.followers: list[Follower] = []
        """Parts outside the brokers' VPC."""
        self._changed = threading.Condition()
        self._begun = self._done = 0
        self._over = False
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="cloud in a box", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        with self._changed:
            self._over = True
            self._changed.notify_all()
        self._thread.join()
        self._balancers.close()
        self._fleet.close()
        if self._failed is not None and kind is None:
            raise self._failed

    def settle(self, seconds: float) -> None:
        """Waits until the box matches the state that moto had at the call. Raises its error."""
        with self._changed:
            wanted_look = self._begun + 1
            is_done = self._changed.wait_for(
                lambda: self._done >= wanted_look or self._failed, seconds
            )
            if self._failed is not None:
                raise self._failed
            assert is_done, f"the box is not in step after {seconds:.0f} s: {self._fleet.remaining}"

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._changed.wait_for(lambda: self._over, LOOK_SECONDS):
                    return
                self._begun += 1
            try:
                moto_state = read_state(self._server)
                for follower in list(self.followers):
                    follower.follow(moto_state)
                self._balancers.follow(moto_state)
                self._fleet.follow(moto_state)
            except ClientError:
                continue  # something went between two questions
            except BaseException as error:
                traceback.print_exception(error)  # now: who waits for an instance waits for nothing
                with self._changed:
                    self._failed = error
                    self._changed.notify_all()
                return
            with self._changed:
                self._done = self._begun
                self._changed.notify_all()
