# SPDX-License-Identifier: Apache-2.0
"""Runs a plan by an engine on a checked store, with action types made from functions."""

# Tests are assertions.

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

from checked_store import CheckedStore
from temporary_store import TemporaryStore

from applier.contracts import ActionContext, ActionPlugin, Claimant, RunOptions, StopSignal
from applier.engines.engine import Engine
from applier.engines.environment import ActionEnvironment
from applier.engines.tasks import workerless
from applier.errors import ApplierError
from applier.run.runner import Runner
from planner.plan.model import ActionPlan
from planner.plan.states import OPEN, Outcome, PlanState

if TYPE_CHECKING:
    from applier.storage.sql_store import SqlStore


#: Options of a trial that belong to the action environment; the others belong to the run.
_OF_ACTIONS = {"cloud", "machines", "open_machines", "options", "policies", "pace"}

#: The work of an action: a function of its parameters, its context and its stop signal.
Work = Callable[[Mapping[str, Any], ActionContext, StopSignal], Outcome]

CLAIMANT = Claimant(host="test", pid=1, user="tester")


def plugin(work: Work, action_type: str = "nop") -> type[ActionPlugin]:
    """Return an action type whose ``execute`` calls ``work``."""

    class Scripted(ActionPlugin):
        """An action type that calls a function of a test."""

        TYPE: ClassVar[str] = action_type
        SCHEMA: ClassVar[Mapping[str, Any]] = {"type": "object"}

        def execute(self, stop: StopSignal) -> Outcome:
            return work(self.parameters, self.context, stop)

    return Scripted


def changed(_parameters: Mapping[str, Any], _context: ActionContext, _stop: StopSignal) -> Outcome:
    """Do nothing and return ``changed``."""
    return Outcome.CHANGED


class Trial:
    """One plan in a checked store, ready to run: ``with Trial(plan, engine, work) as trial``.

    Without ``inner``, the plan is saved in a temporary store, which is removed at the end of the
    block. The parameters of each action then contain its ``uuid``, so that one function can do the
    ``work`` of all actions. The attribute ``work`` may be changed before the run. ``plugins`` are
    further action types. The other options are those of the action environment and of
    :class:`applier.run.runner.Runner`.
    """

    def __init__(
        self,
        plan: ActionPlan,
        engine: Engine,
        work: Work = changed,
        *,
        max_workers: int,
        inner: SqlStore | None = None,
        plugins: Mapping[str, type[ActionPlugin]] | None = None,
        **options: Any,
    ) -> None:
        self._more = dict(plugins or {})
        self._own: TemporaryStore | None = None
        if inner is None:
            inner = self._own = TemporaryStore()
            inner.save_plan(_with_uuids(plan))
        self.uuid, self.work = plan.uuid, work
        self._inner, self._max_workers = inner, max_workers
        self.store = CheckedStore(inner, inner.load_plan(plan.uuid), max_workers=max_workers)
        self.store.workerless = workerless(plan.actions, self._plugins())
        of_actions = {name: options.pop(name) for name in _OF_ACTIONS & set(options)}
        given: dict[str, Any] = {
            "request_interval_s": 60.0,
            "heartbeat_interval_s": 60.0,
            "store_patience_s": 0.0,
            **options,
        }
        if policy := given.pop("on_failure", None):
            given["options_of"] = lambda plan: RunOptions(
                max_workers, "default", plan.on_failure or policy, "default"
            )
        environment = ActionEnvironment(
            plugins=self._plugins(), **{"cloud": lambda: None, **of_actions}
        )
        self.runner = Runner(
            store=self.store, engine=engine, environment=environment, claimant=CLAIMANT, **given
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._own is not None:
            self._own.close()

    def _plugins(self) -> dict[str, type[ActionPlugin]]:
        return {"nop": plugin(lambda *given: self.work(*given)), **self._more}

    def again(self, engine: Engine) -> Trial:
        """Return another trial of the same plan in the same store, which must still be open."""
        return Trial(
            self.plan(),
            engine,
            self.work,
            max_workers=self._max_workers,
            inner=self._inner,
            plugins=self._more,
        )

    def run(self) -> PlanState:
        """Run the plan; raise AssertionError if the plan ends and an action has not."""
        state = self.runner.run(self.uuid)
        if state not in (PlanState.PAUSED, PlanState.PENDING):
            left = [u for u, end in self.store.ends.items() if end.state in OPEN]
            assert not left, f"the plan is {state}, and {left} have not ended"
        assert self.plan().state is state
        return state

    def broken(self) -> Exception:
        """Run the plan; return the ApplierError or ArithmeticError of the run; fail without one."""
        try:
            self.runner.run(self.uuid)
        except (ApplierError, ArithmeticError) as error:
            return error
        raise AssertionError("nothing was raised")

    def plan(self) -> ActionPlan:
        """Return the plan as it is recorded."""
        found: ActionPlan = self.store.load_plan(self.uuid)
        return found

    def states(self) -> dict[str, str]:
        """Return the recorded states by the names of the actions."""
        return {a.label: str(a.state) for a in self.plan().actions}

    def messages(self) -> dict[str, str | None]:
        """Return the recorded status messages by the names of the actions."""
        return {a.label: a.status_message for a in self.plan().actions}


def _with_uuids(plan: ActionPlan) -> ActionPlan:
    value = plan.to_dict()
    for action in value["actions"]:
        action["input_parameters"] = {"uuid": action["uuid"], **action["input_parameters"]}
    return ActionPlan.from_dict(value)
