# SPDX-License-Identifier: Apache-2.0
"""Each value of a row that does not belong in its column is named, and nothing else is."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import sqlalchemy as sa

from applier.storage import damage, rows
from applier.storage.columns import Moment
from applier.storage.tables import (
    action_states,
    actions,
    answers,
    attempts,
    dead_events,
    events,
    imported_durations,
    metadata,
    plans,
    services,
    subscriptions,
    worker_jobs,
    workers,
)
from applier.storage.tables import requests as requests_table
from planner import ranges
from planner.states import Outcome

NOT_TEXTS = [5, b"\xff", "\ud800"]
NOT_JSON = ["{", "[1", "", 5, "[" * 100_000]
NOT_LIMITS = ['{"node:1": 0}', '{"node:1": true}', '{"node:1": "2"}', "[]"]
NOT_TEXT_LISTS = ["{}", "[1]", '"a"', '["a", null]']
NOT_EVENTS = ['[["a"]]', '[["a", ["no"]]]', '[[1, ["ok"]]]', '[["a", "ok"]]', "[5]", "{}"]
NOT_SECONDS = ["x", math.nan, math.inf, -1.5]
NOT_PROCESSES = [-3, 2**40, "7", 1.5]
NOT_WORDS = ["", "SUCCEEDED ", "nonsense", 5]
#: By table and column: what is refused there.
WRONG: dict[sa.Column[Any], list[Any]] = {
    plans.c.state: NOT_WORDS,
    plans.c.on_failure: NOT_WORDS,
    plans.c.deleted_from: NOT_WORDS,
    plans.c.limits: [*NOT_JSON, *NOT_LIMITS],
    plans.c.guards: [*NOT_JSON, "[]"],
    plans.c.places: [*NOT_JSON, "[]", '{"a": 1}', '{"a": {"keep": 1}}'],
    plans.c.warnings: [*NOT_JSON, *NOT_TEXT_LISTS],
    plans.c.tolerances: [*NOT_JSON, "[1]", "{}", '[{"x": 1}]', '[{"name": "a", "nodes": [1]}]'],
    plans.c.efficacy_indicators: [*NOT_JSON, "{}"],
    plans.c.global_efficacy: [*NOT_JSON, "{}"],
    plans.c.claimant_pid: NOT_PROCESSES,
    plans.c.heartbeat_interval_s: ["x", math.nan, math.inf, -5, 1e9],
    answers.c.answer: [*NOT_JSON, "[]"],
    services.c.pid: NOT_PROCESSES,
    workers.c.pid: NOT_PROCESSES,
    actions.c.input_parameters: [*NOT_JSON, "[]", '{"a": ' + "[" * 200 + "]" * 200 + "}"],
    actions.c.estimate_s: NOT_SECONDS,
    actions.c.timeout_s: NOT_SECONDS,
    imported_durations.c.seconds: NOT_SECONDS,
    actions.c.needs_any: [*NOT_JSON, '["a"]', "[[1]]", "{}"],
    actions.c.places: [*NOT_JSON, '["a"]', "[[1]]", "{}"],
    actions.c.triggers: [*NOT_JSON, *NOT_EVENTS],
    actions.c.blocked_by: [*NOT_JSON, *NOT_EVENTS],
    **{actions.c[name]: [*NOT_JSON, *NOT_TEXT_LISTS] for name in rows.ACTION_LINKS},
    action_states.c.state: NOT_WORDS,
    action_states.c.outcome: NOT_WORDS,
    action_states.c.state_reason: NOT_WORDS,
    attempts.c.state: NOT_WORDS,
    attempts.c.outcome: NOT_WORDS,
    requests_table.c.limits: [*NOT_JSON, *NOT_LIMITS],
    events.c.data: [*NOT_JSON, "[]"],
    subscriptions.c.held_back: [*NOT_JSON, "[]"],
    subscriptions.c.away: [*NOT_JSON, "[]"],
    dead_events.c.event: [*NOT_JSON, "[]"],
    worker_jobs.c.state: NOT_WORDS,
    worker_jobs.c.task: NOT_WORDS,
    worker_jobs.c.stop: NOT_WORDS,
    worker_jobs.c.payload: [*NOT_JSON, "[]"],
    worker_jobs.c.result: [*NOT_JSON, "[]"],
    workers.c.queues: [*NOT_JSON, *NOT_TEXT_LISTS],
    workers.c.types: [*NOT_JSON, *NOT_TEXT_LISTS],
}
#: By table and column: what is accepted there.
RIGHT: list[tuple[sa.Column[Any], Any]] = [
    (plans.c.state, "ONGOING"),
    (plans.c.on_failure, "pause"),
    (plans.c.claimant_pid, 4711),
    (plans.c.heartbeat_interval_s, 0.05),
    (plans.c.heartbeat_interval_s, float(ranges.LONGEST_S)),
    (plans.c.deleted_from, "FAILED"),
    (plans.c.limits, '{"node:*": 1, "type:nop": 20}'),
    (plans.c.limits, "{}"),
    (plans.c.guards, '{"approvals": 1}'),
    (plans.c.tolerances, '[{"name": "compute", "nodes": ["c-1"], "failed_nodes": 1}]'),
    (actions.c.estimate_s, 1.5),
    (imported_durations.c.seconds, 0),
    (plans.c.efficacy_indicators, "[1, {}]"),
    (actions.c.parents, '["a", "b"]'),
    (actions.c.needs_any, '[["a", "b"], []]'),
    (actions.c.triggers, '[["a", ["changed", "failed"]], ["b", []]]'),
    (actions.c.blocked_by, json.dumps([["a", [str(outcome) for outcome in Outcome]]])),
    (action_states.c.outcome, "changed"),
]
#: By type: what is accepted and what is refused in all other columns.
BY_TYPE: list[tuple[type, list[Any], list[Any]]] = [
    (Moment, ["2026-01-02 03:04:05.000000"], ["yesterday", "", 5]),
    (sa.Double, [0, -1.5, 2], ["x", math.nan, math.inf]),
    (sa.Integer, [0, 7], [-1, 1.5, "1"]),
    (sa.types.TypeEngine, ["", "text"], NOT_TEXTS),
]
COLUMNS = [column for table in metadata.sorted_tables for column in table.columns]


def wrong_with(column: sa.Column[Any], value: Any) -> list[str]:
    return list(damage.of_row(column.table, {column.name: value}))


def by_type(column: sa.Column[Any]) -> tuple[list[Any], list[Any]]:
    return next((right, wrong) for kind, right, wrong in BY_TYPE if isinstance(column.type, kind))


def test_what_does_not_belong_in_a_column_is_named_once_with_the_column():
    told = [
        (str(column), value, wrong_with(column, value))
        for column in COLUMNS
        for value in WRONG.get(column, by_type(column)[1])
    ]
    wrong = [
        (column, value, texts)
        for column, value, texts in told
        if len(texts) != 1 or not re.match(rf"{column.partition('.')[2]}\b.* (is|are) ", texts[0])
    ]
    assert not wrong


def test_what_belongs_in_a_column_is_not_named():
    right = [(c, value) for c in COLUMNS if c not in WRONG for value in by_type(c)[0]] + RIGHT
    wrong = [(str(column), value, wrong_with(column, value)) for column, value in right]
    assert not [found for found in wrong if found[2]]


def test_nothing_is_accepted_only_where_there_may_be_nothing():
    assert not [str(c) for c in COLUMNS if bool(wrong_with(c, None)) is c.nullable]


def test_what_nobody_should_read_is_not_shown():
    (told,) = wrong_with(actions.c.input_parameters, '{"password": "secret"')
    assert "secret" not in told
    (told,) = wrong_with(plans.c.limits, "x" * 1000)
    assert len(told) < 200
