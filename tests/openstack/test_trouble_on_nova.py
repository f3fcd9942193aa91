# SPDX-License-Identifier: Apache-2.0
"""A real Nova that goes away in the middle of a move; credentials that must stay secret."""

from __future__ import annotations

from collections.abc import Iterator

import environments
import pytest
import yaml
from command_line import CommandLine, Ended
from nova_lab import NovaLab

from planner.plan.states import ActionState, PlanState

pytestmark = pytest.mark.slow
#: The Keystone of the lab refuses passwords that begin with "wrong".
RIGHT, WRONG = "right-5b1e20d7", "wrong-7f3a91c4"


@pytest.fixture
def mortal_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NovaLab]:
    """Return a Nova of its own, which a test may kill."""
    environments.require(environments.NOVA)
    with NovaLab(tmp_path_factory.mktemp("mortal"), computes=2) as made:
        yield made


def move(server: str, source: str, destination: str) -> dict[str, object]:
    return {
        "name": "move-web-1",
        "action_type": "migrate",
        "resource_id": server,
        "input_parameters": {
            "migration_type": "live",
            "source_node": source,
            "destination_node": destination,
        },
    }


def test_a_move_during_which_nova_goes_away_is_in_doubt(mortal_lab, on_lab):
    on_lab.environment["OS_CLIENT_CONFIG_FILE"] = str(mortal_lab.clouds_yaml)
    on_lab.configure(
        actionplan={"cloud": "openstack"},
        openstack={"cloud": mortal_lab.NAME, "reconnect_timeout_s": 3},
    )
    server = mortal_lab.boot("web-1", "cmp1", lab_lm_seconds="120")
    on_lab.document("move.yaml", move(server, "cmp1", "cmp2"))
    with on_lab.start("apply", "move.yaml", "--yes") as applying:
        mortal_lab.until(
            lambda: any(m.status == "running" for m in mortal_lab.nova.server_migrations(server)),
            "a running move",
        )
        mortal_lab.kill()
        assert applying.wait() == 5
    plan = on_lab.plan()
    assert plan.state is PlanState.FAILED
    (action,) = plan.actions
    assert action.state is ActionState.UNKNOWN
    assert "cannot be reached" in str(action.status_message)


def test_credentials_are_neither_printed_nor_logged_nor_kept(lab: NovaLab, on_lab: CommandLine):
    server = lab.boot("web-1", "cmp1")
    use_password(lab, on_lab, RIGHT)
    configuration = on_lab.configuration.read_text(encoding="utf-8")
    on_lab.configuration.write_text(f"[DEFAULT]\ndebug = true\n{configuration}", encoding="utf-8")
    on_lab.document("move.yaml", move(server, "cmp1", "cmp2"))
    seen = [
        on_lab("facts"),
        on_lab("create", "move.yaml"),
        on_lab("apply", "last", "--yes"),
        on_lab("action", "show", "last", "move-web-1"),
        on_lab("config", "show"),
    ]
    assert [ended.code for ended in seen] == [0] * len(seen), seen
    assert_nowhere(RIGHT, on_lab, seen)
    use_password(lab, on_lab, WRONG)
    refused = on_lab("facts")
    assert refused.code == 1
    assert refused.err.count("\n") == 1
    assert "password is wrong" in refused.err
    assert_nowhere(WRONG, on_lab, [refused])


def use_password(lab: NovaLab, on_lab: CommandLine, password: str) -> None:
    """Let the command line log in with a password."""
    clouds = yaml.safe_load(lab.clouds_yaml.read_text(encoding="utf-8"))
    clouds["clouds"][lab.NAME]["auth"]["password"] = password
    file = on_lab.folder.with_name(f"{on_lab.folder.name}-clouds.yaml")
    file.write_text(yaml.safe_dump(clouds), encoding="utf-8")
    on_lab.environment["OS_CLIENT_CONFIG_FILE"] = str(file)


def assert_nowhere(secret: str, on_lab: CommandLine, seen: list[Ended]) -> None:
    """Assert that a text is in no output and in no file of the command line."""
    assert [ended for ended in seen if secret in ended.out + ended.err] == []
    files = [path for path in on_lab.folder.rglob("*") if path.is_file()]
    assert on_lab.record in files
    assert [path for path in files if secret.encode() in path.read_bytes()] == []
