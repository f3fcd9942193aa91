# SPDX-License-Identifier: Apache-2.0
"""Deployments of so many nodes at a time: the number is kept, and no plan gets stuck."""

from __future__ import annotations

from typing import Any

from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from applier.contracts import Report
from applier.scheduling import waiting
from applier.scheduling.concurrency import Concurrency
from applier.scheduling.decisions import Decisions
from applier.scheduling.scheduler import Scheduler
from planner.errors import PlannerError
from planner.plan.model import ActionPlan
from planner.plan.states import ActionState, Outcome
from planner.planners.deployment import message
from planner.planners.deployment.planner import DeploymentPlanner
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


def blocks_of(document: dict[str, Any]) -> list[tuple[int, set[tuple[str, str]]]]:
    """Return, as the document says it, each number and the pairs of node and task that it is of."""
    serial, found = document["serial"], []
    pairs = {(n["uid"], t["id"]): n["roles"] for n in document["nodes"] for t in document["tasks"]}
    if isinstance(serial, int):
        return [(serial, set(pairs))]
    if isinstance(serial, dict):
        for role, number in serial.items():
            found.append((number, {pair for pair, roles in pairs.items() if role in roles}))
        return found
    return [(b["nodes"], {pair for pair in pairs if pair[1] in b["tasks"]}) for b in serial]


class Watched:
    """Who is between first begin and last end, counted from what starts and ends alone."""

    def __init__(self, made: ActionPlan, document: dict[str, Any]) -> None:
        self._pair = {a.uuid: tuple(a.label.split("/", 1)) for a in made.actions}
        self._blocks = blocks_of(document)
        self._left = {uuid for uuid, pair in self._pair.items() if pair[0] != "join"}
        self._begun: set[tuple[int, str]] = set()
        self._failed: set[tuple[int, str]] = set()

    def take(self, decisions: Decisions, reports: list[Report]) -> None:
        """Note what ended, then what starts, and count."""
        for report in (*reports, *decisions.ended):
            self._left.discard(report.uuid)
            if report.state is ActionState.FAILED:
                self._failed |= {(k, self._pair[report.uuid][0]) for k in self._in(report.uuid)}
        for uuid in decisions.starts:
            for k in self._in(uuid):
                self._begun.add((k, self._pair[uuid][0]))
                busy = {one for one in self._begun if one[0] == k and self._is_busy(*one)}
                assert len(busy) <= self._blocks[k][0], f"{self._pair[uuid]} beside {busy}"

    def _in(self, uuid: str) -> list[int]:
        return [k for k, (_, pairs) in enumerate(self._blocks) if self._pair[uuid] in pairs]

    def _is_busy(self, k: int, uid: str) -> bool:
        left = any(self._pair[uuid][0] == uid and k in self._in(uuid) for uuid in self._left)
        return left or (k, uid) in self._failed


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
    run = Scheduler(actions, waiting.links(actions, waiting.completed(actions, {})), concurrency)
    watched = Watched(made, document)
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
