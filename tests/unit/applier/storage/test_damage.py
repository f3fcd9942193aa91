# SPDX-License-Identifier: Apache-2.0
"""Each value of a row that does not belong in its column is named, and nothing else is."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from applier.storage import damage, rows
from applier.storage.schema import TABLES
from planner.plan.states import Outcome
from planner.schemas import ranges

NOT_TEXTS = [5, b"\xff", "\ud800"]
NOT_JSON = ["{", "[1", "", 5, "[" * 100_000]
NOT_LIMITS = ['{"node:1": 0}', '{"node:1": true}', '{"node:1": "2"}', "[]"]
NOT_TEXT_LISTS = ["{}", "[1]", '"a"', '["a", null]']
NOT_EVENTS = ['[["a"]]', '[["a", ["no"]]]', '[[1, ["ok"]]]', '[["a", "ok"]]', "[5]", "{}"]
NOT_SECONDS = ["x", math.nan, math.inf, -1.5]
NOT_PROCESSES = [-3, 2**40, "7", 1.5]
NOT_WORDS = ["", "SUCCEEDED ", "nonsense", 5]
OVERVIEW = (
    '{"actions":1,"waves":1,"widest":1,"alone_s":null,"touched":{"node":1},"guarantees":[],'
    '"outside":["shell"],"shown":[[1,{"shell":1},"h",2.5]]}'
)
#: By table and column: what is refused there.
WRONG: dict[str, list[Any]] = {
    "plan.state": NOT_WORDS,
    "plan.on_failure": NOT_WORDS,
    "plan.deleted_from": NOT_WORDS,
    "plan.limits": [*NOT_JSON, *NOT_LIMITS],
    "plan.guards": [*NOT_JSON, "[]", '{"windows": [5]}', '{"extent": 5}'],
    "plan.places": [*NOT_JSON, "[]", '{"a": 1}', '{"a": {"keep": 1}}'],
    "plan.overview": [*NOT_JSON, "{}", "[]", OVERVIEW.replace("1", '"1"'), f"[{OVERVIEW}]"],
    "plan.warnings": [*NOT_JSON, *NOT_TEXT_LISTS],
    "plan.tolerances": [*NOT_JSON, "[1]", "{}", '[{"x": 1}]', '[{"name": "a", "nodes": [1]}]'],
    "plan.efficacy_indicators": [*NOT_JSON, "{}"],
    "plan.global_efficacy": [*NOT_JSON, "{}"],
    "plan.claimant_pid": NOT_PROCESSES,
    "plan.heartbeat_interval_s": ["x", math.nan, math.inf, -5, 1e9],
    "answer.answer": [*NOT_JSON, "[]"],
    "service.pid": NOT_PROCESSES,
    "worker.pid": NOT_PROCESSES,
    "action.input_parameters": [*NOT_JSON, "[]", '{"a": ' + "[" * 200 + "]" * 200 + "}"],
    "action.estimate_s": NOT_SECONDS,
    "action.timeout_s": NOT_SECONDS,
    "duration.seconds": NOT_SECONDS,
    "action.needs_any": [*NOT_JSON, '["a"]', "[[1]]", "{}"],
    "action.places": [*NOT_JSON, '["a"]', "[[1]]", "{}"],
    "action.triggers": [*NOT_JSON, *NOT_EVENTS],
    "action.blocked_by": [*NOT_JSON, *NOT_EVENTS],
    **{f"action.{name}": [*NOT_JSON, *NOT_TEXT_LISTS] for name in rows.ACTION_LINKS},
    "action_state.state": NOT_WORDS,
    "action_state.outcome": NOT_WORDS,
    "action_state.state_reason": NOT_WORDS,
    "attempt.state": NOT_WORDS,
    "attempt.outcome": NOT_WORDS,
    "request.limits": [*NOT_JSON, *NOT_LIMITS],
    "event.data": [*NOT_JSON, "[]"],
    "subscription.held_back": [*NOT_JSON, "[]"],
    "subscription.away": [*NOT_JSON, "[]"],
    "dead_event.event": [*NOT_JSON, "[]"],
    "worker_job.state": NOT_WORDS,
    "worker_job.task": NOT_WORDS,
    "worker_job.stop": NOT_WORDS,
    "worker_job.payload": [*NOT_JSON, "[]"],
    "worker_job.result": [*NOT_JSON, "[]"],
    "worker.queues": [*NOT_JSON, *NOT_TEXT_LISTS],
    "worker.types": [*NOT_JSON, *NOT_TEXT_LISTS],
}
#: By table and column: what is accepted there.
RIGHT: list[tuple[str, Any]] = [
    ("plan.state", "ONGOING"),
    ("plan.on_failure", "pause"),
    ("plan.claimant_pid", 4711),
    ("plan.heartbeat_interval_s", 0.05),
    ("plan.heartbeat_interval_s", float(ranges.LONGEST_S)),
    ("plan.deleted_from", "FAILED"),
    ("plan.limits", '{"node:*": 1, "type:nop": 20}'),
    ("plan.limits", "{}"),
    ("plan.overview", OVERVIEW),
    ("plan.guards", '{"approvals": 1}'),
    ("plan.tolerances", '[{"name": "compute", "nodes": ["c-1"], "failed_nodes": 1}]'),
    ("action.estimate_s", 1.5),
    ("duration.seconds", 0),
    ("plan.efficacy_indicators", "[1, {}]"),
    ("action.parents", '["a", "b"]'),
    ("action.needs_any", '[["a", "b"], []]'),
    ("action.triggers", '[["a", ["changed", "failed"]], ["b", []]]'),
    ("action.blocked_by", json.dumps([["a", [str(outcome) for outcome in Outcome]]])),
    ("action_state.outcome", "changed"),
]
#: By kind: what is accepted and what is refused in all other columns.
BY_KIND: dict[str, tuple[list[Any], list[Any]]] = {
    "moment": (["2026-01-02 03:04:05.000000"], ["yesterday", "", 5]),
    "double": ([0, -1.5, 2], ["x", math.nan, math.inf]),
    "integer": ([0, 7], [-1, 1.5, "1"]),
    "text": (["", "text"], NOT_TEXTS),
}
COLUMNS = {
    f"{table.removeprefix('actionplan_')}.{name}": column
    for table, columns in TABLES.items()
    for name, column in columns.items()
}


def wrong_with(column: str, value: Any) -> list[str]:
    table, _, name = column.partition(".")
    return list(damage.of_row(f"actionplan_{table}", {name: value}))


def by_kind(column: str) -> tuple[list[Any], list[Any]]:
    return BY_KIND[COLUMNS[column].kind]


def test_what_does_not_belong_in_a_column_is_named_once_with_the_column():
    told = [
        (column, value, wrong_with(column, value))
        for column in COLUMNS
        for value in WRONG.get(column, by_kind(column)[1])
    ]
    wrong = [
        (column, value, texts)
        for column, value, texts in told
        if len(texts) != 1 or not re.match(rf"{column.partition('.')[2]}\b.* (is|are) ", texts[0])
    ]
    assert not wrong


def test_what_belongs_in_a_column_is_not_named():
    right = [(c, value) for c in COLUMNS if c not in WRONG for value in by_kind(c)[0]] + RIGHT
    wrong = [(column, value, wrong_with(column, value)) for column, value in right]
    assert not [found for found in wrong if found[2]]


def test_nothing_is_accepted_only_where_there_may_be_nothing():
    assert not [c for c in COLUMNS if bool(wrong_with(c, None)) is COLUMNS[c].nullable]


def test_what_nobody_should_read_is_not_shown():
    (told,) = wrong_with("action.input_parameters", '{"password": "secret"')
    assert "secret" not in told
    (told,) = wrong_with("plan.limits", "x" * 1000)
    assert len(told) < 200
