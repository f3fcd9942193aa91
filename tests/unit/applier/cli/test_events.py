# SPDX-License-Identifier: Apache-2.0
"""Events are listed as people and as programs read them, and so are their subscriptions."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, timedelta

import jsonschema
import pytest
from sample_plans import new_plan
from store_checks.history_checks import entry

from applier.notifications import schema
from applier.notifications.schema import SCHEMA
from applier.storage.sql_store import SqlStore
from applier.store.entries import DeadEvent, Trouble
from planner.plan.states import PlanState

from .conftest import Run

CHECKED = jsonschema.Draft202012Validator(SCHEMA)
NOW = datetime.now(UTC)
LIST = ("event", "list")
SUBSCRIPTIONS = ("event", "subscription", "list")
REMOVE = ("event", "subscription", "remove")


@pytest.fixture
def changed(store: SqlStore) -> str:
    """Keep the events of a plan that was made, started, skipped in part and cancelled."""
    store.subscribe("webhook ops", now=NOW)
    plan = new_plan("a", "b", name="nightly")
    store.save_plan(plan, history=entry("create"))
    first = plan.actions[0].uuid
    store.skip_action(
        plan.uuid, first, now=NOW, message="skipped\x1b", history=entry("skip", "by hand", first)
    )
    store.move_plan(plan.uuid, PlanState.CANCELLED, now=NOW, message="not needed")
    return plan.uuid


def whole(store: SqlStore) -> list[dict[str, object]]:
    """Return the kept events with a value for each column."""
    return [{"action": None, **event} for event in store.latest_events(limit=100)]


def test_a_row_says_what_happened(run: Run, changed: str) -> None:
    code, out, err = run(*LIST)
    assert (code, err) == (0, "")
    head, _, *rows = out.splitlines()
    assert head.split() == ["number", "at", "plan", "type", "what", "message"]
    assert [row.split()[3] for row in rows] == [changed[:8]] * len(rows)
    told = [" ".join(row.split()[4:]) for row in rows]
    assert told[0] == "plan.history create by wanda"
    assert "plan.history skip by wanda by hand" in told
    (skipped,) = (row for row in told if row.startswith("action.state a"))
    assert skipped.endswith(" PENDING -> SKIPPED skipped\\x1b")
    assert told[-1] == "plan.state CANCELLED not needed"


def test_of_one_plan_its_uuid_is_left_out(run: Run, store: SqlStore, changed: str) -> None:
    store.save_plan(new_plan("c"), history=entry("create"))
    assert len(run(*LIST)[1].splitlines()) == len(run(*LIST, "nightly")[1].splitlines()) + 2
    assert changed[:8] not in run(*LIST, "nightly")[1]


def test_programs_get_the_events_as_they_are(run: Run, store: SqlStore, changed: str) -> None:
    events = json.loads(run(*LIST, changed, "-f", "json")[1])
    assert events == whole(store)
    for event in events:
        CHECKED.validate(event)
    text = io.StringIO(run(*LIST, "-f", "csv")[1])
    rows = list(csv.DictReader(text, escapechar="\\"))
    assert [json.loads(row["data"]) for row in rows] == [e["data"] for e in whole(store)]


@pytest.mark.parametrize(
    ("words", "numbers"),
    [
        (["--limit", "2"], slice(-2, None)),
        (["--after", "1", "--limit", "2"], slice(1, 3)),
        (["--after", "0"], slice(None)),
        (["--after", "2"], slice(2, None)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_the_latest_are_listed_or_those_that_follow_a_number(
    run: Run, store: SqlStore, changed: str, words: list[str], numbers: slice
) -> None:
    events = json.loads(run(*LIST, "-f", "json", *words)[1])
    assert events == whole(store)[numbers]


def test_what_was_given_up_is_listed_with_why(run: Run, store: SqlStore, changed: str) -> None:
    other = new_plan("c")
    store.save_plan(other, history=entry("create"))
    events = store.latest_events(limit=100)
    held = store.hold("webhook ops", "me", seen=None)
    assert held is not None
    dead = [
        DeadEvent(subscription=held.name, event=event, why="it answers 400", at=NOW)
        for event in (events[0], events[-1])
    ]
    store.record_delivery(held._replace(delivered=events[-1]["number"]), dead)
    _, out, _ = run(*LIST, "--dead")
    why = ["webhook", "ops", "it", "answers", "400"]
    assert out.split("\n")[0].split() == ["at", "number", "plan", "type", "subscription", "why"]
    assert [row.split()[2:] for row in out.splitlines()[2:]] == [
        [str(d.event["number"]), d.event["plan"][:8], d.event["type"], *why] for d in dead
    ]
    [listed] = json.loads(run(*LIST, "--dead", "nightly", "-f", "json")[1])
    assert (listed["plan"], listed["at"]) == (changed, NOW.isoformat())
    assert listed["event"] == events[0]
    assert schema.line(events[0]) in run(*LIST, "--dead", "-f", "value")[1]
    latest = json.loads(run(*LIST, "--dead", "--limit", "1", "-f", "json")[1])
    assert [d["plan"] for d in latest] == [other.uuid]


def test_numbers_and_dead_events_exclude_each_other(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        run(*LIST, "--dead", "--after", "3")
    assert "not allowed with argument --dead" in capsys.readouterr().err


def test_a_sentence_says_why_there_are_none(run: Run, store: SqlStore) -> None:
    plan = new_plan("a", name="nightly")
    store.save_plan(plan)
    code, out, err = run(*LIST)
    assert (code, err) == (0, "")
    assert out.startswith("No events are kept: nobody subscribes")
    assert run(*LIST, "nightly")[1].startswith("No events of this plan are kept: nobody ")
    assert run(*LIST, "--dead")[1] == "No events were given up.\n"
    store.subscribe("readers", now=NOW, until=NOW - timedelta(seconds=1))
    assert "nobody subscribes to them" in run(*LIST)[1]
    store.subscribe("readers", now=NOW, until=NOW + timedelta(days=1))
    nothing = "No events are kept: nothing has happened, or they were deleted.\n"
    assert run(*LIST)[1] == nothing
    assert run(*LIST, "--after", "7")[1] == "No events follow number 7.\n"
    assert run(*LIST, "-f", "json")[1].strip() == "[]"


def test_an_unknown_plan_is_refused(run: Run, changed: str) -> None:
    code, out, err = run(*LIST, "weekly")
    assert (code, out) == (1, "")
    assert "weekly" in err


def test_a_subscription_is_listed_with_what_waits_for_it(
    run: Run, store: SqlStore, changed: str
) -> None:
    store.subscribe("readers", now=NOW, until=NOW + timedelta(days=1))
    store.subscribe("file events.jsonl on control-1", now=NOW)
    held = store.hold("webhook ops", "me", seen=None)
    assert held is not None
    since = datetime.now(UTC) - timedelta(minutes=3)  # NOW may be an hour ago
    untried = Trouble(number=1, since=since, tries=0, why="")
    refused = Trouble(number=2, since=since, tries=4, why="it answers 400\x1b")
    changes = held._replace(delivered=3, held_back={changed: refused, "other": untried})
    assert store.record_delivery(changes)
    found = {s["name"]: s for s in json.loads(run(*SUBSCRIPTIONS, "-f", "json")[1])}
    newest = store.events().newest
    assert found["webhook ops"] == {
        "name": "webhook ops",
        "kind": "receiver",
        "until": None,
        "waiting": newest - 3 + 2,  # the second and the third are held back
        "held back": 2,
        "why": "it answers 400\x1b",
        "since": since.isoformat(),
    }
    assert found["readers"]["kind"] == "reader"
    assert found["readers"]["until"] == (NOW + timedelta(days=1)).isoformat()
    assert found["readers"]["waiting"] is None
    assert found["file events.jsonl on control-1"]["waiting"] == 0
    code, out, err = run(*SUBSCRIPTIONS)
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 100
    assert "s ago" in out
    assert "\x1b" not in out


def test_a_receiver_that_is_away_says_so_first(run: Run, store: SqlStore) -> None:
    store.subscribe("ops", now=NOW)
    held = store.hold("ops", "me", seen=None)
    assert held is not None
    trouble = Trouble(number=1, since=NOW, tries=1, why="it answers 400")
    away = trouble._replace(why="Connection refused")
    assert store.record_delivery(held._replace(away=away, held_back={"one": trouble}))
    [found] = json.loads(run(*SUBSCRIPTIONS, "-f", "json")[1])
    assert found["why"] == "Connection refused"


def test_a_subscription_is_removed_by_its_name(run: Run, store: SqlStore) -> None:
    assert run(*SUBSCRIPTIONS)[1].startswith("Nobody subscribes to events.\n")
    code, out, err = run(*REMOVE, "webhook ops")
    assert (code, out) == (1, "")
    assert err.startswith("Refused: webhook ops: ")
    assert err.endswith("Known: none\n")
    store.subscribe("webhook ops", now=NOW)
    _, _, err = run(*REMOVE, "webhook op")
    assert "did you mean 'webhook ops'?" in err
    code, out, err = run(*REMOVE, "webhook ops")
    assert (code, err) == (0, "")
    assert "'webhook ops' is removed" in out
    assert store.subscriptions() == []
