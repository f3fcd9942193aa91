# SPDX-License-Identifier: Apache-2.0
"""Rehearsals and dry runs over HTTP: as on the command line, and bounded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from api_client import client_of, configured
from command_line import EXAMPLE, CommandLine
from falcon.testing import TestClient
from test_api_v2 import is_problem, stored


@pytest.fixture
def api(actionplan: CommandLine) -> TestClient:
    return client_of(configured(actionplan))


def created(actionplan: CommandLine) -> str:
    """Make a plan of the example; return its uuid."""
    return str(json.loads(actionplan.good("create", str(EXAMPLE), "-f", "json"))["uuid"])


def test_a_rehearsal_tells_what_the_command_line_tells(
    api: TestClient, actionplan: CommandLine
) -> None:
    plan = created(actionplan)
    words = ("--inject", "fail:migrate=20%,slow:node:compute-3=3x", "--times", "20", "--seed", "7")
    told = json.loads(actionplan.good("simulate", plan, *words, "-f", "json"))
    params: dict[str, Any] = {
        "inject": ["fail:migrate=20%", "slow:node:compute-3=3x"],
        "times": 20,
        "seed": 7,
    }
    found = api.simulate_get(f"/v2/plans/{plan}/rehearsal", params=params, params_csv=False)
    assert found.json == told
    assert told["went_wrong"]["worst"] > 0


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("inject=fall:migrate", "fall"),
        ("inject=fail:nobody", "nobody"),
        ("times=0", "times"),
        ("times=100000", "the most for 11 actions"),
    ],
)
def test_a_wrong_rehearsal_is_refused(
    api: TestClient, actionplan: CommandLine, query: str, text: str
) -> None:
    answer = api.simulate_get(f"/v2/plans/{created(actionplan)}/rehearsal", query_string=query)
    assert is_problem(answer, 400, "")
    assert text in answer.text


def test_a_dry_run_asks_and_changes_nothing(api: TestClient, actionplan: CommandLine) -> None:
    plan = created(actionplan)
    before = api.simulate_get(f"/v2/plans/{plan}").json
    found = api.simulate_get(f"/v2/plans/{plan}/dry-run").json
    assert (found["refused"], found["guard"], found["moved"]) == (False, None, [])
    assert {action["found"] for action in found["actions"]} >= {"to do"}
    assert api.simulate_get(f"/v2/plans/{plan}").json == before


def test_a_dry_run_tells_what_a_guard_refuses(actionplan: CommandLine) -> None:
    api = client_of(configured(actionplan))
    with actionplan.configuration.open("a", encoding="utf-8") as file:
        file.write("[watcher_applier]\napprovals = 1\n")
    plan = stored(api)
    found = client_of(actionplan).simulate_get(f"/v2/plans/{plan}/dry-run").json
    assert found["refused"] is True
    assert "approv" in found["guard"]
    assert found["moved"] is None
