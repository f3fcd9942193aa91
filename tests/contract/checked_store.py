# SPDX-License-Identifier: Apache-2.0
"""A store that checks the commits of an engine.

Every decision of an engine is in its commits. At each commit, :class:`CheckedStore` asserts that an
action starts only once, after all its predecessors have ended, with its needs met, and within the
limits.
"""

# Tests are assertions.

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from applier.contracts import Report, Request
from applier.scheduling.failures import OnFailure
from applier.scheduling.verdict import ActionEnd
from planner.plan.model import JOIN, Action, ActionPlan
from planner.plan.states import OPEN, WELL, ActionState

if TYPE_CHECKING:
    from applier.storage.sql_store import SqlStore


class CheckedStore:
    """Passes every call on to another store; raises AssertionError when a commit breaks a rule.

    ``commits`` are the batches that were committed, ``started`` the uuids of the actions in the
    order of their starts, ``peak`` is the largest number of actions that ran at once.

    ``before_commit`` is called with each batch before it is passed on; a test may raise the errors
    of a broken store there. ``heard`` is set when the run reads requests again after it has read
    one. ``needed`` says whether needs are checked. ``workerless`` are the uuids of the actions that
    do not count against ``max_workers``. A test may change the last two.
    """

    def __init__(self, inner: SqlStore, plan: ActionPlan, *, max_workers: int) -> None:
        self._inner, self.max_workers = inner, max_workers
        self._actions = {a.uuid: a for a in plan.actions}
        self.needed = plan.on_failure != OnFailure.CONTINUE
        self.workerless: Collection[str] = ()
        self._limits = plan.limits
        # Actions that an earlier run left ONGOING count until they are settled.
        left = [a for a in plan.actions if a.state is ActionState.ONGOING]
        self._held = Counter(token for a in left for token in set(a.tokens))
        self._running = {a.uuid for a in left}
        self.ends = {a.uuid: ActionEnd(a.state, a.outcome) for a in plan.actions}
        self.heard = threading.Event()
        self.commits: list[list[Report]] = []
        self.started: list[str] = []
        self.peak = 0
        self.before_commit: Callable[[Sequence[Report]], None] = lambda _: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def requests(self, plan: str, after: int = 0) -> list[Request]:
        """Pass the call on; set ``heard`` if ``after`` shows that a request was read before."""
        if after:
            self.heard.set()
        return self._inner.requests(plan, after)

    def commit(self, uuid: str, claim: str, reports: Sequence[Report], *, now: datetime) -> None:
        """Pass the batch on, then check it; raise AssertionError if it breaks a rule."""
        self.before_commit(reports)
        self._inner.commit(uuid, claim, reports, now=now)
        self.commits.append(list(reports))
        for report in reports:
            action = self._actions[report.uuid]
            assert self.ends[report.uuid].state is report.old, f"{report} came twice"
            self.ends[report.uuid] = ActionEnd(report.state, report.outcome)
            if action.action_type == JOIN:
                continue
            if report.old is ActionState.ONGOING:
                self._running.remove(report.uuid)
                if not report.given_up:
                    self._held.subtract(set(action.tokens))
            if report.state is ActionState.ONGOING and report.old is ActionState.UNKNOWN:
                self._running.add(report.uuid)  # its command goes on, whatever the limits are now
                self._held.update(set(action.tokens))
            elif report.state is ActionState.ONGOING:
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
