# SPDX-License-Identifier: Apache-2.0
"""What is alike is drawn once: machines, tasks side by side, tasks one after another."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.plan.model import Action, ActionPlan, Trigger
from planner.plan.states import ActionState, Outcome
from planner.render import svg
from planner.render.drawing import EACH, MOST_BOXES, Box, Drawing, draw, folded

TASKS = ("hiera", "netconfig", "nova")


def deployment(computes: int) -> ActionPlan:
    """One controller, and computes that go through three tasks once it is there.

    Each compute is introduced to all the others before the last anchor.
    """
    uids = [str(uid) for uid in range(2, computes + 2)]
    made = [task("sync/start", "anchor"), task("1/database", parents=("sync/start",))]
    for uid in uids:
        before: tuple[str, ...] = ("1/database",)
        for name in TASKS:
            made.append(task(f"{uid}/{name}", needs=before))
            before = (f"{uid}/{name}",)
    for uid in uids:
        others = tuple(f"{other}/nova" for other in uids if other != uid)
        made.append(task(f"{uid}/introduce", needs=others))
    made.append(task("1/cleanup", parents=tuple(f"{uid}/introduce" for uid in uids)))
    return ActionPlan(
        uuid="p",
        planner="deployment",
        name="cloud",
        actions=tuple(made),
        tolerances=({"name": "compute", "nodes": uids, "failed_nodes": 1},),
    )


def task(name: str, action_type: str = "puppet", **fields: tuple[str, ...]) -> Action:
    """An action of a machine, held by it unless it is an anchor."""
    node = () if action_type == "anchor" else (f"node:{name.partition('/')[0]}",)
    return Action(uuid=name, name=name, action_type=action_type, tokens=node, **fields)  # type: ignore[arg-type]


def failed(plan: ActionPlan, name: str) -> ActionPlan:
    """The same plan, one of whose actions failed."""
    changed = (replace(a, state=ActionState.FAILED) if a.name == name else a for a in plan.actions)
    return replace(plan, actions=tuple(changed))


def lane(drawing: Drawing, title: str) -> list[Box]:
    """The boxes of one strip."""
    (found,) = [name for name, text in drawing.lanes.items() if text == title]
    return [box for box in drawing.boxes.values() if box.lane == found]


def test_machines_that_are_alike_share_a_strip() -> None:
    drawing = draw(deployment(30))
    assert list(drawing.lanes.values()) == ["sync", "1", "compute x 30 (2-31)"]
    boxes = lane(drawing, "compute x 30 (2-31)")
    assert {name: len(box.actions) for box in boxes for name in box.names} == {
        "hiera": 30,
        "netconfig": 30,
        "nova": 30,
        "introduce": 30,
    }
    assert {box.times for box in boxes} == {1}


def test_a_machine_on_which_something_failed_has_its_own_strip() -> None:
    drawing = draw(failed(deployment(30), "7/netconfig"))
    assert list(drawing.lanes.values())[2:] == ["compute x 29 (2-6, 8-31)", "compute (7)"]
    assert [b.names for b in lane(drawing, "compute (7)") if b.look.word == "FAILED"] == [
        ("netconfig",)
    ]


def test_few_machines_are_not_thrown_together() -> None:
    drawing = draw(deployment(3))
    assert len(drawing.lanes) == 5
    assert all(len(box.actions) == 1 for box in drawing.boxes.values())


def test_machines_of_different_groups_are_not_alike() -> None:
    plan = deployment(30)
    groups = [{"name": name, "nodes": uids} for name, uids in (("a", ["2"]), ("b", ["3"]))]
    titles = list(draw(replace(plan, tolerances=tuple(groups))).lanes.values())
    assert titles[2:] == ["a (2)", "b (3)", "28 alike (4-31)"]


def chainlike(*lengths: int, name: str = "{chain}-{i}") -> ActionPlan:
    """Chains beside each other, of types a to z along each."""
    made = []
    for chain, length in enumerate(lengths):
        before: tuple[str, ...] = ()
        for i in range(length):
            label = name.format(chain=chain, i=i)
            made.append(Action(uuid=label, name=label, action_type=f"type-{i}", needs=before))
            before = (label,)
    return ActionPlan(uuid="p", planner="weight", actions=tuple(made))


def test_pairs_are_told_from_all_with_all() -> None:
    drawing = draw(chainlike(*[2] * 30))
    assert [box.rows() for box in drawing.boxes.values()] == [
        ["0-0, 1-0, 2-0, 3-0, 4-0, …, 29-0 x 30"],
        ["0-1, 1-1, 2-1, 3-1, 4-1, …, 29-1 x 30"],
    ]
    assert [line.label for line in drawing.lines] == [EACH]


def test_a_long_chain_is_one_box_numbered() -> None:
    drawing = draw(chainlike(45))
    (box,) = drawing.boxes.values()
    assert box.serial
    assert box.rows()[0] == "1. 0-0"
    assert box.rows()[-1] == "… and 29 more"
    assert "1. 2. 3.: one after another" in svg.render(chainlike(45))
    assert "side by side" not in svg.render(chainlike(45))


def test_an_event_inside_a_chain_keeps_its_label() -> None:
    plan = chainlike(45)
    event = replace(plan.actions[20], triggers=(Trigger("0-19", (Outcome.CHANGED,)),), needs=())
    drawing = draw(replace(plan, actions=(*plan.actions[:20], event, *plan.actions[21:])))
    assert [len(box.actions) for box in drawing.boxes.values()] == [20, 25]
    assert [(line.kind, line.label) for line in drawing.lines] == [("trigger", "changed")]


@pytest.mark.parametrize("state", [ActionState.FAILED, ActionState.ONGOING])
def test_what_is_in_another_state_is_not_hidden(state: ActionState) -> None:
    plan = chainlike(*[1] * 50)
    odd = replace(plan.actions[3], state=state)
    drawing = draw(replace(plan, actions=(*plan.actions[:3], odd, *plan.actions[4:])))
    counts = {box.look.word: len(box.actions) for box in drawing.boxes.values()}
    assert counts == {"READY": 49, str(state): 1}


def staircase(hosts: int) -> ActionPlan:
    """Hosts that drain and reboot one after another, so that none is like another."""
    made, before = [], dict.fromkeys(("drain", "reboot"), ())
    for host in range(hosts):
        for step, needs in (("drain", ()), ("reboot", (f"c{host}/drain",))):
            made.append(task(f"c{host}/{step}", step, needs=needs, parents=before[step]))
            before[step] = (f"c{host}/{step}",)
    return ActionPlan(uuid="p", planner="weight", name="stairs", actions=tuple(made))


def test_a_picture_of_too_many_boxes_is_folded_into_tasks_with_their_numbers() -> None:
    plan = failed(staircase(MOST_BOXES), "c7/reboot")
    assert len(draw(plan).boxes) > MOST_BOXES
    made = folded(draw(plan))
    rows = {name: (*box.rows(), str(box.look.word)) for name, box in made.boxes.items()}
    assert {*rows.values()} == {
        ("drain x 199", "PENDING"),
        ("drain", "READY"),
        ("reboot x 199", "PENDING"),
        ("reboot", "FAILED"),
    }
    lines = [(rows[line.tail][:1], rows[line.head][:1]) for line in made.lines]
    assert (("drain x 199",), ("reboot x 199",)) in lines
    text = svg.render(plan)
    assert text.count('class="box') == 4
    assert "which action of a box waits for which of another is left out" in text
    assert "x N means N actions" in text


def test_a_folded_box_of_several_tasks_names_their_types_and_counts_all() -> None:
    """Without hosts, a box may be a chain; with few hosts, each task may be another."""
    for chain, hosts, told in (
        (("drain", "reboot"), False, "drain, reboot"),
        (("run",), True, "run"),
    ):
        made, before = [], ()
        for number in range(MOST_BOXES + 60):
            # Each chain begins after others, so that none is like another.
            needs = tuple(uuid for i, uuid in enumerate(before) if number >> i & 1)[:3]
            for step in chain:
                name = f"h{number % 9}/{step}-{number}" if hosts else f"{step}-{number}"
                made.append(task(name, step, needs=needs))
                needs = (name,)
            before = (*needs, *before[:9])
        drawn = draw(ActionPlan(uuid="p", planner="weight", actions=tuple(made)))
        assert len(drawn.boxes) > MOST_BOXES
        boxes = folded(drawn).boxes.values()
        assert sum(len(box.actions) for box in boxes) == len(made)
        rows = [row for box in boxes for row in box.rows()]
        assert f"{told} x {max(len(box.actions) for box in boxes)}" in rows
