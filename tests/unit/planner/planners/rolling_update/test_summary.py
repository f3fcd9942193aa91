# SPDX-License-Identifier: Apache-2.0
"""What is printed of an update before it runs: one sentence and the figures of each group."""

from __future__ import annotations

import re
from typing import Any

import pytest

from planner.errors import InvalidInput
from planner.plan.model import ActionPlan
from planner.planners.rolling_update.planner import RollingUpdatePlanner
from planner.testing import plan

DURATIONS = {"create_instance": 10, "delete_instance": 5}


def template(image: str, sizes: dict[str, int], policy: dict[str, Any] | None) -> dict[str, Any]:
    config = {"Type": "AWS::AutoScaling::LaunchConfiguration", "Properties": {"ImageId": image}}
    groups = {
        name: {
            "Type": "OS::Heat::InstanceGroup",
            "UpdatePolicy": {"Any": policy} if policy is not None else {},
            "Properties": {"Size": size, "LaunchConfigurationName": {"Ref": "c"}},
        }
        for name, size in sizes.items()
    }
    return {"Resources": {**groups, "c": config}}


def planned(
    sizes: dict[str, tuple[int, int]],
    policy: dict[str, Any] | None,
    *,
    image: str = "two",
    current: bool = False,
    **more: Any,
) -> ActionPlan:
    """Plan groups with (members now, members wanted), whose image becomes ``image``."""
    members = {
        name: {"members": [{"id": f"{name}{i}", "current": current} for i in range(now)]}
        for name, (now, _) in sizes.items()
    }
    document = {
        "kind": "rolling_update",
        "old": template("one", {name: now for name, (now, _) in sizes.items()}, None),
        "new": template(image, {name: wanted for name, (_, wanted) in sizes.items()}, policy),
        "groups": members,
        "durations": DURATIONS,
        **more,
    }
    return plan(RollingUpdatePlanner, document)


BECAUSE = "because ImageId of c changed"
CASES: list[tuple[dict[str, Any], str, dict[str, Any], dict[str, Any]]] = [
    (
        {"sizes": {"g": (4, 4)}, "policy": {"MaxBatchSize": 2, "PauseTime": "PT30S"}},
        "2 batches (2 x +2 -2), create first; never fewer than 4 in service, never more than "
        f"6 members; 1 pause of 30 s, {BECAUSE}",
        {"batches": [[2, 2], [2, 2]], "floor": 4, "peak": 6, "size": 4, "pause_s": 30, "end_s": 60},
        {"peak": 6, "end_s": 60, "known_s": 60},
    ),
    (
        {"sizes": {"g": (3, 3)}, "policy": {"PauseTime": "PT1S"}, "mode": "in_place"},
        "3 batches (3 x +1 -1), in place; never fewer than 2 in service, never more than "
        f"3 members; 2 pauses of 1 s, {BECAUSE}",
        {"batches": [[1, 1]] * 3, "floor": 2, "peak": 3, "size": 3, "pause_s": 2, "end_s": 47},
        {"peak": 3, "end_s": 47, "known_s": 47},
    ),
    (
        {"sizes": {"g": (1, 1)}, "policy": {}},
        "1 batch (+1 -1), create first; never fewer than 1 in service, never more than "
        f"2 members, {BECAUSE}",
        {"batches": [[1, 1]], "floor": 1, "peak": 2, "size": 1, "pause_s": 0, "end_s": 15},
        {"peak": 2, "end_s": 15, "known_s": 15},
    ),
    (
        {"sizes": {"g": (3, 1)}, "policy": {}},
        "1 batch (+1 -3), create first; from 3 to 1 member; never fewer than 1 in service, "
        f"never more than 4 members, {BECAUSE}",
        {"batches": [[1, 3]], "floor": 1, "peak": 4, "size": 1, "pause_s": 0, "end_s": 15},
        {"peak": 4, "end_s": 15, "known_s": 15},
    ),
    (
        {"sizes": {"g": (1, 3)}, "policy": {}},
        "1 batch (+1 -1), create first; from 1 to 3 members; never fewer than 1 in service, "
        f"never more than 3 members, {BECAUSE}",
        {"batches": [[1, 1]], "floor": 1, "peak": 3, "size": 3, "pause_s": 0, "end_s": 25},
        {"peak": 3, "end_s": 25, "known_s": 25},
    ),
    (
        {"sizes": {"g": (2, 1)}, "policy": {}, "image": "one"},
        "from 2 to 1 member; never fewer than 1 in service, never more than 2 members, and no roll",
        {"batches": [], "floor": 1, "peak": 2, "size": 1, "pause_s": 0, "end_s": 5},
        {"peak": 2, "end_s": 5, "known_s": 5},
    ),
    (
        {"sizes": {"g": (1, 1)}, "policy": {}, "image": "one"},
        "stays as it is, 1 member",
        {"batches": [], "floor": 1, "peak": 1, "size": 1, "pause_s": 0, "end_s": 0},
        {"peak": 1, "end_s": 0, "known_s": 0},
    ),
    (
        {"sizes": {"g": (2, 2)}, "policy": {}, "current": True},
        "stays as it is, 2 members (ImageId of c changed, and all of them are current)",
        {"batches": [], "floor": 2, "peak": 2, "size": 2, "pause_s": 0, "end_s": 0},
        {"peak": 2, "end_s": 0, "known_s": 0},
    ),
]


