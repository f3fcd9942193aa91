# SPDX-License-Identifier: Apache-2.0
"""Lists of Watcher's API page by page, its versions, its entry, and its services."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import chain, pairwise
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import pytest
from sample_plans import new_plan

from applier.api.v1 import actions, plans
from applier.store import Service

AUDITS = [str(uuid4()) for _ in range(2)]


@pytest.fixture
def three(v1) -> list[str]:
    """Save three plans of two actions, the last two for one audit; return their uuids."""
    made = [new_plan("a", "b", audit_uuid=AUDITS[n > 0], strategy_name=f"s{n}") for n in range(3)]
    for plan in made:
        v1.store.save_plan(plan)
    return [plan.uuid for plan in made]


def uuids(found: dict) -> list[str]:
    (kind,) = set(found) - {"next"}
    return [each["uuid"] for each in found[kind]]


def pages(v1, path: str) -> list[list[str]]:
    """Follow the links from page to page; return the uuids of each."""
    seen = []
    while path:
        found = v1.get(path)
        seen.append(uuids(found))
        path = found.get("next", "").removeprefix("http://127.0.0.1")
    return seen


def test_pages_follow_each_other_in_any_order(v1, three):
    for kind, keys, rows in (("action_plans", plans.KEYS, 3), ("actions", actions.KEYS, 6)):
        for order in (f"sort_key={key}&sort_dir={way}" for key in keys for way in ("asc", "desc")):
            seen = pages(v1, f"{kind}/?limit=2&{order}")
            assert all(len(each) == 2 for each in seen[:-1]), order
            assert list(chain(*seen)) == uuids(v1.get(f"{kind}/detail?{order}")), order
            assert len(set(chain(*seen))) == rows, order
    assert set(uuids(v1.get("action_plans"))) == set(three)


def test_a_link_to_the_next_page_names_what_was_asked_for(v1, three):
    found = v1.get(f"action_plans/detail?limit=1&sort_key=uuid&audit_uuid={AUDITS[1]}")
    link = urlsplit(found["next"])
    assert f"{link.scheme}://{link.netloc}{link.path}" == "http://127.0.0.1/v1/action_plans/detail"
    assert parse_qs(link.query) == {
        "sort_key": ["uuid"],
        "sort_dir": ["asc"],
        "audit_uuid": [AUDITS[1]],
        "limit": ["1"],
        "marker": [min(three[1:])],
    }
    assert "next" not in v1.get("action_plans?limit=4")
    assert "next" in v1.get("action_plans?limit=3")


def test_lists_are_sorted_and_filtered(v1, three):
    assert uuids(v1.get("action_plans")) == three
    assert uuids(v1.get("action_plans?sort_dir=desc")) == three[::-1]
    assert uuids(v1.get("action_plans?sort_key=uuid")) == sorted(three)
    assert uuids(v1.get(f"action_plans?audit_uuid={AUDITS[1]}")) == three[1:]
    assert uuids(v1.get("action_plans?strategy=s1")) == [three[1]]
    of_audit = v1.get(f"actions?audit_uuid={AUDITS[1]}")["actions"]
    assert [a["action_plan_uuid"] for a in of_audit] == [three[1]] * 2 + [three[2]] * 2
    of_plan = v1.get(f"actions?action_plan_uuid={three[0]}")["actions"]
    assert [a["action_plan_uuid"] for a in of_plan] == [three[0]] * 2
    assert v1.get(f"actions?action_plan_uuid={uuid4()}") == {"actions": []}


def test_queries_that_make_no_sense_are_refused(v1):
    for query, text in (
        ("limit=0", "Limit must be positive"),
        ("limit=-1", "Limit must be positive"),
        ("limit=x", "Invalid input for field/attribute limit. Value: 'x'"),
        ("sort_key=number;--", "Invalid sort key: number;--"),
        ("sort_dir=up", "Invalid sort direction: up. Acceptable values are 'asc' or 'desc'"),
        ("bogus=1", 'Unknown argument: "bogus"'),
    ):
        for kind in ("action_plans", "action_plans/detail", "actions", "services"):
            status, said = v1.refused(f"{kind}?{query}")
            assert (status, said[: len(text)]) == (400, text), kind


def test_unknown_markers_and_both_filters_are_refused(v1, three):
    unknown = str(uuid4())
    assert v1.refused(f"action_plans?marker={unknown}")[0] == 404
    assert v1.refused(f"actions?marker={unknown}") == (
        404,
        f"Action {unknown} could not be found",
    )
    assert v1.refused("action_plans?marker=x")[0] == 400
    assert v1.refused("action_plans?audit_uuid=x")[0] == 400
    both = f"actions?action_plan_uuid={three[0]}&audit_uuid={AUDITS[0]}"
    text = "Filtering actions on both audit and action-plan is prohibited"
    assert v1.refused(both) == (400, text)


def test_a_page_has_at_most_a_thousand_rows(v1):
    v1.store.save_plan(new_plan(*(f"a{n}" for n in range(1001))))
    found = v1.get("actions?limit=999999999999")
    assert len(found["actions"]) == 1000
    rest = v1.get(found["next"].removeprefix("http://127.0.0.1"))
    assert len(rest["actions"]) == 1


def test_each_answer_says_its_version(v1):
    for header, used in (
        (None, "1.0"),
        ("infra-optim 1.5", "1.5"),
        ("infra-optim 1.7", "1.7"),
        ("infra-optim latest", "1.7"),
        ("compute 2.90, infra-optim 1.3", "1.3"),
        ("compute 2.90", "1.0"),
        ("infra-optim x", "1.0"),
        ("infra-optim 1", "1.0"),
    ):
        headers = {"OpenStack-API-Version": header} if header else {}
        for path in ("action_plans", "action_plans/x", "nothing"):
            answer = v1.ask(path, version=None, headers=headers)
            told = answer.headers
            assert told["openstack-api-version"] == f"infra-optim {used}", header
            assert told["openstack-api-minimum-version"] == "1.0"
            assert told["openstack-api-maximum-version"] == "1.7"
            assert "OpenStack-API-Version" in told["vary"]
            assert told["content-type"] == "application/json"
            assert told["x-openstack-request-id"].startswith("req-")
    for version in ("1.8", "1.9", "0.9", "2.0", "1.5.1", "9" * 5000 + ".1"):
        answer = v1.ask("action_plans", version=version)
        assert answer.status_code == 406, version
        assert "openstack-api-version" not in answer.headers
        assert answer.headers["openstack-api-maximum-version"] == "1.7"
        assert v1.refused("action_plans", version=version)[1]


def test_the_entry_names_version_and_resources(v1):
    root = v1.get("/", version=None)
    assert [(v["id"], v["status"], v["max_version"]) for v in root["versions"]] == [
        ("v1", "CURRENT", "1.7")
    ]
    assert root["default_version"] == root["versions"][0]
    for path in ("/v1", "/v1/"):
        document = v1.get(path)
        assert document["id"] == "v1"
        assert document["actions"][0]["href"] == "http://127.0.0.1/v1/actions/"


def test_what_is_not_there_is_named(v1):
    for path, text in (
        ("audits", "no audits"),
        ("audit_templates/detail", "no audit templates"),
        ("nope", "no such path"),
    ):
        status, said = v1.refused(path)
        assert (status, text in said) == (404, True)
    assert v1.refused("action_plans", method="PUT")[0] == 405


def test_services_are_listed_with_whether_they_live(v1):
    now = datetime.now(UTC)
    known = {"pid": 1, "user": "wanda", "cloud": "west", "started_at": now - timedelta(days=1)}
    for uuid, silent in (("a", 10), ("b", 1000)):
        heard = now - timedelta(seconds=silent)
        v1.store.report_service(Service(uuid=uuid, host=f"h-{uuid}", heartbeat_at=heard, **known))
    found = v1.get("services?sort_key=host")["services"]
    assert [(s["name"], s["host"], s["status"]) for s in found] == [
        ("watcher-applier", "h-a", "ACTIVE"),
        ("watcher-applier", "h-b", "FAILED"),
    ]
    assert set(found[0]) == {"id", "name", "host", "status", "links"}
    ids = [s["id"] for s in v1.get("services/detail")["services"]]
    assert all(a < b for a, b in pairwise(ids))
    one = v1.get(f"services/{found[1]['id']}")
    assert one["host"] == "h-b"
    assert one["last_seen_up"] == (now - timedelta(seconds=1000)).replace(tzinfo=None).isoformat()
    assert v1.get("services/watcher-applier")["name"] == "watcher-applier"
    assert v1.refused("services/nobody")[0] == 404
    page = v1.get("services?limit=1")
    rest = v1.get(page["next"].removeprefix("http://127.0.0.1"))
    assert [s["id"] for s in page["services"] + rest["services"]] == ids
