# SPDX-License-Identifier: Apache-2.0
"""The slack of a forecast: so late may an action end, and not a second more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from applier.scheduling.forecast import Forecast, forecast
from applier.scheduling.submissions import Concurrency
from planner.plan.model import JOIN, Action, Trigger
from planner.plan.states import Outcome

OFTEN = settings(max_examples=examples(150))


@st.composite
def plans(draw: Any, *, choices: bool) -> tuple[list[Action], dict[str, float]]:
    """Up to eight actions that take 0 to 4 seconds; with ``choices``, one of several may do."""
    actions: list[Action] = []
    for k in range(draw(st.integers(1, 8))):
        before = [action.uuid for action in actions]
        some = st.lists(st.sampled_from(before), unique=True, max_size=3) if before else st.just([])
        any_of, sources = (draw(some), draw(some)) if choices else ([], [])
        works = {action.uuid for action in actions if action.action_type != JOIN}
        actions.append(
            Action(
                uuid=f"a{k}",
                action_type=draw(st.sampled_from(["nop", "nop", "nop", JOIN])),
                parents=tuple(draw(some)),
                needs=tuple(draw(some)),
                needs_any=(tuple(any_of),) if any_of else (),
                triggers=tuple(
                    Trigger(uuid, (Outcome.CHANGED,)) for uuid in sources if uuid in works
                ),
            )
        )
    return actions, {a.uuid: float(draw(st.integers(0, 4))) for a in actions}


def predicted(actions: Sequence[Action], durations: dict[str, float]) -> Forecast:
    return forecast(actions, durations, Concurrency(limits={}, max_workers=99))


def longer(found: tuple[list[Action], dict[str, float]], uuid: str, seconds: float) -> float:
    """Return by how much a plan becomes longer if an action does."""
    actions, durations = found
    more = predicted(actions, durations | {uuid: durations[uuid] + seconds})
    return more.timeline.makespan_s - predicted(actions, durations).timeline.makespan_s


@OFTEN
@given(plans(choices=False))
def test_an_action_that_is_late_by_its_slack_delays_nothing_and_by_more_the_plan(
    found: tuple[list[Action], dict[str, float]],
) -> None:
    for uuid, slack in predicted(*found).slack_s.items():
        assert longer(found, uuid, slack) == 0
        assert longer(found, uuid, slack + 1) == 1


@OFTEN
@given(plans(choices=True))
def test_where_one_of_several_is_enough_the_slack_promises_nothing_that_is_not_there(
    found: tuple[list[Action], dict[str, float]],
) -> None:
    for uuid, slack in predicted(*found).slack_s.items():
        assert slack >= 0
        assert longer(found, uuid, slack) == 0
