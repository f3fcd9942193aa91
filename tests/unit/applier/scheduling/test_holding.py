# SPDX-License-Identifier: Apache-2.0
"""Actions that are held back although they could start: no tokens, no dead ends."""

from __future__ import annotations

from dataclasses import replace

from applier.contracts import Report, Request
from applier.scheduling import order
from applier.scheduling.decisions import WaitKind
from applier.scheduling.scheduler import Scheduler
from applier.scheduling.submissions import Concurrency
from applier.testing.sample_plans import new_plan
from planner.plan.states import ActionState, Outcome


class Held:
    """Holds the actions of these names."""

    def __init__(self, *names):
        self.names, self.told = set(names), []

    def holds(self, action, *, begins):
        return action.name in self.names

    def again_s(self):
        return 1.0

    def ended(self):
        pass

    def tell(self, number):
        self.told.append(number)


def scheduler(holding, *names, tokens=(), limits=None, max_workers=9):
    actions = [replace(a, parents=(), tokens=tokens) for a in new_plan(*names).actions]
    made = Scheduler(
        actions,
        order.links(actions, ()),
        Concurrency(limits=limits or {}, max_workers=max_workers),
        holding=holding,
    )
    return made, {a.name: a.uuid for a in actions}


def done(uuid):
    return Report(
        uuid=uuid,
        old=ActionState.ONGOING,
        state=ActionState.SUCCEEDED,
        outcome=Outcome.CHANGED,
    )


def test_what_is_held_takes_no_token_from_others():
    held = Held("a")
    made, uuids = scheduler(held, "a", "b", tokens=("node:c",), limits={"node:*": 1})
    assert made.begin().starts == [uuids["b"]]
    assert len(made.held) == 1
    assert made.why(uuids["a"]).kind is WaitKind.WINDOW
    assert made.decide([done(uuids["b"])]).starts == []
    assert not made.done
    held.names.clear()
    assert made.decide([], reopened=True).starts == [uuids["a"]]
    assert made.decide([done(uuids["a"])]).ended == []
    assert made.done


def test_what_is_still_held_waits_on():
    held = Held("a", "b")
    made, uuids = scheduler(held, "a", "b")
    assert made.begin().starts == []
    held.names.remove("b")
    assert made.decide([], reopened=True).starts == [uuids["b"]]
    assert len(made.held) == 1


def test_what_is_held_is_skipped_and_cancelled_like_any_other():
    made, uuids = scheduler(Held("a", "b"), "a", "b")
    made.begin()
    skip = Request(verb="skip", who="ada", action=uuids["a"])
    (report,) = made.decide([], [skip]).ended
    assert report.state is ActionState.SKIPPED
    (report,) = made.decide([], [Request(verb="cancel", who="ada")]).ended
    assert (report.uuid, report.state) == (uuids["b"], ActionState.CANCELLED)
    assert made.done
