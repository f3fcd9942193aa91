# SPDX-License-Identifier: Apache-2.0
"""The base class of action types that bring something in a cloud into a state."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from applier.contracts import ActionPlugin, StopSignal, Verified
from planner.plan.states import Outcome


class StateChange(ActionPlugin):
    """Brings an instance, a host or a volume into a state, and if REVERTIBLE into the one before.

    Safe to run again, because the precheck finds that the state is there, and safe while another
    attempt is at work, because the cloud follows a change that is under way or refuses a second.
    """

    USES_CLOUD: ClassVar[bool] = True
    USES_MACHINES: ClassVar[bool] = False
    RERUN_SAFE: ClassVar[bool] = True
    JOINS_WORK: ClassVar[bool] = True
    #: The field with the state, in what the cloud tells about it.
    FIELD: ClassVar[str]

    @abstractmethod
    def _wanted(self) -> Any:
        """Return the state that it is to have."""

    def _before(self) -> Any:
        """Return the state that undoes it; only types that are REVERTIBLE define this."""
        raise NotImplementedError

    @abstractmethod
    def _known(self) -> Mapping[str, Any] | None:
        """Return what the cloud tells about it; None if it is gone."""

    def _has(self, known: Mapping[str, Any], state: Any) -> bool:
        """Return whether it has a state, and no task of the cloud runs on it."""
        return bool(known[self.FIELD] == state and known.get("task") is None)

    def _look(self, state: Any) -> Verified:
        """Return DONE if it has the state and nothing works on it, IN_DOUBT if it is gone."""
        known = self._known()
        if known is None:
            return Verified.IN_DOUBT
        return Verified.DONE if self._has(known, state) else Verified.NOT_DONE

    @abstractmethod
    def _change(self, state: Any, stop: StopSignal) -> None:
        """Give it the state."""

    def execute(self, stop: StopSignal) -> Outcome:
        self._change(self._wanted(), stop)
        return Outcome.CHANGED

    def verify(self) -> Verified:
        return self._look(self._wanted())

    def revert(self, stop: StopSignal) -> Outcome:
        if not self.is_revertible(self.parameters):
            return super().revert(stop)
        before = self._before()
        if self._look(before) is Verified.DONE:
            return Outcome.OK
        self._change(before, stop)
        return Outcome.CHANGED

    def verify_revert(self) -> Verified:
        if not self.is_revertible(self.parameters):
            return super().verify_revert()
        return self._look(self._before())
