# SPDX-License-Identifier: Apache-2.0
"""``actionplan-api`` with ``auth_strategy = keystone``: tokens, roles and names of the lab's."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from api_client import Process, api_process, configured
from command_line import CommandLine
from nova_lab import NovaLab

pytestmark = pytest.mark.slow

DOCUMENT = json.dumps({"actions": [{"name": "one", "action_type": "nop"}]}).encode()


@pytest.fixture
def keystone(nova_lab: NovaLab) -> str:
    """Return the address of the lab's Keystone."""
    clouds = yaml.safe_load(Path(nova_lab.clouds_yaml).read_text(encoding="utf-8"))["clouds"]
    return str(clouds[nova_lab.NAME]["auth"]["auth_url"])


@pytest.fixture
def api(keystone: str, tmp_path: Path) -> Iterator[Process]:
    """Return an API that asks the lab's Keystone about tokens."""
    actionplan = configured(CommandLine(tmp_path, tmp_path / "cache"), port=0)
    actionplan.environment["PYTHONWARNINGS"] = "ignore"
    with actionplan.configuration.open("a") as file:
        file.write(
            "auth_strategy = keystone\n"
            "[keystone_authtoken]\n"
            f"auth_url = {keystone}\nwww_authenticate_uri = {keystone}\nauth_type = password\n"
            "username = nova\npassword = x\nproject_name = service\n"
            "user_domain_id = default\nproject_domain_id = default\n"
        )
    with api_process(actionplan) as process:
        yield process


def token_of(keystone: str, user: str) -> dict[str, str]:
    """Return the headers of a JSON request of a user."""
    domain = {"domain": {"id": "default"}}
    identity = {
        "methods": ["password"],
        "password": {"user": {"name": user, "password": "x"} | domain},
    }
    scope = {"project": {"name": "department"} | domain}
    body = json.dumps({"auth": {"identity": identity, "scope": scope}}).encode()
    request = urllib.request.Request(f"{keystone.rstrip('/')}/auth/tokens", data=body)  # noqa: S310
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
        token = str(answer.headers["X-Subject-Token"])
    return {"X-Auth-Token": token, "Content-Type": "application/json"}


def test_tokens_say_who_asks_and_what_they_may_do(api: Process, keystone: str) -> None:
    assert api("/v2/plans").status == 401
    assert api("/v2/plans", headers={"X-Auth-Token": "made-up"}).status == 401
    # What keystonemiddleware would tell the application cannot be sent by anybody else.
    forged = {"X-Identity-Status": "Confirmed", "X-Roles": "admin", "X-User-Name": "admin"}
    assert api("/v2/plans", headers=forged).status == 401
    assert api("/v1/action_plans", headers=forged).status == 401
    admin = token_of(keystone, "admin")
    made = api("/v2/plans", DOCUMENT, headers=admin)
    assert made.status == 201, made.body
    [created] = api("/v2/history", headers=admin).json["items"]
    assert (created["who"], created["project"], created["verb"]) == (
        "admin",
        "department",
        "create",
    )
    nobody = token_of(keystone, "somebody")
    assert api("/v2/plans", headers=nobody).status == 403
    assert api("/v1/action_plans", headers=nobody).status == 403
    refused = api("/v2/plans", DOCUMENT, headers=nobody)
    assert (refused.status, refused.json["title"]) == (403, "Forbidden")
    assert api("/v1/action_plans", headers=admin).json["action_plans"][0]["state"] == "RECOMMENDED"
