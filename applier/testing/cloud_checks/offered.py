# SPDX-License-Identifier: Apache-2.0
"""Skips operations that a cloud does not offer, and runs others to record how they end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import ClassVar

import pytest

from applier.contracts import StopSignal
from applier.errors import ActionFailed
from applier.testing.cloud_checks.cloud_works import TriedOperation

#: The names of all operations.
NAMES = (
    *("live_migrate", "cold_migrate", "resize", "stop", "shelve", "create", "delete"),
    *("service", "power", "suspend", "volume_migrate", "retype"),
)


class Offered:
    """Base class of checks that run operations of a cloud."""

    #: The names of the operations that the cloud does not offer.
    LEFT_OUT: ClassVar[frozenset[str]] = frozenset()
    #: Seconds in which each operation must end.
    PATIENCE_S: ClassVar[float] = 120.0

    def require_offered(self, name: str) -> None:
        """Skip the test if the operation is left out."""
        if name in self.LEFT_OUT:
            pytest.skip(f"this cloud does not offer {name}")

    def end_of(self, work: TriedOperation, stop: StopSignal | None = None) -> BaseException | None:
        """Run an operation; return the exception that it raised, None if it returned.

        Fails the test if it does not end in PATIENCE_S seconds.
        """
        return self.ends_of([work], stop)[0]

    def ends_of(
        self, some: list[TriedOperation], stop: StopSignal | None = None
    ) -> list[Exception | None]:
        """Run operations at the same time; return the exception of each, None if it returned.

        The result is in the order of the operations. Fails the test if one does not end in
        PATIENCE_S seconds.
        """
        ends: list[list[Exception | None]] = [[] for _ in some]
        given = stop or threading.Event()
        threads = [
            threading.Thread(target=_note_end, args=(work.do, given, end), daemon=True)
            for work, end in zip(some, ends, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(self.PATIENCE_S)
        if not all(ends):
            pytest.fail(f"still goes on after {self.PATIENCE_S:g} s")
        return [end[0] for end in ends]


def require_refusal(end: BaseException | None) -> None:
    """Fail the test unless ``end`` is an ActionFailed with a message."""
    if not isinstance(end, ActionFailed) or not str(end).strip():
        pytest.fail(f"ended with {end!r}, not with ActionFailed and a sentence")


def _note_end(
    do: Callable[[StopSignal, Callable[[str], None]], object],
    stop: StopSignal,
    end: list[Exception | None],
) -> None:
    said: list[str] = []
    try:
        do(stop, said.append)
        if not all(isinstance(text, str) for text in said):
            raise TypeError(f"its output is no text: {said!r}")
        end.append(None)
    except Exception as error:  # noqa: BLE001 -- the suite judges whatever a plugin raises
        end.append(error)
