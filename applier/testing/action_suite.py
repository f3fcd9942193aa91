# SPDX-License-Identifier: Apache-2.0
"""The contract of action types, as tests that any project can run on its own types.

In a test module, with pytest::

    from applier.testing.action_suite import ActionContract

    @pytest.fixture
    def action():
        return MyAction

    class TestMyAction(ActionContract):
        def make_context(self, folder):
            return ActionContext(cloud=my_cloud, output=print)

The tests use the ``examples`` of the action's schema. ``execute`` is called only with a stop signal
that is already set: an action that obeys it does not begin its work.
"""

# Tests are assertions.
# ruff: noqa: S101

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from applier.clouds.simulated import SimulatedCloud
from applier.contracts import ActionContext, ActionPlugin, Verified
from applier.errors import ActionFailed, AlreadyDone
from applier.machines import OpenMachines
from applier.testing.action_checks.declaration_checks import DeclarationChecks
from applier.testing.action_checks.odd_parameters import examples_of
from applier.testing.action_checks.planning_checks import PlanningChecks
from planner.plan.states import Outcome

#: Seconds in which an action must end once its stop signal is set.
SOON_S = 5.0


def default_options(action: type[ActionPlugin]) -> dict[str, Any]:
    """Return the values of ``context.options`` when nothing is configured."""
    return {option.dest: option.default for option in action.OPTIONS}


class ActionContract(DeclarationChecks, PlanningChecks):
    """Tests of the action type that the fixture ``action`` returns."""

    def make_context(self, folder: Path) -> ActionContext:
        """Return the context of the action; by default with a simulated cloud in ``folder``.

        Commands are run on this machine, with their jobs in ``folder``.
        """
        cloud = SimulatedCloud(folder / "cloud.json")
        machines = OpenMachines(place=folder / "jobs").of_attempt("plan", "action", 1)
        return ActionContext(cloud=lambda: cloud, output=lambda _: None, machines=machines)

    def _context(self, action: type[ActionPlugin], folder: Path) -> ActionContext:
        """Return the context of :meth:`make_context` with the default values of missing options.

        Its machines are None for a type with USES_MACHINES = False, as in a run.
        """
        context = self.make_context(folder)
        options = {**default_options(action), **context.options}
        machines = context.machines if action.USES_MACHINES else None
        return replace(context, options=options, machines=machines)

    def test_its_precheck_refuses_with_a_sentence(
        self, action: type[ActionPlugin], tmp_path: Path
    ) -> None:
        """A precheck returns, or raises AlreadyDone or ActionFailed with the reason."""
        for example in examples_of(action):
            said = "nothing against it"
            try:
                action(example, self._context(action, tmp_path)).precheck()
            except (AlreadyDone, ActionFailed) as refusal:
                said = str(refusal)
            assert said.strip(), f"{example}: the refusal says nothing"

    def test_looking_whether_it_is_done_gives_an_answer(
        self, action: type[ActionPlugin], tmp_path: Path
    ) -> None:
        """``verify`` works before ``execute``, as after a crash, and returns the same twice."""
        for example in examples_of(action):
            work = action(example, self._context(action, tmp_path))
            found = work.verify()
            assert isinstance(found, Verified), f"{example}: verified as {found!r}"
            assert work.verify() is found, f"{example}: looking changed the answer"

    def test_looking_whether_it_is_undone_gives_an_answer(
        self, action: type[ActionPlugin], tmp_path: Path
    ) -> None:
        """``verify_revert`` returns the same twice, and not DONE together with ``verify``."""
        for example in examples_of(action):
            work = action(example, self._context(action, tmp_path))
            found = work.verify_revert()
            assert isinstance(found, Verified), f"{example}: verified as {found!r}"
            assert work.verify_revert() is found, f"{example}: looking changed the answer"
            is_done = work.verify() is Verified.DONE
            assert not is_done or found is not Verified.DONE, f"{example}: both done and undone"

    def test_where_its_commands_run_is_said(self, action: type[ActionPlugin]) -> None:
        """``runs_on`` returns the same addresses or None each time; nothing without machines."""
        for example in examples_of(action):
            places = action.runs_on(example)
            assert all(p is None or isinstance(p, str) for p in places), f"{example}: {places!r}"
            assert action.runs_on(example) == places, f"{example}: it names other machines"
            assert action.USES_MACHINES or not places, f"{example}: it says that it uses none"

    def test_an_abort_that_comes_at_any_time_does_no_harm(
        self, action: type[ActionPlugin], tmp_path: Path
    ) -> None:
        """``abort`` raises no error before ``execute`` is called, nor after it ended."""
        for example in examples_of(action):
            action(example, self._context(action, tmp_path)).abort()
            work = action(example, self._context(action, tmp_path))
            _execute_with_stop(work)
            work.abort()

    def test_what_cannot_be_undone_says_so(
        self, action: type[ActionPlugin], tmp_path: Path
    ) -> None:
        """``revert`` raises ActionFailed with a sentence if the type is not REVERTIBLE."""
        assert isinstance(action.REVERTIBLE, bool), "REVERTIBLE is True or False"
        stop = threading.Event()
        stop.set()
        for example in examples_of(action):
            work = action(example, self._context(action, tmp_path))
            ends: list[object] = []
            _note_end(lambda: work.revert(stop), ends)  # noqa: B023 - called at once
            (end,) = ends
            if not action.REVERTIBLE:
                assert isinstance(end, ActionFailed), f"{example}: reverted with {end!r}"
            assert isinstance(end, Outcome | ActionFailed), f"{example}: reverted with {end!r}"
            assert str(end).strip(), f"{example}: the refusal says nothing"

    def test_a_stop_that_is_set_ends_it_soon(
        self, action: type[ActionPlugin], tmp_path: Path
    ) -> None:
        """With the stop signal set, ``execute`` returns an outcome or raises ActionFailed soon."""
        for example in examples_of(action):
            ends = _execute_with_stop(action(example, self._context(action, tmp_path)))
            assert ends, f"{example}: still runs {SOON_S:g} s after its stop was set"
            end = ends[0]
            assert isinstance(end, Outcome | ActionFailed), f"{example}: ended with {end!r}"
            assert str(end).strip(), f"{example}: the failure says nothing"


def _execute_with_stop(work: ActionPlugin) -> list[object]:
    """Call ``execute`` with a stop that is set; return how it ended, or [] if it still runs."""
    stop, ends = threading.Event(), list[object]()
    stop.set()
    call = partial(_note_end, lambda: work.execute(stop), ends)
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(SOON_S)
    return ends


def _note_end(call: Callable[[], object], ends: list[object]) -> None:
    try:
        ends.append(call())
    except Exception as error:  # noqa: BLE001 -- the suite judges whatever a plugin raises
        ends.append(error)
