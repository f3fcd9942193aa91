# SPDX-License-Identifier: Apache-2.0
"""The pages of the API without a browser: what is in them, who gets them, what is refused."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from api_client import HOST, JSON, client_of, configured
from command_line import CommandLine
from falcon.testing import TestClient
from scratch_database import run

from applier import configuration
from applier.api import routing
from applier.api.access import Caller
from applier.api.authentication import AddressWithToken
from applier.assembly import Assembly
from applier.contracts import Claimant
from applier.run.this_process import this_host

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
#: No system numbers its processes so high.
NO_PROCESS = 2**30
TOKEN = "a-token-of-a-test"  # noqa: S105
ACTIONS = (
    {"name": "first", "action_type": "nop"},
    {"name": "<img src=x onerror=alert(1)>", "action_type": "nop"},
)


@pytest.fixture
def kept(actionplan: CommandLine) -> CommandLine:
    """Return a record with a plan."""
    actionplan.document("night.yaml", *ACTIONS, name="night")
    configured(actionplan, requests_per_second=10**6)
    actionplan.good("create", "night.yaml")
    return actionplan


@pytest.fixture
def api(kept: CommandLine) -> TestClient:
    """Return a client of the API."""
    return client_of(kept)


def made(kept: CommandLine, strategy: object) -> TestClient:
    """Return a client of an application in which a strategy says who asks."""
    assembly = Assembly(configuration.load([str(kept.configuration)]))
    application = routing.make(assembly, strategy)
    around = getattr(strategy, "around", lambda same: same)
    return TestClient(around(application), headers={"Host": HOST})


def data(text: str) -> dict[str, str]:
    """Return what a page tells its script."""
    body = re.search(r"<body ([^>]*)>", text)
    assert body
    return {k: unescape(v) for k, v in re.findall(r'data-(\w+)="([^"]*)"', body[1])}


def test_a_browser_gets_pages_where_programs_get_versions(api):
    answer = api.simulate_get("/", headers=BROWSER)
    assert (answer.status_code, answer.headers["location"]) == (303, "/plans")
    assert api.simulate_get("/").json["name"] == "ActionPlan API"


def test_the_list_shows_plans_with_their_progress(api, kept):
    kept.good("apply", "night", "--yes")
    text = api.simulate_get("/plans").text
    assert f'href="/plans/{kept.plan().uuid}"' in text
    assert "<title>2 of 2 done</title>" in text
    assert "✓ SUCCEEDED" in text


def test_the_list_is_filtered_and_says_what_needs_somebody(api, kept):
    kept.document("day.yaml", *ACTIONS, name="day", guards={"approvals": 1})
    fails = {"action_type": "shell", "input_parameters": {"command": "false"}}
    kept.document("ill.yaml", fails, name="ill")
    kept.good("create", "day.yaml", "--planner", "workload_stabilization")
    assert kept("apply", "ill.yaml", "--yes").code == 3

    def listed(**query: str) -> list[str]:
        text = api.simulate_get("/plans", params=query).text
        return re.findall(r'href="/plans/[^"]+"[^>]*>([^<]+)</a>', text)

    everything = ["ill", "day", "night"]
    assert listed() == everything
    assert listed(search="igh") == ["night"]
    assert listed(state="FAILED") == ["ill"]
    assert listed(planner="workload_stabilization") == listed(needs_you="1") == ["day"]
    creator = api.simulate_get("/v2/plans").json["items"][0]["creator"]
    assert listed(since="1", creator=creator) == everything
    assert listed(creator="nobody") == []
    for query in ({"state": "GONE"}, {"since": "-1"}, {"since": "x"}):
        assert api.simulate_get("/plans", params=query).status_code == 400
    # What a form sends in which nobody has chosen anything.
    empty = "search=&planner=&creator=&since="
    sent = api.simulate_get("/plans", query_string=empty)
    assert sent.text == api.simulate_get("/plans").text


def needing(api: TestClient) -> dict[str, str]:
    """Return what the plans need that the list of those that need somebody shows, by name."""
    found = {}
    for row in re.findall("<tr id=.*", api.simulate_get("/plans?needs_you=1").text):
        [name] = re.findall(r'href="/plans/[^"]+"[^>]*>([^<]+)</a>', row)
        [found[name]] = re.findall("needs you: ([^<]+)", row)
    return found


def test_the_list_and_the_page_of_a_plan_agree_on_what_is_to_be_approved(api, kept):
    """By the site or by the plan; a given approval counts, unless the plan has changed since."""
    kept.document("day.yaml", *ACTIONS, name="day", guards={"approvals": 1})
    fails = {"name": "no", "action_type": "shell", "input_parameters": {"command": "false"}}
    kept.document("ill.yaml", fails, name="ill")
    kept.good("create", "day.yaml")
    assert kept("apply", "ill.yaml", "--yes").code == 3

    def on_pages(client: TestClient) -> set[str]:
        return {
            name
            for name in ("night", "day", "ill")
            for uuid in (client.simulate_get(f"/v2/plans/{name}").json["uuid"],)
            if "needs 1 approval" in client.simulate_get(f"/plans/{uuid}").text
        }

    assert needing(api) == {"day": "approval"}
    assert on_pages(api) == {"day"}
    kept.good("approve", "day", "--reason", "looks right")
    assert needing(api) == {}
    kept.good("action", "skip", "day", "first", "--reason", "not now")
    assert needing(api) == {"day": "approval"}
    own = {"connection": f"sqlite:///{kept.record}", "simulator": kept.simulator}
    kept.configure(actionplan=own, watcher_applier={"approvals": 1})
    strict = client_of(kept)
    assert needing(strict) == dict.fromkeys(("night", "day", "ill"), "approval")
    assert on_pages(strict) == {"night", "day", "ill"}
    for name in ("night", "ill"):
        kept.good("approve", name, "--reason", "looks right")
    assert needing(strict) == {"day": "approval"}
    assert "needs you: approval" in strict.simulate_get("/plans").text


def test_a_plan_whose_applier_is_gone_needs_somebody(api, kept):
    for name, pid in (("runs", os.getpid()), ("died", NO_PROCESS)):
        kept.document("day.yaml", *ACTIONS, name=name)
        kept.good("create", "day.yaml")
        uuid = api.simulate_post(f"/v2/plans/{name}/start").json["uuid"]
        with kept.store() as store:
            runner = Claimant(host=this_host(), pid=pid, user="ada")
            store.claim_plan(uuid, runner, now=datetime.now(UTC))
    assert needing(api) == {"died": "nobody runs it"}
    assert "Nobody runs it any more" in api.simulate_get(f"/plans/{uuid}").text


def test_links_and_counts_of_the_list_keep_what_else_was_chosen(api, kept):
    kept.document("day.yaml", *ACTIONS, name="day")
    kept.good("create", "day.yaml")
    text = unescape(api.simulate_get("/plans?search=DAY&needs_you=1").text)
    assert 'href="/plans?search=DAY"' in text
    assert 'href="/plans?search=DAY&state=RECOMMENDED"' in text
    assert ">RECOMMENDED 1<" in text
    assert '<input type="hidden" name="needs_you" value="1">' in text
    assert ">RECOMMENDED 2<" in api.simulate_get("/plans").text


def test_the_tag_of_the_list_is_another_one_each_minute(api, monkeypatch):
    at = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)
    monkeypatch.setattr("applier.api.pages.now", lambda: at)
    tag = api.simulate_get("/plans").headers["ETag"]
    again = api.simulate_get("/plans", headers={"If-None-Match": tag})
    assert (again.status_code, again.headers["ETag"]) == (304, tag)
    assert again.headers["Vary"] == "Accept-Encoding"
    at += timedelta(minutes=1)
    assert api.simulate_get("/plans", headers={"If-None-Match": tag}).status_code == 200


def test_a_damaged_plan_is_listed_and_needs_somebody(api, kept):
    kept.document("day.yaml", *ACTIONS, name="day")
    kept.good("create", "day.yaml")
    run(f"sqlite:///{kept.record}", "UPDATE actionplan_plan SET name = x'ff' WHERE name = 'day'")
    text = api.simulate_get("/plans").text
    assert "needs you: damaged" in text
    assert 'title="night"' in text


def test_the_page_of_a_plan_has_its_parts_and_runs_nothing_of_others(api, kept):
    answer = api.simulate_get(f"/plans/{kept.plan().uuid}")
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert {"script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"} <= {
        part.strip() for part in policy.split(";")
    }
    assert "<img" not in answer.text
    assert "&lt;img src=x onerror=alert(1)&gt;" in answer.text
    assert " style=" not in answer.text
    assert "<style" not in answer.text
    assert re.findall(r"<script([^>]*)>", answer.text) == [
        ' src="/page/report.js" defer',
        ' src="/page/live.js" defer',
    ]
    for name in ("report.css", "report.js", "live.js", "icon.svg"):
        assert api.simulate_get(f"/page/{name}").status_code == 200
    assert api.simulate_get("/page/report.html").status_code == 404


def test_a_name_leads_to_the_address_that_stays(api, kept):
    answer = api.simulate_get("/plans/last")
    assert answer.status_code == 303
    assert answer.headers["location"] == f"/plans/{kept.plan().uuid}"
    assert api.simulate_get("/plans/nope").status_code == 404


def test_only_what_has_changed_is_sent(api, kept):
    uuid = kept.plan().uuid
    known = data(api.simulate_get(f"/plans/{uuid}").text)
    same = api.simulate_get(f"/plans/{uuid}/parts", params={"version": known["version"]}).json
    assert same["parts"] == {}
    kept.good("action", "skip", uuid, "first", "--reason", "not now")
    fresh = client_of(kept)
    # Another process knows no versions of this one, and sends everything.
    everything = fresh.simulate_get(f"/plans/{uuid}/parts", params={"version": known["version"]})
    assert {"top", "facts", "timeline", "history", "r1", "r2"} <= everything.json["parts"].keys()
    changed = same
    while not changed["parts"]:
        found = api.simulate_get(f"/plans/{uuid}/parts", params={"version": known["version"]})
        changed = found.json
    assert "r1" in changed["parts"]
    assert "SKIPPED" in changed["parts"]["r1"]
    assert not {"what-if", "input", "actions"} & changed["parts"].keys()


def test_a_page_says_what_its_reader_may_do(kept):
    uuid = kept.plan().uuid
    roles = {"reader": "", "operator": "plan:run plan:approve action:steer"}
    for role, may in roles.items():
        caller = Caller(user="ada", roles=frozenset({role}), address="::1", request_id="r")
        client = made(kept, lambda _request, _id, caller=caller: caller)
        assert data(client.simulate_get(f"/plans/{uuid}").text)["may"] == may
        answer = client.simulate_post(f"/v2/plans/{uuid}/start", headers=JSON, body="{}")
        assert answer.status_code == (200 if may else 403)


def test_a_token_in_the_address_lets_its_user_in(kept):
    client, uuid = made(kept, AddressWithToken(TOKEN, "ada")), kept.plan().uuid
    for query in ({}, {"token": "another"}, {"token": [TOKEN, TOKEN]}):
        for path in (f"/plans/{uuid}", "/v2/plans", f"/v2/plans/{uuid}/start"):
            assert client.simulate_get(path, params=query).status_code == 403, query
    right = {"token": TOKEN}
    assert client.simulate_get(f"/plans/{uuid}", params=right).status_code == 200
    # Parameters are still checked, and the token is none of them.
    assert client.simulate_get("/v2/plans", params={**right, "limit": "1"}).status_code == 200
    assert client.simulate_get("/v2/plans", params={**right, "x": "1"}).status_code == 400
    leads = client.simulate_get("/plans/last", params=right)
    assert leads.headers["location"] == f"/plans/{uuid}?token={TOKEN}"
    elsewhere = {"Host": "evil.example.org"}
    answer = client.simulate_get(f"/plans/{uuid}", params=right, headers=elsewhere)
    assert answer.status_code == 403
    done = client.simulate_post(f"/v2/plans/{uuid}/start", params=right, headers=JSON, body="{}")
    assert done.status_code == 200
    assert '"ada"' in kept.good("history", uuid, "-f", "json")
