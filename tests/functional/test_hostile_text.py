# SPDX-License-Identifier: Apache-2.0
"""Text that would command a terminal goes into every field and every verb, and none comes out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import ROOT, CommandLine, Ended

from applier.storage.sql_store import SqlStore
from applier.store.entries import DeadEvent, Trouble
from applier.store.worker_jobs import Worker
from planner import make_plan
from planner.plan.model import ActionPlan
from planner.plan.states import ActionState
from planner.safe_text import HIDDEN

#: Sets the title of a window, moves the cursor, turns the direction of text, hides letters.
HOSTILE = "x\x1b]0;owned\x07\x9b2J\x7f\r\x08\u202e\u2066\u200b\ufeff\u2028z"
PLAN = "00000000-0000-4000-8000-000000000001"
RAN = "00000000-0000-4000-8000-000000000002"
#: The formats of a value and of rows.
FORMS = {"FORMATS": "table,json,yaml", "ROWS": "table,json,yaml,csv,value"}
#: For each verb, arguments with which it shows what is in the record and in the files, or refuses.
LINES = yaml.safe_load((ROOT / "tests/cases/cli/hostile_text.yaml").read_text(encoding="utf-8"))


def lines_of(verb: str) -> Iterator[list[str]]:
    """Yield the command lines of a verb, one for each format."""
    texts = {"H": HOSTILE, "PLAN": PLAN, "RAN": RAN}
    for line in LINES[verb].split(";"):
        *words, last = line.split() or [""]
        forms = FORMS.get(last, last).split(",") if "-f" in words else [last]
        for form in forms:
            given = (re.sub("PLAN|RAN|H", lambda m: texts[m[0]], w) for w in (*words, form) if w)
            yield [*verb.split(), *given]


def fields(value: Any) -> Any:
    """Put the hostile text into every text of a saved plan that may be any text."""
    kept = ("uuid", "state", "version", "outcome", "state_reason", "on_failure", "action_type")
    kept += ("parents", "needs", "needs_any", "triggers", "blocked_by")
    if isinstance(value, dict):
        return {
            key: found if key in kept or key.endswith("_at") else fields(found)
            for key, found in value.items()
            if key != "digest"
        }
    if isinstance(value, list):
        return [fields(entry) for entry in value]
    return f"{value}{HOSTILE}" if isinstance(value, str) else value


def hostile_plan(uuid: str, **changes: Any) -> ActionPlan:
    """Return a plan with the hostile text in all its fields."""
    indicator = {"name": "n", "description": "d", "unit": "u", "value": 1}
    document = {
        "name": "p",
        "actions": [
            {"name": "a", "action_type": "nop", "input_parameters": {"message": "m"}},
            {"name": "b", "action_type": "nop", "resource_id": "r", "touches": ["node:n"]},
        ],
        "limits": {"node:n": 1},
        "audit_uuid": "a",
        "strategy_name": "s",
        "efficacy_indicators": [indicator],
        "global_efficacy": [indicator],
    }
    value = fields(json.loads(json.dumps(make_plan(document).to_dict()))) | {"uuid": uuid}
    value["warnings"], value["status_message"] = [HOSTILE], HOSTILE
    first, second = value["actions"]
    first |= {"name": HOSTILE, "reason": HOSTILE, "status_message": HOSTILE, **changes}
    second |= {"needs": [first["uuid"]], "tokens": [f"node:{HOSTILE}"]}
    return ActionPlan.from_dict(value)


def changed_plan() -> dict[str, Any]:
    """Return the saved plan PLAN with other hostile texts, so that every field differs."""
    value = hostile_plan(PLAN).to_dict()
    for action in value["actions"]:
        action["tokens"] = [f"node:{HOSTILE}{HOSTILE}"]
        action["input_parameters"] = {HOSTILE: HOSTILE}
    value["actions"][1] |= {"needs": [], "parents": value["actions"][1]["needs"]}
    value["limits"], value["planner"] = {f"{HOSTILE}:*": 1}, f"{HOSTILE}{HOSTILE}"
    return {key: found for key, found in value.items() if key != "digest"}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory, entry_point_cache: Path) -> CommandLine:
    """Return a command line whose record, files and configuration are full of hostile text."""
    line = CommandLine(tmp_path_factory.mktemp("hostile"), entry_point_cache)
    line.configure(actionplan={"simulator_speed": 1000}, profiler={"a": HOSTILE.split("\r")[0]})
    document = {"actions": [{"name": HOSTILE, "action_type": "nop"}], "name": HOSTILE}
    took = {"action_type": f"t{HOSTILE}", "size": HOSTILE, "node": HOSTILE, "seconds": [1.0]}
    files = {
        "hostile.json": document,
        "durations.json": {"durations": [took]},
        "keys.json": {**document, HOSTILE: 1, "actions": [{HOSTILE: 1, "action_type": HOSTILE}]},
        "changed.json": changed_plan(),
        "keys-of-a-plan.json": {**hostile_plan(PLAN).to_dict(), HOSTILE: 1},
        f"{HOSTILE}.json": {"actions": HOSTILE},
    }
    for name, value in files.items():
        (line.folder / name).write_text(json.dumps(value), encoding="utf-8")
    output = {"argv": ["printf", "%s", HOSTILE]}
    shell = {"name": HOSTILE, "action_type": "shell", "input_parameters": output}
    line.good("list")
    store = SqlStore(f"sqlite:///{line.record}")
    store.save_plan(hostile_plan(PLAN))
    made = make_plan({"name": HOSTILE, "actions": [shell]})
    store.save_plan(ActionPlan.from_dict({**made.to_dict(), "uuid": RAN}))
    subscribe(store)
    store.report_worker(hostile_worker())
    line.environment["TEST_USER"] = HOSTILE
    line.good("apply", RAN, "--yes")
    line.good("duration", "import", "durations.json")
    text = line.good("export", RAN).replace(RAN, RAN.replace("2", "3"))
    (line.folder / "exported.json").write_text(text, encoding="utf-8")
    give_up(store)
    store.close()
    return line


def subscribe(store: SqlStore) -> None:
    """Have events recorded for a receiver with a hostile name, and for one beside it."""
    for name in (f"ops {HOSTILE}", "second"):
        store.subscribe(name, now=datetime.now(UTC))


def hostile_worker() -> Worker:
    """Return a worker that says hostile things of itself."""
    names: dict[str, Any] = dict.fromkeys(("host", "user", "version", "cloud"), HOSTILE)
    lists = {"queues": [HOSTILE], "types": [HOSTILE]}
    return Worker(f"w-{HOSTILE}", pid=1, places=1, **lists, **names)


def give_up(store: SqlStore) -> None:
    """Let the receiver refuse all events with a hostile answer, and give one up."""
    (receiver, *_) = store.subscriptions()
    held = store.hold(receiver.name, "holder", seen=None)
    assert held is not None
    events, at = store.latest_events(limit=100), datetime.now(UTC)
    assert any(HIDDEN.search(e["data"].get("name", "")) for e in events)
    assert any(HIDDEN.search(e["data"].get("who", "")) for e in events)
    refused = Trouble(number=1, since=at, tries=1, why=f"it answers {HOSTILE}")
    dead = [
        DeadEvent(subscription=held.name, event=event, why=refused.why, at=at) for event in events
    ]
    store.record_delivery(held._replace(held_back={RAN: refused}), dead)


def bad(ended: Ended) -> list[str]:
    """Return the hidden characters in what was printed."""
    return HIDDEN.findall(ended.out + ended.err)


VERBS = sorted(e.name.replace("_", " ") for e in entry_points(group="actionplan.cli"))


def test_each_verb_has_its_lines():
    assert sorted(LINES) == VERBS


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_shows_no_hidden_character(hostile, verb):
    wrong = ((HOSTILE,), (HOSTILE,) * 3, (f"--{HOSTILE}",), ("-f", HOSTILE))
    for line in (*lines_of(verb), *([*verb.split(), *words] for words in wrong)):
        ended = hostile(*line)
        assert not bad(ended), (line, ended)
        assert ended.code in (0, 1, 2, 3, 4, 5), line


def test_what_is_no_verb_shows_no_hidden_character(hostile):
    for words in (
        (HOSTILE,),
        ("help", HOSTILE),
        ("--config-file", HOSTILE, "list"),
        ("--log-file", f"no/{HOSTILE}", "list"),
        (f"--{HOSTILE}",),
        ("complete", HOSTILE),
    ):
        assert not bad(hostile(*words)), words


def test_a_log_shows_no_hidden_character(hostile):
    ended = hostile("-vv", "--log-file", "log", "apply", "hostile.json", "--yes")
    assert (ended.code, bad(ended)) == (0, [])
    assert not HIDDEN.findall((hostile.folder / "log").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("form", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_json_and_yaml_keep_the_text_as_it_is(hostile, form, read):
    plan = read(hostile.good("show", PLAN, "-f", form))
    assert plan["actions"][0]["name"] == plan["warnings"][0] == HOSTILE
    action = read(hostile.good("action", "show", RAN, HOSTILE, "-f", form))
    assert action["output"] == HOSTILE
    assert read(hostile.good("action", "list", PLAN, "-f", form))[0]["name"] == HOSTILE
    events = read(hostile.good("event", "list", RAN, "-f", form))
    assert HOSTILE in {event["data"].get("name") for event in events}


def test_a_terminal_gets_only_what_the_program_itself_draws(hostile):
    plan = make_plan({"name": HOSTILE, "actions": [{"name": HOSTILE, "action_type": "nop"}] * 1})
    with hostile.store() as store:
        store.save_plan(plan)
    with hostile.on_terminal("apply", plan.uuid) as terminal:
        terminal.wait_for("[y/N]")
        terminal.type("y\n")
        assert terminal.end() == 0
        seen = terminal.seen
    assert plan.uuid[:8] in seen
    assert "\x1b]" not in seen
    assert set(HIDDEN.findall(seen)) <= {"\x1b", "\r"}
    assert ActionState.SUCCEEDED in seen