@pytest.mark.parametrize(("given", "sentence", "figures", "all_figures"), CASES)
def test_a_group_has_a_sentence_and_figures(
    given: dict[str, Any],
    sentence: str,
    figures: dict[str, Any],
    all_figures: dict[str, Any],
) -> None:
    made = planned(**given)
    (found,) = made.efficacy_indicators
    cause = "ImageId of c changed" if given.get("image") != "one" else None
    assert found == {
        "name": "g",
        "description": f"g: {sentence}",
        "unit": None,
        "value": {"cause": cause, "maximum": None, **figures},
    }
    (whole,) = made.global_efficacy
    ends = (
        f"at most {all_figures['peak']} instances at once; it ends {all_figures['end_s']} s after "
        "its start, if each batch runs side by side"
    )
    assert whole == {
        "name": "all groups",
        "description": f"In all: {ends if made.actions else 'nothing changes'}",
        "unit": None,
        "value": all_figures,
    }


def test_what_takes_an_unknown_time_is_named_and_leaves_the_end_open() -> None:
    gates = [{"action_type": "shell", "input_parameters": {"argv": ["true"]}}]
    made = planned({"g": (1, 1)}, {"PauseTime": "PT7S"}, pause_first=True, gates=gates)
    assert made.efficacy_indicators[0]["value"]["end_s"] is None
    (whole,) = made.global_efficacy
    assert whole["value"] == {"peak": 2, "end_s": None, "known_s": 22}
    assert all(fact in whole["description"] for fact in ("at most 2 ", "after 22 s", "shell"))


def test_groups_end_at_once_or_one_after_another() -> None:
    sizes = {"a": (1, 1), "b": (1, 1), "d": (2, 2)}
    together = planned(sizes, {})
    assert together.global_efficacy[0]["value"] == {"peak": 7, "end_s": 30, "known_s": 30}
    assert [i["value"]["end_s"] for i in together.efficacy_indicators] == [15, 15, 30]
    in_turn = planned(sizes, {}, mode="in_place", max_unavailable_total=1)
    assert in_turn.global_efficacy[0]["value"] == {"peak": 4, "end_s": 60, "known_s": 60}
    assert [i["value"]["end_s"] for i in in_turn.efficacy_indicators] == [15, 30, 60]


@pytest.mark.parametrize(("quota", "refused"), [(6, False), (5, True)])
def test_a_quota_holds_the_peak_and_no_less(quota: int, refused: bool) -> None:
    given: dict[str, Any] = {"sizes": {"g": (4, 4)}, "policy": {"MaxBatchSize": 2}}
    for written in (quota, {"instances": quota}):
        if not refused:
            assert planned(**given, quota=written).actions
            continue
        with pytest.raises(InvalidInput) as wrong:
            planned(**given, quota=written)
        (mistake,) = wrong.value.mistakes
        assert mistake.path == ("quota",)
        assert re.findall(r"\d+", mistake.text) == ["6", "5"]


@pytest.mark.parametrize(
    ("deadline", "sentence"),
    [
        (15, None),
        (14.5, "it takes 15 s or more, and has to end within 14.5 s"),
        ("2026-01-02T03:04:20Z", None),
        (
            "2026-01-02T03:04:19",
            "it takes 15 s or more, and has to end within 14 s, by 2026-01-02T03:04:19+00:00",
        ),
        (
            "2025-01-02T03:04:19Z",
            "it takes 15 s or more, and has to end within 0 s, by 2025-01-02T03:04:19+00:00",
        ),
        ("soon", "'soon' is neither a time, such as 2026-01-31T06:00:00Z, nor seconds"),
    ],
)
def test_a_deadline_that_cannot_be_kept_is_refused(
    deadline: str | float, sentence: str | None
) -> None:
    if sentence is None:
        assert planned({"g": (1, 1)}, {}, deadline=deadline).actions
        return
    with pytest.raises(InvalidInput) as wrong:
        planned({"g": (1, 1)}, {}, deadline=deadline)
    assert [str(m) for m in wrong.value.mistakes] == [f"deadline: {sentence}"]


def test_a_member_that_goes_is_named_as_far_as_it_has_a_name() -> None:
    made = planned(
        {"g": (2, 2)}, {}, groups={"g": {"members": [{"id": "1", "name": "web-1"}, {"id": "2"}]}}
    )
    gone = [a.input_parameters for a in made.actions if a.action_type == "delete_instance"]
    named = {one["resource_id"]: one.get("resource_name") for one in gone}
    assert named == {"1": "web-1", "2": None}
    assert all(one.get("resource_name", "is a text") for one in gone)
