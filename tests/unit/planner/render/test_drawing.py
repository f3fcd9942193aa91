# SPDX-License-Identifier: Apache-2.0
"""Pictures as text: goldens of all forms, and what must not break them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from planner import ActionPlan, make_plan
from planner.plan.model import JOIN, Action, Trigger
from planner.plan.states import ActionState, Outcome, PlanState
from planner.render import dot_and_mermaid, svg

Form = Callable[[ActionPlan], str]
FORMS = pytest.mark.parametrize(
    "form", [dot_and_mermaid.dot, dot_and_mermaid.mermaid], ids=["dot", "mermaid"]
)


def actions(*given: Any) -> ActionPlan:
    """Make a plan of (name, fields) pairs; uuids are the names."""
    made = [
        Action(**{"uuid": name, "name": name, "action_type": "nop", **fields})
        for name, fields in given
    ]
    return ActionPlan(uuid="p", planner="weight", name="the plan", actions=tuple(made))


EVERY_KIND = actions(
    ("one", {"description": "do the first", "state": ActionState.SUCCEEDED}),
    ("two", {"parents": ("one",), "needs": ("one",)}),
    ("join-1", {"action_type": JOIN, "parents": ("one", "two")}),
    ("three", {"parents": ("join-1",), "needs_any": (("one", "two"),)}),
    ("four", {"triggers": (Trigger("three", (Outcome.CHANGED, Outcome.OK)),)}),
)

#: Two machines that are prepared alike between two anchors; one of them could not be.
DEPLOYMENT = replace(
    actions(
        ("sync/start", {"action_type": "anchor", "state": ActionState.SUCCEEDED}),
        *(
            (f"{uid}/{task}", {"tokens": (f"node:{uid}",), "action_type": "puppet", **fields})
            for uid, first, second in (
                ("1", ActionState.SUCCEEDED, ActionState.PENDING),
                ("2", ActionState.FAILED, ActionState.FAILED_DEPENDENCIES),
            )
            for task, fields in (
                ("netconfig", {"parents": ("sync/start",), "state": first}),
                ("nova", {"needs": (f"{uid}/netconfig",), "state": second}),
            )
        ),
        ("sync/end", {"action_type": "anchor", "parents": ("1/nova", "2/nova")}),
    ),
    planner="deployment",
    state=PlanState.ONGOING,
    tolerances=({"name": "compute", "nodes": ["1", "2"], "failed_nodes": 1},),
)

PICTURES = Path(__file__).parents[3] / "cases/drawings"


@pytest.mark.parametrize(
    "form", [svg.render, dot_and_mermaid.dot, dot_and_mermaid.mermaid], ids=["svg", "dot", "mmd"]
)
def test_a_small_plan_is_drawn_like_this(form: Form) -> None:
    ending = {svg.render: "svg", dot_and_mermaid.dot: "dot", dot_and_mermaid.mermaid: "mmd"}[form]
    for name, plan in (("every_kind", EVERY_KIND), ("deployment", DEPLOYMENT)):
        path, text = PICTURES / f"{name}.{ending}", form(plan)
        if os.environ.get("ACTIONPLAN_REWRITE"):
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")


@FORMS
def test_the_picture_does_not_depend_on_uuids(form: Form) -> None:
    document = {"actions": [{"action_type": "nop"}, {"action_type": "sleep"}]}
    one, two = (make_plan(document, check_types=False) for _ in range(2))
    assert one.uuid != two.uuid
    assert form(one) == form(two)


@FORMS
def test_a_plan_read_back_has_the_same_picture(form: Form) -> None:
    plan = wide_plan(6)
    assert form(ActionPlan.from_dict(plan.to_dict())) == form(plan)


@FORMS
def test_a_plan_of_nothing_is_a_picture_of_nothing(form: Form) -> None:
    plan = ActionPlan(uuid="p", planner="weight", actions=())
    assert "a0" not in form(plan)


ODD = 'say "a\\b" <i>&amp; #1; %%{init}%% `x` ]["\n\x07é'


ODD_LANES = [(f"{ODD}/{i}", {"tokens": (f"node:{ODD}",)}) for i in range(2)]


@pytest.mark.parametrize("plan", [actions((ODD, {})), actions(*ODD_LANES)], ids=["box", "lane"])
def test_odd_text_stays_text_in_svg(plan: ActionPlan) -> None:
    text = svg.render(
        replace(
            plan, name=ODD, actions=(replace(plan.actions[0], description=ODD), *plan.actions[1:])
        )
    )
    root = ElementTree.fromstring(text)  # noqa: S314 - it is our own
    drawn = "svg title style rect defs marker path text g circle"
    assert {e.tag.rpartition("}")[2] for e in root.iter()} <= set(drawn.split())
    said = "".join(root.itertext())
    assert ODD.replace("\n", " ").replace("\x07", " ") in said


def test_odd_text_stays_inside_its_string_in_dot() -> None:
    (line,) = [x for x in dot_and_mermaid.dot(actions((ODD, {}))).splitlines() if "a0 [" in x]
    label = 'say \\"a\\\\b\\" <i>&amp; #1; %%{init}%% `x` ][\\"  é'
    assert line == f'  a0 [label="{label}\\nnop\\nPENDING"];'


def test_odd_text_means_nothing_to_mermaid() -> None:
    (line,) = [x for x in dot_and_mermaid.mermaid(actions((ODD, {}))).splitlines() if 'a0["' in x]
    text = line.removeprefix('  a0["').removesuffix('<br/>nop<br/>PENDING"]:::PENDING')
    meant = re.sub("#([0-9]+);", lambda code: chr(int(code[1])), text)
    assert meant == ODD.replace("\n", " ").replace("\x07", " ")
    assert re.sub("#[0-9]+;| ", "", text).isalnum()


def test_the_name_of_a_plan_is_escaped_in_dot() -> None:
    plan = replace(EVERY_KIND, name='a "b" \\')
    assert dot_and_mermaid.dot(plan).startswith('digraph "a \\"b\\" \\\\" {\n')


@FORMS
def test_every_state_is_written(form: Form) -> None:
    for state in ActionState:
        assert state in form(actions(("a", {"state": state})))


def wide_plan(width: int) -> ActionPlan:
    """Two sets, each of the second with all of the first as parents."""
    first = tuple(f"a-{i}" for i in range(width))
    second = [(f"b-{i}", {"parents": first}) for i in range(width)]
    return actions(*((name, {}) for name in first), *second)


@FORMS
def test_a_small_set_is_drawn_edge_by_edge(form: Form) -> None:
    text = form(wide_plan(3))
    assert "p0" not in text
    assert len(lines_of(text)) == 9


@FORMS
def test_a_wide_set_goes_through_a_point(form: Form) -> None:
    text = form(wide_plan(20))
    assert len(lines_of(text)) == 40
    assert sum("p0" in line for line in lines_of(text)) == 40


@FORMS
def test_needs_of_a_wide_set_are_drawn_beside_its_point(form: Form) -> None:
    plan = wide_plan(20)
    last = replace(plan.actions[-1], needs=("a-3",))
    text = form(replace(plan, actions=(*plan.actions[:-1], last)))
    assert len(lines_of(text)) == 41
    assert any(line.split()[0] == "a3" and line.split()[2] == "a39" for line in lines_of(text))


@FORMS
def test_sets_of_many_alike_are_two_boxes_and_a_line(form: Form) -> None:
    text = form(wide_plan(50))
    assert len(lines_of(text)) == 1
    assert "a-0 to 49 x 50" in text
    assert "100 actions in 2 boxes" in text


@FORMS
def test_an_order_that_is_needed_too_is_drawn_once(form: Form) -> None:
    plan = actions(("a", {}), ("b", {"parents": ("a",), "needs": ("a",)}))
    assert len(lines_of(form(plan))) == 1


def lines_of(text: str) -> list[str]:
    """The lines that draw a line: neither the legend nor a box."""
    arrows = ("->", "-->", "-.->", "-.", "--")
    words = [line.split() for line in text.splitlines()]
    return [
        " ".join(w) for w in words if len(w) > 2 and w[1] in arrows and w[0] not in ("%%", "//")
    ]


@pytest.mark.needs("dot")
@pytest.mark.slow
def test_graphviz_reads_it() -> None:
    odd = (actions((ODD, {})), actions(*ODD_LANES))
    for plan in (EVERY_KIND, DEPLOYMENT, *odd, wide_plan(20), wide_plan(50)):
        subprocess.run(["dot", "-Tplain"], input=dot_and_mermaid.dot(plan), text=True, check=True)
