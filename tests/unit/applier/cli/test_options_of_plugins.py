# SPDX-License-Identifier: Apache-2.0
"""Options of plugins of third parties in ``config show``, ``action type show`` and others."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest
from oslo_config import cfg

from applier.contracts import ActionPlugin
from applier.engines.taskflow_engine import TaskFlowEngine
from planner.contract import Planner
from planner.making import registry

from .conftest import Run

OPTIONS = (
    cfg.StrOpt("dial-out", default="none", help="Whom to call."),
    cfg.StrOpt("pass-word", secret=True, default="hunter1", help="The password."),
    cfg.StrOpt("plain"),
)


class Siren(ActionPlugin):
    """Sound a siren."""

    TYPE = "siren"
    SCHEMA: ClassVar = {"type": "object"}
    OPTIONS = OPTIONS


class Alphabet(Planner[object]):
    """Sort actions by name."""

    NAME = "alphabet"
    KIND = "solution"
    SCHEMA: ClassVar = {"type": "object"}
    OPTIONS = OPTIONS


class Other(TaskFlowEngine):
    """An engine of a third party."""


SECTIONS = ("watcher_actions.siren", "watcher_planners.alphabet")


@pytest.fixture(autouse=True)
def third_party(offer: Callable[..., None]) -> None:
    """Register the classes above as entry points."""
    for group, name, found in (
        (registry.ACTIONS, "siren", Siren),
        (registry.PLANNERS, "alphabet", Alphabet),
        (registry.ENGINES, "other", Other),
    ):
        offer(group, name, f"{__name__}:{found.__name__}")


@pytest.mark.parametrize("section", SECTIONS)
def test_an_option_with_a_hyphen_is_shown_as_files_have_it(
    run: Run, tmp_path: Path, section: str
) -> None:
    file = tmp_path / "watcher.conf"
    file.write_text(f"[{section}]\ndial_out = fire\npass_word = hunter2\n", encoding="utf-8")
    words = ("config", "show", "--section", section, "-f", "json")
    code, out, err = run("--config-file", str(file), *words)
    assert (code, err) == (0, "")
    rows = {row["option"]: (row["value"], row["from"]) for row in json.loads(out)}
    assert rows["dial_out"] == ("fire", str(file))
    assert rows["pass_word"] == ("***", str(file))


@pytest.mark.parametrize("verb", ["action type show siren", "planner show alphabet"])
@pytest.mark.parametrize("line", ["", "pass_word = hunter2\n"])
def test_a_secret_of_a_plugin_is_not_shown(run: Run, tmp_path: Path, verb: str, line: str) -> None:
    file = tmp_path / "watcher.conf"
    text = "".join(f"[{section}]\ndial_out = fire\n{line}" for section in SECTIONS)
    file.write_text(text, encoding="utf-8")
    code, out, err = run("--config-file", str(file), *verb.split())
    assert (code, err) == (0, "")
    assert "hunter" not in out
    lines = out.splitlines()
    assert "  here: fire" in lines
    assert "  here: ***" in lines


@pytest.mark.parametrize("verb", ["action type show siren", "planner show alphabet"])
def test_an_option_without_help_has_none(run: Run, verb: str) -> None:
    _, out, _ = run(*verb.split())
    name, value = out.splitlines()[-2:]
    assert name.startswith("plain (")
    assert value == "  here:"


@pytest.mark.parametrize(
    ("engine", "section"),
    [
        ("other", "watcher_workflow_engines.other"),
        ("actionplan", "watcher_workflow_engines.taskflow"),
    ],
)
def test_create_names_the_section_of_the_configured_engine(
    run: Run, tmp_path: Path, engine: str, section: str
) -> None:
    file, document = tmp_path / "watcher.conf", tmp_path / "nothing.yaml"
    file.write_text(f"[watcher_applier]\nworkflow_engine = {engine}\n", encoding="utf-8")
    document.write_text("actions: [{name: a, action_type: nop}]\n", encoding="utf-8")
    words = ("create", str(document), "--dry-run", "--set", "max_workers=5")
    code, _, err = run("--config-file", str(file), *words)
    assert code == 0
    assert err.endswith(f"pass it to apply, or set it in [{section}].\n")
