# SPDX-License-Identifier: Apache-2.0
"""What holds for the picture of any plan: nothing lost, nothing twice, nothing covered."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from unittest import mock
from xml.etree import ElementTree

import networkx as nx
import pytest
from examples import renamed
from hypothesis import example, given
from hypothesis import strategies as st
from links import choices, earlier, linked

from planner.plan.model import JOIN, Action, ActionPlan, Trigger
from planner.plan.states import ActionState, Outcome
from planner.render import dot_and_mermaid, drawing, svg
from planner.render.drawing import Drawing, draw

SVG = "{http://www.w3.org/2000/svg}"
NAMES = ("{lane}/task-{i}", "{lane}.{i}.run", "move-{i}")
Rectangle = tuple[float, float, float, float]
Form = Callable[[ActionPlan], str]


@st.composite
def plans(draw_from: st.DrawFn) -> ActionPlan:
    """Plans of up to 14 actions with every kind of link, joins, lanes and states."""
    planner = draw_from(st.sampled_from(["deployment", "rolling_update", "events", "weight"]))
    pattern = draw_from(st.sampled_from(NAMES))

    def more(i: int, _kind: str) -> dict[str, Any]:
        lane = draw_from(st.sampled_from("abc"))
        tokens = st.sampled_from([(), (f"node:{lane}",), ("node:a", "node:b")])
        state = draw_from(st.sampled_from(ActionState))
        return {"name": pattern.format(lane=lane, i=i), "tokens": draw_from(tokens), "state": state}

    actions = draw_from(linked(14, ["nop", "sleep", "anchor", JOIN], more, outcomes=OUTCOMES))
    return ActionPlan(uuid="p", planner=planner, name="any", actions=actions)


OUTCOMES = st.sampled_from([(Outcome.CHANGED,), (Outcome.OK, Outcome.CREATED)])
KEPT = st.sampled_from([None, ActionState.PENDING, "u1"])
FEW = st.sampled_from([2, 40])


def keeper(kept: object) -> Callable[[Action], bool] | None:
    """Keep all, those in a state, or those whose uuid begins with a text."""
    if kept is None:
        return None
    return lambda action: action.state == kept or action.uuid.startswith(str(kept))


def before_and_after(plan: ActionPlan) -> nx.DiGraph:
    """The graph of everything that comes before something."""
    graph = nx.DiGraph()
    graph.add_nodes_from(action.uuid for action in plan.actions)
    for uuid, before in earlier(plan, choices).items():
        graph.add_edges_from((one, uuid) for one in before)
    return graph


def drawn_order(made: Drawing) -> nx.DiGraph:
    """The graph of the lines of a drawing."""
    graph = nx.DiGraph()
    graph.add_nodes_from([*made.boxes, *made.points])
    graph.add_edges_from((line.tail, line.head) for line in made.lines)
    assert nx.is_directed_acyclic_graph(graph)
    return nx.transitive_closure(graph)


@given(plans(), KEPT, FEW)
def test_each_kept_action_stands_in_one_box(plan: ActionPlan, kept: object, many: int) -> None:
    keep = keeper(kept)
    with mock.patch.object(drawing, "MANY", many):
        made, text = draw(plan, keep), svg.render(plan, keep)
    drawn = [action.uuid for box in made.boxes.values() for action in box.actions]
    wanted = [a.uuid for a in plan.actions if a.action_type != JOIN and (not keep or keep(a))]
    assert sorted(drawn) == sorted(wanted)
    groups = [g for g in parsed(text).iter(f"{SVG}g") if g.get("id")]
    assert [g.get("id") for g in groups] == list(made.boxes)
    for group, box in zip(groups, made.boxes.values(), strict=True):
        title = group.find(f"{SVG}title")
        assert title is not None
        assert title.text is not None
        assert all(action.label in title.text.split() for action in box.actions)
        if len(box.actions) > 1:
            assert title.text.split("\n")[0].endswith(f": {len(box.actions)} actions")


def require_order(plan: ActionPlan, made: Drawing) -> None:
    """Lines say what comes before what, and no more."""
    order, lines = before_and_after(plan), drawn_order(made)
    for (a, first), (b, second) in itertools.permutations(made.boxes.items(), 2):
        told = order.has_edge(first.actions[0].uuid, second.actions[0].uuid)
        assert lines.has_edge(a, b) == told, (first.names, second.names)


def cascade() -> ActionPlan:
    """An event that is an order, and a need by a join as well."""
    three = ("u0", "u1", "u2")
    tasks = [Action(uuid=u, name=f"a/{u}", action_type="nop") for u in three]
    join = Action(uuid="u3", name="join", action_type=JOIN, needs=three, needs_any=(three,))
    last = Action(
        uuid="u4",
        name="a/u4",
        action_type="nop",
        parents=("u0",),
        needs=("u0", "u3"),
        needs_any=((*three, "u3"),),
        triggers=tuple(Trigger(u, (Outcome.CHANGED,)) for u in ("u0", "u1", "u3")),
    )
    return ActionPlan(uuid="p", planner="deployment", name="any", actions=(*tasks, join, last))


@example(cascade(), None)
@given(plans(), KEPT)
def test_lines_say_what_comes_before_what_and_needs_and_events_stay_what_they_are(
    plan: ActionPlan, kept: object
) -> None:
    made = draw(plan, keeper(kept))
    require_order(plan, made)
    uuids = {name: box.actions[0].uuid for name, box in made.boxes.items()}
    needs, drawn = nx.DiGraph(), nx.DiGraph()
    needs.add_nodes_from(action.uuid for action in plan.actions)
    needs.add_edges_from((uuid, action.uuid) for action in plan.actions for uuid in action.needs)
    needs = nx.transitive_closure(needs)
    drawn.add_nodes_from([*made.boxes, *made.points])
    # A need that is an event as well is drawn as the event.
    needed = {
        (x.tail, x.head)
        for x in made.lines
        if x.kind == "trigger" and needs.has_edge(uuids.get(x.tail), uuids.get(x.head))
    }
    drawn.add_edges_from((x.tail, x.head) for x in made.lines if x.kind == "need")
    drawn.add_edges_from(needed)
    drawn = nx.transitive_closure(drawn)
    for (a, first), (b, second) in itertools.permutations(uuids.items(), 2):
        assert drawn.has_edge(a, b) == needs.has_edge(first, second)
    events = {
        (t.action, action.uuid, " or ".join(t.outcomes))
        for action in plan.actions
        for t in action.triggers
        if {t.action, action.uuid} <= set(uuids.values())
    }
    lines = {
        (uuids[x.tail], uuids[x.head], x.label)
        for x in made.lines
        if x.kind == "trigger" and {x.tail, x.head} <= uuids.keys()
    }
    assert lines == events
    # An order that is an event as well is drawn, unless other lines imply it.
    both = {
        (u, action.uuid)
        for action in plan.actions
        for u, _ in action.triggers
        if u in action.parents
    }
    orders = {(uuids.get(x.tail), uuids.get(x.head)) for x in made.lines if x.kind == "order"}
    others = nx.DiGraph((x.tail, x.head) for x in made.lines)
    for (a, first), (b, second) in itertools.permutations(uuids.items(), 2):
        if (first, second) in both and (first, second) not in orders:
            assert any(len(way) > 2 for way in nx.all_simple_paths(others, a, b))


@given(plans(), KEPT)
def test_boxes_of_many_keep_the_order_of_each(plan: ActionPlan, kept: object) -> None:
    with mock.patch.object(drawing, "MANY", 2):
        made = draw(plan, keeper(kept))
    order, lines = before_and_after(plan), drawn_order(made)
    box_of = {a.uuid: name for name, box in made.boxes.items() for a in box.actions}
    for first, second in order.edges:
        if first in box_of and second in box_of and box_of[first] != box_of[second]:
            assert lines.has_edge(box_of[first], box_of[second])
    for box in made.boxes.values():
        looks = {action.state for action in box.actions}
        assert len(looks) == 1
        inside = [a.uuid for a in box.actions]
        assert box.serial or not any(order.has_edge(a, b) for a in inside for b in inside)


@given(plans(), FEW)
def test_nothing_covers_a_box(plan: ActionPlan, many: int) -> None:
    with mock.patch.object(drawing, "MANY", many):
        root = parsed(svg.render(plan))
    boxes = list(rectangles(root, "box"))
    for first, second in itertools.combinations(boxes, 2):
        assert not overlap(first, second)
    labels = [rectangle(r) for r in root.iter(f"{SVG}rect") if r.get("class") == "halo"]
    assert not any(overlap(label, box) for label in labels for box in boxes)
    left, top = (
        float(x) for x in re.findall(r"[\d.]+", str(root.findall(f"{SVG}g")[-1].get("transform")))
    )
    for x, y, width, height in [*boxes, *labels]:
        assert -left <= x
        assert x + width + left <= float(str(root.get("width")))
        assert y >= 0
        assert y + height + top <= float(str(root.get("height")))


def parsed(text: str) -> ElementTree.Element:
    """Read XML that the product wrote; raises for what is none."""
    return ElementTree.fromstring(text)  # noqa: S314 - it is our own


def rectangles(root: ElementTree.Element, kind: str) -> Iterator[Rectangle]:
    """The rectangles of groups of a class, without the shades behind them."""
    for group in root.iter(f"{SVG}g"):
        if str(group.get("class")).split()[0] == kind:
            yield next(rectangle(r) for r in group.iter(f"{SVG}rect") if r.get("class") != "more")


def rectangle(element: ElementTree.Element) -> Rectangle:
    """Left, top, width and height."""
    x, y, width, height = (float(str(element.get(k))) for k in ("x", "y", "width", "height"))
    return x, y, width, height


def overlap(a: Rectangle, b: Rectangle) -> bool:
    """True if two rectangles share more than a border."""
    apart = a[0] + a[2] <= b[0] or b[0] + b[2] <= a[0]
    return not (apart or a[1] + a[3] <= b[1] or b[1] + b[3] <= a[1])


@pytest.mark.parametrize("form", [svg.render, dot_and_mermaid.dot, dot_and_mermaid.mermaid])
@given(plan=plans())
def test_other_uuids_give_the_same_picture(
    form: Callable[[ActionPlan], str], plan: ActionPlan
) -> None:
    def other(uuid: str) -> str:
        return f"x{99 - int(uuid[1:])}"

    actions = tuple(renamed(a, other) for a in plan.actions)
    with mock.patch.object(drawing, "MANY", 4):
        assert form(plan) == form(replace(plan, actions=actions))
