# SPDX-License-Identifier: Apache-2.0
"""One plan, one engine, and a store that checks what the engine does to it: for tests.

Whatever an engine does, it shows in its commits: :class:`CheckedStore` asserts at each that an
action starts once, after all before it has ended, with its needs met, and within the limits.
"""

# Tests are assertions.
# ruff: noqa: S101

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar

from applier.contracts import ActionContext, ActionPlugin, Claimant, Report, Request, StopSignal
from applier.engines import Engine
from applier.engines.environment import ActionEnvironment
from applier.engines.tasks import workerless
from applier.errors import ApplierError
from applier.run.runner import Runner
from applier.run.setup import RunSetup
from applier.scheduling.verdict import End, OnFailure
from applier.storage.memory import MemoryStore
from applier.store import Store
from planner.model import JOIN, Action, ActionPlan
from planner.states import OPEN, WELL, ActionState, Outcome, PlanState

#: Options of a trial that go to the environment of its actions, and not to the runner.
_OF_ACTIONS = {"cloud", "machines", "options", "policies", "pace"}

#: What an action does when it runs: its parameters (``uuid`` among them), its context, its stop.
Work = Callable[[Mapping[str, Any], ActionContext, StopSignal], Outcome]

CLAIMANT = Claimant(host="test", pid=1, user="tester")


class CheckedStore:
    """Passes everything on to another store; raises AssertionError when a commit breaks a rule.

    ``commits`` holds what was committed, ``started`` the actions in the order of their starts,
    ``peak`` how many ran at once. ``before_commit`` is called with each batch before it is passed
    on: a test may raise there what a broken store raises. ``heard`` is set once the engine's side
    has come for more requests, so that those before are on their way. ``needed`` says whether needs
    hold; ``workerless`` are the actions that do not count against ``max_workers``, which a test
    may change as a request does.
    """

    def __init__(self, inner: Store, plan: ActionPlan, *, max_workers: int) -> None:
        self._inner, self.max_workers = inner, max_workers
        self._actions = {a.uuid: a for a in plan.actions}
        self.needed = plan.on_failure != OnFailure.CONTINUE
        self.workerless: Collection[str] = ()
        self._limits = plan.limits
        # What was cut off in an earlier run counts until it is settled.
        left = [a for a in plan.actions if a.state is ActionState.ONGOING]
        self._held = Counter(token for a in left for token in set(a.tokens))
        self._running = {a.uuid for a in left}
        self.ends = {a.uuid: End(a.state, a.outcome) for a in plan.actions}
        self.heard = threading.Event()
        self.commits: list[list[Report]] = []
        self.started: list[str] = []
        self.peak = 0
        self.before_commit: Callable[[Sequence[Report]], None] = lambda _: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def requests(self, plan: str, after: int = 0) -> list[Request]:
        """Pass it on; who asks for what comes after a request has that request."""
        if after:
            self.heard.set()
        return self._inner.requests(plan, after)

    def commit(self, uuid: str, claim: str, reports: Sequence[Report], *, now: datetime) -> None:
        """Check the batch, then pass it on."""
        self.before_commit(reports)
        self._inner.commit(uuid, claim, reports, now=now)
        self.commits.append(list(reports))
        for report in reports:
            action = self._actions[report.uuid]
            assert self.ends[report.uuid].state is report.old, f"{report} came twice"
            self.ends[report.uuid] = End(report.state, report.outcome)
            if action.action_type == JOIN:
                continue
            if report.old is ActionState.ONGOING:
                self._running.remove(report.uuid)
                if not report.given_up:
                    self._held.subtract(set(action.tokens))
            if report.state is ActionState.ONGOING:
                self._start(action)
        self.peak = max(self.peak, len(self._running))

    def _start(self, action: Action) -> None:
        self.started.append(action.uuid)
        self._running.add(action.uuid)
        self._held.update(set(action.tokens))
        busy = len(self._running.difference(self.workerless))
        assert busy <= self.max_workers, "more run at once than there are workers"
        for token in action.tokens:
            limit = self._limits.get(token, self._limits.get(f"{token.split(':')[0]}:*"))
            assert limit is None or self._held[token] <= limit, f"{token} is held too often"
        for uuid in action.before():
            assert self.ends[uuid].state not in OPEN, f"{action.uuid} started before {uuid} ended"
        if self.needed:
            for group in [*((u,) for u in action.needs), *action.needs_any]:
                well = any(self.ends[u].state in WELL for u in group)
                assert well, f"{action.uuid} started, and what it needs of {group} did not end well"


def plugin(work: Work, action_type: str = "nop") -> type[ActionPlugin]:
    """Make an action type that does ``work``."""

    class Scripted(ActionPlugin):
        """Does what a test wants."""

        TYPE: ClassVar[str] = action_type
        SCHEMA: ClassVar[Mapping[str, Any]] = {"type": "object"}

        def execute(self, stop: StopSignal) -> Outcome:
            return work(self.parameters, self.context, stop)

    return Scripted


def changed(_parameters: Mapping[str, Any], _context: ActionContext, _stop: StopSignal) -> Outcome:
    """Do nothing, and say that something changed."""
    return Outcome.CHANGED


class Trial:
    """One plan in a checked store, ready to run: ``Trial(plan, engine, work).run()``.

    Each action's parameters get its ``uuid``, so that one function can do the ``work`` of all; it
    may be set later. ``plugins`` are further action types. What else is given goes to the
    :class:`applier.run.runner.Runner`.
    """

    def __init__(
        self,
        plan: ActionPlan,
        engine: Engine,
        work: Work = changed,
        *,
        max_workers: int,
        inner: Store | None = None,
        plugins: Mapping[str, type[ActionPlugin]] | None = None,
        **options: Any,
    ) -> None:
        self._more = dict(plugins or {})
        if inner is None:
            inner = MemoryStore()
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
        environment = ActionEnvironment(
            plugins=self._plugins(), **{"cloud": lambda: None, **of_actions}
        )
        setup = RunSetup(
            store=self.store, engine=engine, environment=environment, claimant=CLAIMANT, **given
        )
        self.runner = Runner(setup)

    def _plugins(self) -> dict[str, type[ActionPlugin]]:
        return {"nop": plugin(lambda *given: self.work(*given)), **self._more}

    def again(self, engine: Engine) -> Trial:
        """Make a trial that goes on with the same plan in the same store."""
        return Trial(
            self.plan(),
            engine,
            self.work,
            max_workers=self._max_workers,
            inner=self._inner,
            plugins=self._more,
        )

    def run(self) -> PlanState:
        """Run it; every action of a plan that has ended must have ended as well."""
        state = self.runner.run(self.uuid)
        if state not in (PlanState.PAUSED, PlanState.PENDING):
            left = [u for u, end in self.store.ends.items() if end.state in OPEN]
            assert not left, f"the plan is {state}, and {left} have not ended"
        assert self.plan().state is state
        return state

    def broken(self) -> Exception:
        """Run it; give what is raised, which must be something."""
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
