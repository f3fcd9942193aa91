# SPDX-License-Identifier: Apache-2.0
"""What automation does with ``/v2``: the application in this process, plans by the command line."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

from api_client import (
    DOCUMENT,
    HOST,
    JSON,
    SHELL,
    administrators,
    is_problem,
    post,
    stored,
)
from falcon.testing import Result

from applier.api.v2 import plans
from applier.contracts import Claimant
from applier.storage.sql_store import SqlStore


def test_a_plan_of_a_document_is_stored_once_and_shown_whole(api, actionplan):
    made = post(api, "/v2/plans", DOCUMENT)
    assert made.status_code == 201
    assert made.headers["location"].endswith(f"/v2/plans/{made.json['uuid']}")
    shown = api.simulate_get(f"/v2/plans/{made.json['uuid']}")
    assert shown.json == made.json
    assert shown.json == json.loads(actionplan.good("show", "night", "-f", "json"))
    assert is_problem(post(api, "/v2/plans", made.json), 409, "already in the record")
    names = [f"a{i}" for i in range(300)]
    uuid = stored(api, {"actions": [{"name": n, "action_type": "nop"} for n in names]})
    shown = api.simulate_get(f"/v2/plans/{uuid}")
    assert [a["name"] for a in shown.json["actions"]] == names
    # It is sent piece by piece.
    assert "content-length" not in shown.headers
    seen: list[str] = []
    path = f"/v2/plans/{uuid}/actions?limit=149"
    while path:
        page = api.simulate_get(path).json
        seen += [action["name"] for action in page["items"]]
        path = page.get("next", "").partition(HOST)[2]
    assert seen == names


def test_a_document_may_be_yaml_and_options_go_into_the_query(api):
    text = "actions:\n- {action_type: nop}\n- {action_type: nop}\n"
    kinds = {"Content-Type": "application/yaml"}
    options = {"set": ["nop.parallelization=2", "on_failure=pause"], "dry_run": "true"}
    made = api.simulate_post("/v2/plans", body=text, headers=kinds, params=options)
    assert made.status_code == 200
    assert [action["parents"] for action in made.json["actions"]] == [[], []]
    assert made.json["on_failure"] == "pause"
    assert api.simulate_get("/v2/plans").json == {"items": [], "total": 0}


def test_mistakes_have_their_places_and_are_told_at_once(api):
    text = "actions:\n- {action_type: nop}\n- {action_type: nope}\n- {type: nop}\n"
    made = api.simulate_post("/v2/plans", body=text, headers={"Content-Type": "text/yaml"})
    assert is_problem(made, 400, "nope")
    places = [(e["pointer"], e["place"]) for e in made.json["errors"]]
    assert ("/actions/1/action_type", "body:3") in places
    assert {place for _, place in places} == {"body:3", "body:4"}
    wrong = {"limit": "0", "state": "GONE", "stat": "FAILED"}
    answer = api.simulate_get("/v2/plans", params=wrong)
    assert is_problem(answer, 400, "did you mean 'state'?")
    assert [e["place"] for e in answer.json["errors"]] == [f"query {name}" for name in wrong]
    for cloud in ("openstack", "nope"):
        refused = post(api, f"/v2/plans?facts_from={cloud}", {"kind": "solution", "actions": []})
        assert refused.status_code in (400, 422), refused.text
    assert api.simulate_get("/v2/plans").json["total"] == 0


def test_who_asked_and_why_is_on_record(api):
    uuid = post(api, "/v2/plans?why=fans", DOCUMENT).json["uuid"]
    done = post(api, f"/v2/plans/{uuid}/actions/second/skip", {"why": "by hand"})
    assert done.status_code == 200, done.text
    assert done.json["messages"][-1].endswith("second is SKIPPED.")
    shown = api.simulate_get(f"/v2/plans/{uuid}/actions/second").json
    assert shown["status_message"] == "skipped by anonymous: by hand"
    post(api, f"/v2/plans/{uuid}/start", {"why": "now"})
    changes = api.simulate_get(f"/v2/plans/{uuid}/history").json["items"]
    assert [(c["verb"], c["who"], c["why"]) for c in changes] == [
        ("create", "anonymous", "fans"),
        ("skip", "anonymous", "by hand"),
        ("start", "anonymous", "now"),
    ]
    assert changes[1]["request_id"] == done.headers["x-openstack-request-id"]
    rest = api.simulate_get("/v2/history", params={"after": changes[0]["number"]}).json
    assert rest == {"items": changes[1:]}


def test_a_whole_life(api, actionplan):
    uuid = stored(api)
    assert is_problem(post(api, f"/v2/plans/{uuid}/rollback"), 409, "")
    assert post(api, f"/v2/plans/{uuid}/start").json["state"] == "PENDING"
    for verb in ("start", "rollback"):
        assert is_problem(post(api, f"/v2/plans/{uuid}/{verb}"), 409, "is PENDING")
    actionplan.good("apply", uuid, "--yes")
    assert api.simulate_get(f"/v2/plans/{uuid}").json["state"] == "SUCCEEDED"
    undo = post(api, f"/v2/plans/{uuid}/rollback")
    assert is_problem(undo, 409, "nothing that it did can be undone")
    assert is_problem(post(api, f"/v2/plans/{uuid}/cancel"), 409, "nothing is left to cancel")
    assert api.simulate_delete(f"/v2/plans/{uuid}").status_code == 204
    assert api.simulate_get("/v2/plans").json["items"] == []
    assert api.simulate_get("/v2/plans", params={"state": "DELETED"}).json["total"] == 1
    back = post(api, f"/v2/plans/{uuid}/undelete", {"why": "too early"})
    assert (back.status_code, back.json["state"]) == (200, "SUCCEEDED")
    assert is_problem(post(api, f"/v2/plans/{uuid}/undelete"), 409, "it is not deleted")


def test_plans_are_filtered_and_counted_as_far_as_is_said(api, monkeypatch):
    uuid = stored(api)
    (plan,) = api.simulate_get("/v2/plans").json["items"]
    creator, made = plan["creator"], plan["created_at"]
    assert creator

    def listed(**query: str) -> list[str]:
        found = api.simulate_get("/v2/plans", params=query).json
        assert found["total"] == len(found["items"])
        return [plan["uuid"] for plan in found["items"]]

    assert listed(planner="weight", creator=creator, since=made) == [uuid]
    for _ in range(3):
        stored(api)
    with monkeypatch.context() as patched:
        patched.setattr(plans, "COUNTED", 3)
        for limit in (1, 2, 3, 9):
            found = api.simulate_get("/v2/plans", params={"limit": str(limit)}).json
            assert (len(found["items"]), found["total"]) == (min(limit, 4), 3), limit
    assert listed(creator="nobody") == listed(until=made) == listed(planner="events") == []
    wrong = api.simulate_get("/v2/plans", params={"since": "soon", "until": "2026-02-30T00:00:00Z"})
    assert is_problem(wrong, 400, "")
    assert {m["place"] for m in wrong.json["errors"]} == {
        "query since",
        "query until",
    }


def test_a_list_has_pages_filters_and_chosen_fields(api):
    names = ["night", "Nightly", "noon", "noon", "noon"]
    uuids = [stored(api, {**DOCUMENT, "name": name}) for name in names][::-1]

    def pages(path: str) -> list[dict[str, Any]]:
        found = []
        while path:
            page = api.simulate_get(path).json
            assert page.get("total") in (None, len(names))
            found += page["items"]
            path = page.get("next", "").partition(HOST)[2]
        return found

    assert [plan["uuid"] for plan in pages("/v2/plans?limit=2&creator=anonymous")] == uuids
    fields = pages("/v2/plans?limit=2&fields=name,state&fields=planner")
    assert fields[0].keys() == {"uuid", "name", "state", "planner"}
    for query, found in (
        ("name=noon", 3),
        ("search=NIGHT", 2),
        ("name=nigh", 0),
        ("search=%25", 0),
    ):
        assert api.simulate_get(f"/v2/plans?{query}").json["total"] == found, query
    removed = f"/v2/plans/{uuids[0]}"
    assert api.simulate_delete(removed).status_code == 204
    rest = api.simulate_get("/v2/plans", params={"after": uuids[0], "limit": "1"}).json
    assert [plan["uuid"] for plan in rest["items"]] == [uuids[1]]
    for wrong, said in (("after=x", "no plan 'x'"), ("fields=nam", "name")):
        assert is_problem(api.simulate_get(f"/v2/plans?{wrong}"), 400, said)
    actions = api.simulate_get(f"/v2/plans/{uuids[1]}/actions?fields=name&limit=1").json
    assert actions["items"][0].keys() == {"uuid", "name"}
    for path, changes in (("/v2/history", 6), (f"{removed}/history", 2)):
        seen, numbers = f"{path}?limit=1", []
        while seen:
            page = api.simulate_get(seen).json
            numbers += [entry["number"] for entry in page["items"]]
            seen = page.get("next", "").partition(HOST)[2]
        assert numbers == sorted(numbers, reverse=True)
        assert len(numbers) == changes


def test_no_list_of_plans_loads_one(api, monkeypatch):
    for _ in range(3):
        stored(api)
    for load in ("load_plan", "plan_heads"):
        monkeypatch.setattr(f"applier.storage.sql_store.SqlStore.{load}", None)
    assert len(api.simulate_get("/v2/plans?limit=2").json["items"]) == 2


def test_every_answer_has_a_tag_and_large_ones_are_compressed(actionplan):
    api = administrators(actionplan)
    names = [f"a{i}" for i in range(101)]
    uuid = stored(api, {"actions": [{"name": n, "action_type": "nop"} for n in names]})
    described = api.simulate_get("/v2/openapi.json").json["paths"]
    values = {"plan": uuid, "new": uuid, "action": "a1", "name": "migrate"}
    for path in (path.format(**values) for path, methods in described.items() if "get" in methods):
        plain = api.simulate_get(path)
        assert plain.status_code == 200, plain.text
        assert ("etag" in plain.headers) == (not path.endswith("report.html"))
        if path.endswith(("report.html", "rehearsal")):
            continue  # one says when it was made, the other takes long
        tag = plain.headers["etag"]
        same = api.simulate_get(path, headers={"If-None-Match": tag})
        assert (same.status_code, same.text, same.headers["etag"]) == (304, "", tag), path
        assert same.headers["vary"] == "Accept-Encoding"
        packed = api.simulate_get(path, headers={"Accept-Encoding": "gzip"})
        assert packed.headers["vary"] == "Accept-Encoding"
        if len(plain.content) < 1000:
            assert "content-encoding" not in packed.headers
        else:
            assert packed.headers["content-encoding"] == "gzip", path
            assert len(packed.content) < len(plain.content) / 2
        whole = packed.content
        if "content-encoding" in packed.headers:
            whole = gzip.decompress(whole)
            # Other bytes have another strong tag.
            coded = packed.headers["etag"]
            assert (coded != tag) == tag.startswith('"'), path
            same = api.simulate_get(path, headers={"If-None-Match": coded})
            assert (same.status_code, same.headers["etag"]) == (304, coded)
        assert whole == plain.content, path
        head = api.simulate_head(path, headers={"Accept-Encoding": "gzip"})
        assert (head.content, head.headers["etag"]) == (b"", packed.headers["etag"])
    plan = api.simulate_get(f"/v2/plans/{uuid}", headers={"Accept-Encoding": "gzip"})
    skipped = f"/v2/plans/{uuid}/actions/a1/skip"
    tag = {"If-Match": plan.headers["etag"]}
    assert post(api, skipped, {"why": "x"}, **tag).status_code == 200
    assert post(api, skipped, {"why": "x"}, **tag).status_code == 412
    started = post(api, f"/v2/plans/{uuid}/start")
    assert started.headers["etag"] == api.simulate_get(f"/v2/plans/{uuid}").headers["etag"]


def test_only_the_present_strong_tag_of_a_plan_matches(api):
    uuid = stored(api)
    path = f"/v2/plans/{uuid}"
    before = api.simulate_get(path).headers["etag"]
    post(api, f"{path}/actions/first/skip", {"why": "x"})
    tag = api.simulate_get(path).headers["etag"]
    for wrong in (before, f"W/{tag}", tag.strip('"'), '"*"', '"a"', "", f'"a", W/{tag}'):
        assert is_problem(post(api, f"{path}/start", **{"If-Match": wrong}), 412, "changed"), wrong
    for known in (tag, f"W/{tag}"):
        same = api.simulate_get(path, headers={"If-None-Match": known})
        assert (same.status_code, same.text) == (304, "")
    for verb, right in (("start", f'"a", {tag}'), ("cancel", "*")):
        assert post(api, f"{path}/{verb}", **{"If-Match": right}).status_code == 200


def test_a_tag_changes_with_all_that_is_shown_of_a_plan(api, actionplan):
    uuid = stored(api)
    path = f"/v2/plans/{uuid}"
    store = SqlStore(f"sqlite:///{actionplan.record}")
    runner = Claimant(host="elsewhere", pid=1, user="ada")
    changes: dict[str, Callable[[], Any]] = {
        "approve": lambda: post(api, f"{path}/approve", {"why": "looked at"}),
        "start": lambda: post(api, f"{path}/start"),
        "run": lambda: store.claim_plan(uuid, runner, now=datetime.now(UTC)),
        "limits": lambda: post(api, f"{path}/limits", {"limits": {"max_workers": 2}}),
        "pause": lambda: post(api, f"{path}/pause"),
    }
    seen = set()
    with closing(store):
        for verb, change in changes.items():
            tag = api.simulate_get(path).headers["etag"]
            made = change()
            if isinstance(made, Result):
                assert made.status_code == 200, made.text
            seen.add(tag)
            late = post(api, f"{path}/approve", {"why": "x"}, **{"If-Match": tag})
            assert is_problem(late, 412, "changed"), verb
    assert len(seen) == len(changes)


def test_nobody_stores_or_imports_commands_without_the_role(api, actionplan):
    secret = {"message": {"secret": "env A"}}
    for document in (SHELL, {"actions": [{"action_type": "nop", "input_parameters": secret}]}):
        assert is_problem(post(api, "/v2/plans", document), 403, "plan:create_with_commands")
    assert api.simulate_get("/v2/plans").json["total"] == 0
    may = administrators(actionplan, command_role="operator")
    exported = may.simulate_get(f"/v2/plans/{stored(may, SHELL)}/export").json
    actionplan.record.unlink()
    refused = post(administrators(actionplan), "/v2/imports", exported)
    assert is_problem(refused, 403, "plan:create_with_commands")
    assert actionplan.plans() == []


def test_no_file_of_the_machine_is_read(api, actionplan):
    for name in ("tasks_files", "changed_since"):
        document = {"kind": "deployment", "nodes": [], name: str(actionplan.configuration)}
        answer = post(api, "/v2/plans", document)
        assert is_problem(answer, 400, "no files are read for a request")
    nodes = {"from": str(actionplan.configuration)}
    document = {"kind": "rollout", "name": "x", "nodes": nodes, "steps": [{"nop": "x"}]}
    assert is_problem(post(api, "/v2/plans", document), 400, "nodes.document")
    tasks, nodes = [{"id": "begin", "type": "anchor"}], [{"uid": "1", "roles": ["a"]}]
    stored(api, {"kind": "deployment", "name": "whole", "tasks": tasks, "nodes": nodes})


def test_pictures_forecasts_differences_and_reasons(api):
    uuid, new = stored(api), stored(api, {**DOCUMENT, "actions": DOCUMENT["actions"][:1]})
    for picture in ("graph", "timeline"):
        drawn = api.simulate_get(f"/v2/plans/{uuid}/{picture}.svg")
        assert drawn.headers["content-type"] == "image/svg+xml"
        assert "first" in drawn.text
    found = api.simulate_get(f"/v2/plans/{uuid}/diff/{new}").json
    assert "second" in json.dumps(found["removed"])
    assert api.simulate_get(f"/v2/plans/{uuid}/simulate").json["makespan_s"] >= 0
    why = api.simulate_get(f"/v2/plans/{uuid}/actions/second/why").json["lines"]
    assert "second is expected to start" in why[0]
    assert api.simulate_get(f"/v2/plans/{uuid}/actions/first/output").text == ""


def test_what_is_installed_is_listed(api):
    planners = {p["name"]: p["kind"] for p in api.simulate_get("/v2/planners").json["items"]}
    assert planners["rolling_update"] == "rolling_update"
    types = [t["name"] for t in api.simulate_get("/v2/action-types").json["items"]]
    assert "migrate" in types
    known = api.simulate_get("/v2/schemas").json
    assert {"plan", "solution"} <= set(known["documents"])
    assert api.simulate_get("/v2/schemas/migrate").json["type"] == "object"
    assert is_problem(api.simulate_get("/v2/schemas/migrat"), 404, "did you mean 'migrate'?")
    assert api.simulate_get("/v2/services").json == {"items": []}


def test_what_is_not_there_or_may_not_be_done_is_a_problem(api):
    for path, said in (
        ("/v2/plans/nope", "no plan 'nope'"),
        ("/v2/nope", "there is no such path"),
        ("/v2", "there is no such path"),
    ):
        assert is_problem(api.simulate_get(path), 404, said)
    assert is_problem(post(api, "/v2/plans/nope/start"), 404, "no plan 'nope'")
    not_taken = api.simulate_put("/v2/plans")
    assert is_problem(not_taken, 405, "the header Allow")
    assert not_taken.headers["allow"] == "GET, HEAD, POST, OPTIONS"
    plain = api.simulate_post("/v2/plans", body="{}", headers={"Content-Type": "text/plain"})
    assert is_problem(plain, 415, "application/yaml")
    broken = api.simulate_post("/v2/plans", body="{", headers=JSON)
    assert broken.status_code == 400
    assert is_problem(post(api, "/v2/plans/x/pause", {"wy": 1}), 400, "body:1: wy")
    assert is_problem(post(api, "/v2/plans/x/limits"), 400, "body")


def test_a_plan_is_approved_before_it_is_started(api):
    path = f"/v2/plans/{stored(api, {**DOCUMENT, 'guards': {'approvals': 1}})}"
    refused = post(api, f"{path}/start")
    assert is_problem(refused, 409, "needs 1 approval, and it has none")
    assert refused.json["title"] == "Refused by a guard"
    assert is_problem(post(api, f"{path}/approve"), 400, "why")
    done = post(api, f"{path}/approve", {"why": "looked at"})
    assert (done.status_code, done.json["state"]) == (200, "RECOMMENDED")
    found = api.simulate_get(f"{path}/approvals").json
    [approval] = found.pop("items")
    assert found == {"needed": 1, "by_another": False, "max_age_s": None, "missing": None}
    assert (approval["why"], approval["counts"]) == ("looked at", True)
    assert post(api, f"{path}/start").json["state"] == "PENDING"
