# SPDX-License-Identifier: Apache-2.0
"""What administrators do with ``/v2``: export, import, purge."""

from __future__ import annotations

import json

import pytest
from api_client import client_of, configured
from command_line import CommandLine
from falcon.testing import TestClient
from test_api_v2 import SHELL, is_problem, post, stored


def administrators(actionplan: CommandLine, **api: str) -> TestClient:
    """Return a client whose callers may administer the record."""
    policy = actionplan.folder / "policy.yaml"
    rules = ("record:administer", "event:administer")
    policy.write_text("".join(f"{rule}: role:operator\n" for rule in rules), encoding="utf-8")
    configured(actionplan, **api)
    with actionplan.configuration.open("a", encoding="utf-8") as file:
        file.write(f"[oslo_policy]\npolicy_file = {policy}\n")
    return client_of(actionplan)


@pytest.fixture
def api(actionplan: CommandLine) -> TestClient:
    return administrators(actionplan)


def test_a_plan_goes_to_another_record_with_its_history(api, actionplan):
    uuid = stored(api)
    exported = api.simulate_get(f"/v2/plans/{uuid}/export")
    assert exported.json == json.loads(actionplan.good("export", uuid))
    is_problem(post(api, "/v2/imports", exported.json), 409, "already in the record")
    actionplan.record.unlink()
    other = administrators(actionplan)
    made = post(other, "/v2/imports", exported.json)
    assert (made.status_code, made.json["uuid"]) == (201, uuid)
    verbs = [entry["verb"] for entry in other.simulate_get("/v2/history").json["history"]]
    assert sorted(verbs) == ["create", "import"]
    broken = {**exported.json, "version": "9", "more": 1}
    is_problem(post(other, "/v2/imports", broken), 400, "version")


def test_durations_are_listed_exported_and_imported(api, actionplan):
    document = {"durations": [{"action_type": "migrate", "seconds": [60, 90]}]}
    told = post(api, "/v2/durations", document).json["messages"]
    assert ["2 durations" in text for text in told] == [True]
    [known] = api.simulate_get("/v2/durations").json["durations"]
    assert (known["action_type"], known["imported"]) == ("migrate", 2)
    assert api.simulate_get("/v2/durations/export").json == {"durations": []}
    wrong = post(api, "/v2/durations", {"durations": [{"action_type": "migrate"}]})
    is_problem(wrong, 400, "seconds")


def test_old_plans_are_purged_and_a_time_that_does_not_exist_is_refused(api, actionplan):
    uuid = stored(api)
    assert api.simulate_delete(f"/v2/plans/{uuid}").status_code == 204
    early = post(api, "/v2/purge", {"before": "2020-01-01T00:00:00Z"})
    assert early.json == {"more": False, "messages": ["0 plans deleted for good."]}
    late = post(api, "/v2/purge", {"before": "2999-01-01T00:00:00Z"})
    assert late.json == {"more": False, "messages": ["1 plan deleted for good."]}
    assert api.simulate_get(f"/v2/plans/{uuid}").status_code == 404
    is_problem(post(api, "/v2/purge", {"before": "2026-02-30T00:00:00Z"}), 400, "2026-02-30")


def test_only_an_administrator_may(actionplan):
    api = client_of(configured(actionplan))
    paths = ("imports", "purge", "durations")
    refused = [api.simulate_get(f"/v2/plans/{stored(api)}/export")]
    refused += [post(api, f"/v2/{path}", {}) for path in paths]
    assert [answer.status_code for answer in refused] == [403] * 4


def test_a_plan_that_runs_commands_is_not_imported_without_the_role(actionplan):
    api = administrators(actionplan, command_role="operator")
    exported = api.simulate_get(f"/v2/plans/{stored(api, SHELL)}/export").json
    actionplan.record.unlink()
    refused = post(administrators(actionplan), "/v2/imports", exported)
    is_problem(refused, 403, "plan:create_with_commands")
    assert actionplan.good("list", "-f", "json").strip() == "[]"
