# SPDX-License-Identifier: Apache-2.0
"""Plans for tests: small fixed ones, and hypothesis strategies for any plan."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from hypothesis import strategies as st

from planner.plan.model import Action, ActionPlan, Blocker, Trigger
from planner.plan.states import ActionState, Outcome

#: The time at which tests make plans.
MADE = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def new_plan(*names: str, **fields: Any) -> ActionPlan:
    """Return a RECOMMENDED plan of actions with these names, each the parent of the next."""
    uuids = [str(uuid4()) for _ in names]
    actions = tuple(
        Action(uuid=uuid, name=name, action_type="nop", parents=tuple(uuids[max(0, i - 1) : i]))
        for i, (uuid, name) in enumerate(zip(uuids, names, strict=True))
    )
    known = {"uuid": str(uuid4()), "planner": "weight", "created_at": MADE, **fields}
    return ActionPlan(actions=actions, **known)


#: Characters that every database takes: no NUL, no halves of surrogate pairs.
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)
moments = st.integers(min_value=0, max_value=10**15).map(
    lambda us: MADE + timedelta(microseconds=us)
)
seconds = st.floats(min_value=0, max_value=1e9)
numbers = st.integers(min_value=0, max_value=2**31 - 1)
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
mappings = st.dictionaries(st.text(max_size=8), documents, max_size=4)
tolerances = st.fixed_dictionaries(
    {"name": texts, "nodes": st.lists(texts, max_size=3), "failed_nodes": numbers}
)


@st.composite
def plans(draw: st.DrawFn) -> ActionPlan:
    """Draw a plan of up to eight actions in any states, linked to some of those before them."""
    uuids = draw(st.lists(st.uuids().map(str), unique=True, max_size=8))
    limits = st.dictionaries(texts, st.integers(min_value=1), max_size=3)
    return ActionPlan(
        # Not drawn: hypothesis repeats examples, and a uuid can be saved only once.
        uuid=str(uuid4()),
        actions=tuple(draw(actions(uuid, uuids[:i])) for i, uuid in enumerate(uuids)),
        planner=draw(texts),
        name=draw(st.none() | texts),
        created_at=draw(st.none() | moments),
        updated_at=draw(st.none() | moments),
        status_message=draw(st.none() | texts),
        audit_uuid=draw(st.none() | texts),
        strategy_name=draw(st.none() | texts),
        efficacy_indicators=tuple(draw(st.lists(mappings, max_size=2))),
        global_efficacy=tuple(draw(st.lists(mappings, max_size=2))),
        limits=draw(limits),
        tolerances=tuple(draw(st.lists(tolerances, max_size=2))),
        on_failure=draw(st.sampled_from([None, "pause", "continue", "skip_descendants"])),
        cloud=draw(st.none() | texts),
        warnings=tuple(draw(st.lists(texts, max_size=2))),
    )


@st.composite
def actions(draw: st.DrawFn, uuid: str, before: list[str]) -> Action:
    """Draw an action that is linked to some of the uuids ``before`` it."""
    some = st.lists(st.sampled_from(before), unique=True).map(tuple) if before else st.just(())
    outcomes = st.lists(st.sampled_from(Outcome), unique=True, min_size=1).map(tuple)
    return Action(
        uuid=uuid,
        action_type=draw(texts),
        name=draw(st.none() | texts),
        resource_id=draw(st.none() | texts),
        input_parameters=draw(mappings),
        description=draw(st.none() | texts),
        reason=draw(st.none() | texts),
        parents=draw(some),
        needs=draw(some),
        needs_any=tuple(group for group in draw(st.lists(some, max_size=2)) if group),
        triggers=tuple(Trigger(source, draw(outcomes)) for source in draw(some)),
        blocked_by=tuple(Blocker(source, draw(outcomes)) for source in draw(some)),
        tokens=tuple(draw(st.lists(texts, max_size=3))),
        estimate_s=draw(st.none() | seconds),
        timeout_s=draw(st.none() | seconds),
        retries=draw(numbers),
        state=draw(st.sampled_from(ActionState)),
        outcome=draw(st.none() | st.sampled_from(Outcome)),
        status_message=draw(st.none() | texts),
        started_at=draw(st.none() | moments),
        ended_at=draw(st.none() | moments),
        attempts=draw(numbers),
    )
