# SPDX-License-Identifier: Apache-2.0
"""Deployments of so many nodes at a time: the number is kept, and no plan gets stuck."""

from __future__ import annotations

from typing import Any

from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from applier.contracts import Report
from applier.scheduling import order
from applier.scheduling.decisions import Decisions
from applier.scheduling.scheduler import Scheduler
from applier.scheduling.submissions import Concurrency
from planner.errors import PlannerError
from planner.model import ActionPlan
from planner.planners.deployment import message
from planner.planners.deployment.planner import DeploymentPlanner
from planner.states import ActionState, Outcome
from planner.testing import plan

ROLES = ("web", "db")
TASKS = ("a", "b", "c", "d", "e")

names = st.lists(st.sampled_from(TASKS), min_size=1, max_size=3, unique=True)
crosses = st.fixed_dictionaries(
    {
        "name": st.sampled_from(TASKS),
        "role": st.sampled_from(["*", "self", *ROLES]),
        "policy": st.sampled_from(["all", "any"]),
    }
)
blocks = st.lists(
    st.fixed_dictionaries({"tasks": names, "nodes": st.integers(1, 3)}), min_size=1, max_size=2
)
serials = st.one_of(
    st.integers(1, 3),
    st.dictionaries(st.sampled_from(ROLES), st.integers(1, 3), min_size=1),
    blocks,
)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a deployment whose tasks depend on earlier ones, on the same node or on others."""
    tasks: list[dict[str, Any]] = []
    for name in TASKS[: draw(st.integers(1, 5))]:
        earlier = [t["id"] for t in tasks]
        task: dict[str, Any] = {"id": name, "type": "anchor"}
        task["requires"] = [t for t in earlier if draw(st.booleans())]
        if draw(st.integers(0, 9)):
            task |= {"type": "shell", "version": "2.0.0", "parameters": {"cmd": "x"}}
            task["role"] = draw(st.sampled_from(["*", *ROLES]))
            cross = draw(st.lists(crosses, max_size=2))
            task["cross-depends"] = [c for c in cross if c["name"] in earlier]
        tasks.append(task)
    serial = draw(serials)
    if isinstance(serial, list):
        serial = [{**block, "name": f"block-{i}"} for i, block in enumerate(serial)]
    nodes = [
        {"uid": str(n), "roles": draw(st.sampled_from([["web"], ["db"], ["web", "db"]]))}
        for n in range(draw(st.integers(1, 6)))
    ]
    document = {"kind": "deployment", "name": "p", "serial": serial, "tasks": tasks, "nodes": nodes}
    if draw(st.booleans()):
        document["only"] = {"nodes": [n["uid"] for n in nodes if draw(st.booleans())]}
    return document


def made_of(document: dict[str, Any]) -> ActionPlan | None:
    """Return the plan; None if it is refused because of who would wait for whom."""
    try:
        return plan(DeploymentPlanner, document, check_types=False)
    except PlannerError as refused:
        if any(text in str(refused) for text in ("wait for each other", "a deadlock", "a cycle")):
            return None
        raise


class Watched:
    """Who is between first begin and last end, counted from what starts and ends alone."""

    def __init__(self, made: ActionPlan) -> None:
        self._plan = made
        self._left: dict[tuple[str, str], set[str]] = {}
        for action in made.actions:
            for place in action.places:
                self._left.setdefault(place, set()).add(action.uuid)
        self._begun: set[tuple[str, str]] = set()
        self._failed: set[tuple[str, str]] = set()
        self._places = {action.uuid: action.places for action in made.actions}

    def take(self, decisions: Decisions, reports: list[Report]) -> None:
        """Note what ended, then what starts, and count."""
        for report in (*reports, *decisions.ended):
            for place in self._places[report.uuid]:
                self._left[place].discard(report.uuid)
                if report.state is ActionState.FAILED:
                    self._failed.add(place)
        for uuid in decisions.starts:
            for place in self._places[uuid]:
                self._begun.add(place)
                busy = [
                    p
                    for p in self._begun
                    if p[0] == place[0] and (self._left[p] or p in self._failed)
                ]
                assert len(busy) <= self._plan.limits[place[0]], f"{uuid} beside {busy}"


@settings(max_examples=examples(400), suppress_health_check=[HealthCheck.too_slow])
@given(document=documents(), workers=st.integers(1, 6), fails=st.booleans(), data=st.data())
def test_the_number_is_kept_and_the_plan_ends(
    document: dict[str, Any], workers: int, fails: bool, data: st.DataObject
) -> None:
    made = made_of(document)
    if made is None:
        return
    assert plan(DeploymentPlanner, message.write(made), check_types=False).digest == made.digest
    actions = list(made.actions)
    concurrency = Concurrency(limits=made.limits, max_workers=workers, places=made.places)
    run = Scheduler(actions, order.links(actions, order.completed(actions, {})), concurrency)
    watched = Watched(made)
    watched.take(run.begin(), [])
    ended: list[Report] = []
    while not run.done:
        reports = []
        for uuid in data.draw(
            st.lists(st.sampled_from(sorted(run.running)), min_size=1, unique=True)
        ):
            well = not fails or data.draw(st.integers(0, 5)) > 0
            state = ActionState.SUCCEEDED if well else ActionState.FAILED
            outcome = Outcome.CHANGED if well else Outcome.FAILED
            reports.append(Report(uuid=uuid, old=ActionState.ONGOING, state=state, outcome=outcome))
        decisions = run.decide(reports)
        ended += decisions.ended
        watched.take(decisions, reports)
    told = [report.message or "" for report in ended if report.state is ActionState.CANCELLED]
    assert not any("can no longer start" in text for text in told)
    assert fails or not told
