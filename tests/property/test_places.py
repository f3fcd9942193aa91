# SPDX-License-Identifier: Apache-2.0
"""Never more nodes than their limit between first begin and last end, whatever happens to a run.

The places are counted here from starts and ends alone, over failures, hanging actions, skips,
changed limits, pauses and resumes.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from applier.contracts import Report, Request
from applier.run.resume import to_reset
from applier.scheduling import waiting
from applier.scheduling.concurrency import Concurrency
from applier.scheduling.decisions import Decisions
from applier.scheduling.failures import FailureRules
from applier.scheduling.scheduler import Scheduler
from applier.scheduling.verdict import ends
from planner.plan.model import Action, ActionPlan
from planner.plan.place_rules import HeldPlace, PlaceRule
from planner.plan.states import OPEN, WELL, ActionState, Outcome, PlanState

TOKEN = "serial:patch"  # noqa: S105
RUNS = settings(max_examples=examples(200), suppress_health_check=[HealthCheck.too_slow])


@dataclass
class Rollout:
    """A rollout under way: the states of its actions, as a record has them, over several runs."""

    actions: dict[str, Action]
    limit: int
    rule: PlaceRule
    given_up: set[str] = field(default_factory=set)
    #: The nodes that had begun when a pause or cancel let them finish.
    finishing: list[str] | None = None

    def members(self) -> dict[str, list[Action]]:
        """Return the actions of each node."""
        found: dict[str, list[Action]] = {}
        for action in self.actions.values():
            found.setdefault(action.places[0].member, []).append(action)
        return found

    def under_way(self) -> list[str]:
        """Return the nodes that have begun and are not back in service."""
        return [
            name
            for name, own in self.members().items()
            if any(a.attempts for a in own)
            and (
                any(a.state in OPEN for a in own)
                or any(a.uuid in self.given_up for a in own)
                or (self.rule.keep and any(a.state not in WELL for a in own))
            )
        ]

    def begun(self) -> list[str]:
        """Return the nodes of which an action has started."""
        return [name for name, own in self.members().items() if any(a.attempts for a in own)]

    def half_done(self) -> list[str]:
        """Return the nodes that have begun and have open actions."""
        members = self.members()
        return [n for n in self.begun() if any(a.state in OPEN for a in members[n])]

    def allowed(self) -> int:
        """Return how many may be under way: the limit widens as nodes end well."""
        well = sum(all(a.state in WELL for a in own) for own in self.members().values())
        return max([self.limit, *(w for after, w in self.rule.widens if after <= well)])

    def take(self, decisions: Decisions, reports: Collection[Report]) -> None:
        """Note what ended, then what starts; a node that begins must have a place."""
        for report in (*reports, *decisions.ended):
            self.actions[report.uuid] = replace(self.actions[report.uuid], state=report.state)
            if report.given_up:
                self.given_up.add(report.uuid)
        for uuid in decisions.starts:
            action = self.actions[uuid]
            begins = action.places[0].member not in self.under_way()
            self.actions[uuid] = replace(
                action, state=ActionState.ONGOING, attempts=action.attempts + 1
            )
            if begins:
                assert self.finishing is None, f"{uuid} begins after a pause"
                assert len(self.under_way()) <= self.allowed(), f"{uuid} begins beyond the limit"
                failed = sum(
                    all(a.state not in OPEN for a in own) and any(a.state not in WELL for a in own)
                    for own in self.members().values()
                )
                assert self.rule.stop_after is None or failed <= self.rule.stop_after


def scheduler(rollout: Rollout, max_workers: int) -> Scheduler:
    actions = list(rollout.actions.values())
    return Scheduler(
        actions,
        waiting.links(actions, waiting.completed(actions, ends(actions))),
        Concurrency(
            limits={TOKEN: rollout.limit, "type:x": 1},
            max_workers=max_workers,
            places={TOKEN: rollout.rule},
        ),
        FailureRules(),
        given_up=rollout.given_up,
    )


def rollout(nodes: int, steps: int, limit: int, rule: PlaceRule, narrow: bool) -> Rollout:
    """Return a rollout of chains of needs; with ``narrow``, one step is limited to one at once."""
    actions = {}
    for n in range(nodes):
        for s in range(steps):
            uuid = f"{n}/{s}"
            actions[uuid] = Action(
                uuid=uuid,
                action_type="nop",
                needs=(f"{n}/{s - 1}",) if s else (),
                tokens=("type:x",) if narrow and s == steps - 1 else (),
                places=(HeldPlace(TOKEN, str(n)),),
            )
    return Rollout(actions, limit, rule)


def report(uuid: str, how: str) -> Report:
    states = {
        "well": (ActionState.SUCCEEDED, Outcome.CHANGED),
        "fails": (ActionState.FAILED, Outcome.FAILED),
    }
    state, outcome = states.get(how, (ActionState.UNKNOWN, None))
    return Report(
        uuid=uuid,
        old=ActionState.ONGOING,
        state=state,
        outcome=outcome,
        given_up=how == "hangs",
    )


HALTS = ["pause", "pause-now", "cancel", "cancel-now"]


def one_run(under: Rollout, data: st.DataObject, workers: int, hows: list[str]) -> None:
    """Drive a run to its end or to a pause; none but ``--now`` leaves a node half done."""
    under.finishing, at_once = None, False
    run = scheduler(under, workers)
    under.take(run.begin(), ())
    for turn in range(1000):
        if run.done:
            if under.finishing is not None and not (at_once or under.given_up):
                assert not under.half_done()
            return
        ended = data.draw(st.lists(st.sampled_from(sorted(run.running)), min_size=1, unique=True))
        reports = [report(uuid, data.draw(st.sampled_from(hows))) for uuid in ended]
        asked = []
        if turn < 20 and data.draw(st.integers(0, 9)) == 0:
            verb = data.draw(st.sampled_from([*HALTS, "skip", "limit"]))
            at_once = at_once or verb.endswith("-now")
            if verb in HALTS and under.finishing is None:
                under.finishing = under.begun()
            if verb == "limit":
                number = data.draw(st.integers(under.limit, 4))
                asked = [Request(verb="limit", who="t", limits={TOKEN: number})]
                under.limit = number
                under.rule = under.rule._replace(widens=())
            else:
                which = data.draw(st.sampled_from(sorted(under.actions)))
                asked = [Request(verb=verb, who="t", action=which if verb == "skip" else None)]
        under.take(run.decide(reports, asked), reports)
    raise AssertionError("the plan does not end")


def reset(under: Rollout) -> None:
    """Resume: what failed goes back to PENDING, what hung was settled by hand."""
    plan = ActionPlan(
        uuid="p",
        planner="rollout",
        actions=tuple(under.actions.values()),
        state=PlanState.PAUSED
        if any(a.state in OPEN for a in under.actions.values())
        else PlanState.FAILED,
    )
    for uuid in to_reset(plan):
        under.actions[uuid] = replace(
            under.actions[uuid], state=ActionState.PENDING, state_reason=None
        )
    for uuid in under.given_up:
        under.actions[uuid] = replace(under.actions[uuid], state=ActionState.SUCCEEDED)
    under.given_up.clear()


rules = st.builds(
    PlaceRule,
    keep=st.booleans(),
    stop_after=st.sampled_from([None, None, 0, 1]),
    widens=st.sampled_from([(), (), ((1, 3), (4, 5))]),
)


@RUNS
@given(
    data=st.data(),
    nodes=st.integers(1, 8),
    steps=st.integers(1, 4),
    limit=st.integers(1, 3),
    workers=st.integers(1, 6),
    rule=rules,
    narrow=st.booleans(),
)
def test_never_more_than_the_limit_between_first_begin_and_last_end(
    data: st.DataObject,
    nodes: int,
    steps: int,
    limit: int,
    workers: int,
    rule: PlaceRule,
    narrow: bool,
) -> None:
    under = rollout(nodes, steps, limit, rule, narrow)
    for _ in range(4):
        one_run(under, data, workers, ["well", "well", "well", "fails", "hangs"])
        reset(under)
    under.rule = rule._replace(stop_after=None)
    one_run(under, data, workers, ["well"])
    reset(under)
    one_run(under, data, workers, ["well"])


@RUNS
@given(nodes=st.integers(1, 12), steps=st.integers(1, 4), limit=st.integers(1, 4), data=st.data())
def test_the_next_node_begins_as_soon_as_one_has_ended(
    nodes: int, steps: int, limit: int, data: st.DataObject
) -> None:
    under = rollout(nodes, steps, limit, PlaceRule(), narrow=False)
    run = scheduler(under, max_workers=nodes)
    under.take(run.begin(), ())
    while not run.done:
        left = [own for own in under.members().values() if any(a.state in OPEN for a in own)]
        assert len(under.under_way()) == min(limit, len(left))
        uuid = data.draw(st.sampled_from(sorted(run.running)))
        ended = [report(uuid, "well")]
        under.take(run.decide(ended, ()), ended)
    assert all(a.state is ActionState.SUCCEEDED for a in under.actions.values())
