# SPDX-License-Identifier: Apache-2.0
"""What is refused: the exact sentence, the exit code, and a record that was left alone."""

from __future__ import annotations

import os
import re
import stat

import pytest
import yaml
from command_line import EXAMPLE, ROOT, CommandLine

from planner.states import PlanState

ROWS = yaml.safe_load((ROOT / "tests/cases/cli/bad_input.yaml").read_text(encoding="utf-8"))


def test_a_bad_document_is_answered_with_a_sentence_and_not_kept(actionplan: CommandLine) -> None:
    for row in ROWS:
        (actionplan.folder / "bad.yaml").write_text(row["document"], encoding="utf-8")
        ended = actionplan("create", "bad.yaml", *row.get("arguments", ()))
        assert ended == (row.get("code", 1), "", row["message"]), row["title"]
    assert actionplan.plans() == []


def test_every_mistake_of_a_cloud_has_a_line_of_its_own(actionplan: CommandLine) -> None:
    (actionplan.folder / "cloud.yaml").write_text("hosts: {}\n", encoding="utf-8")
    ended = actionplan("simulator", "reset", "--from", "cloud.yaml")
    assert re.findall(r"  cloud\.yaml:1: .*'(\w+)'", ended.err) == ["flavors", "instances"]


def test_a_full_device_is_a_sentence_and_stays_a_device(actionplan: CommandLine) -> None:
    before = os.stat("/dev/full")
    (actionplan.folder / "link").symlink_to("/dev/full")
    for words in (("create", str(EXAMPLE), "--dry-run"), ("graph", str(EXAMPLE))):
        for place in ("link", "/dev/full"):
            ended = actionplan(*words, "--out", place)
            told = f"Refused: --out {place} cannot be written: No space left on device\n"
            assert (ended.code, ended.err) == (1, told)
    assert os.stat("/dev/full").st_ino == before.st_ino


def test_files_that_people_asked_for_follow_their_umask_and_the_record_is_private(
    actionplan: CommandLine,
) -> None:
    before = os.umask(0o022)
    try:
        actionplan.good("create", str(EXAMPLE), "--out", "plan.json")
        actionplan.good("graph", str(EXAMPLE), "--out", "plan.dot")
    finally:
        os.umask(before)
    for path, mode in (("plan.json", 0o644), ("plan.dot", 0o644), (actionplan.record, 0o600)):
        assert stat.S_IMODE((actionplan.folder / path).stat().st_mode) == mode


FILES = {
    "missing.yaml": "missing.yaml: cannot be read: ",
    "broken.json": "broken.json:1: not JSON: ",
    "-": "standard input:1: not UTF-8 text: ",
}


def test_a_file_that_cannot_be_read_is_named(actionplan: CommandLine) -> None:
    (actionplan.folder / "broken.json").write_text('{"actions": [}', encoding="utf-8")
    for name, told in FILES.items():
        ended = actionplan("create", name, stdin=b"\xff\xfe")
        assert (ended.code, ended.out, ended.err.startswith(f"Refused: {told}")) == (1, "", True)
    assert actionplan.plans() == []


def test_names_with_blanks_and_letters_of_any_script_are_read_and_shown(
    actionplan: CommandLine,
) -> None:
    folder = actionplan.folder / "ein Ordner mit Grüßen"
    folder.mkdir()
    file = f"{folder.name}/漢字 plan.yaml"
    actionplan.document(file, {"name": "größe ändern", "action_type": "nop"}, name="nächtlich")
    out = actionplan.good("create", file)
    assert "nächtlich" in out
    assert "größe ändern" in actionplan.good("show", "nächtlich")
    assert "größe ändern" in actionplan.program("show", "nächtlich", LC_ALL="C").out
    ascii_only = actionplan.program("show", "nächtlich", PYTHONIOENCODING="ascii")
    assert ascii_only.code == 0
    assert "gr\\xf6\\xdfe \\xe4ndern" in ascii_only.out


def test_long_words_are_answered_with_a_short_sentence(actionplan: CommandLine) -> None:
    actionplan.good("create", str(EXAMPLE))
    for words in (
        ("x" * 5000,),
        ("help", "x" * 5000),
        ("show", "x" * 100_000),
        ("graph", "last", "--node", "(" * 5000),
    ):
        ended = actionplan(*words)
        assert ended.code in (1, 2)
        assert not re.search("bug|LIKE", ended.err)
        assert 0 < len(ended.err) < 600


def test_a_document_comes_from_standard_input(actionplan: CommandLine) -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    assert "11 actions in 7 waves" in actionplan.good("create", "-", stdin=text)
    assert "RECAP" in actionplan.good("apply", "-", "--yes", stdin=text)


def test_a_plan_without_actions_has_nothing_to_do(actionplan: CommandLine) -> None:
    actionplan.document("empty.yaml")
    out = actionplan.good("apply", "empty.yaml", "--yes")
    assert "Nothing to do: the plan has no actions." in out


def test_types_that_no_plugin_offers_are_planned_when_asked_and_never_run(
    actionplan: CommandLine,
) -> None:
    actionplan.document("a.yaml", {"name": "a", "action_type": "levitate"})
    ended = actionplan("apply", "a.yaml", "--yes", "--no-check-types")
    assert ended.code == 1
    assert "no plugin offers: levitate" in ended.err
    assert "RECAP" not in ended.out
    assert actionplan.plans() == []
    actionplan.good("create", "a.yaml", "--no-check-types")
    assert actionplan.plan().state is PlanState.RECOMMENDED
    assert actionplan("apply", "last", "--yes").err == ended.err.replace(
        ended.err.split()[2], actionplan.plan().uuid[:8]
    )


def test_a_state_folder_that_cannot_be_used_is_named(actionplan: CommandLine) -> None:
    (actionplan.folder / "state").write_text("in the way", encoding="utf-8")
    for words in (("list",), ("create", str(EXAMPLE)), ("show", "last")):
        ended = actionplan(*words)
        told = f"Refused: sqlite:///{actionplan.record}: cannot use the folder"
        assert (ended.code, ended.err.startswith(told)) == (1, True)


@pytest.fixture
def broken(actionplan: CommandLine) -> CommandLine:
    """Install an action type that cannot be imported."""
    site = actionplan.folder / "site"
    info = site / "broken-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text("[actionplan.actions]\nshaky = broken:Shaky\n", "utf-8")
    (site / "broken.py").write_text("import nothing_of_this_name\n", encoding="utf-8")
    actionplan.environment["PYTHONPATH"] = str(site)
    return actionplan


def test_a_broken_plugin_hides_no_other_and_is_named_by_who_needs_it(broken: CommandLine) -> None:
    out = broken.program("action", "type", "list").out
    for text in ("shaky", "nothing_of_this_name", "migrate"):
        assert text in out
    broken.document("a.yaml", {"name": "a", "action_type": "shaky"})
    ended = broken.program("apply", "a.yaml", "--yes")
    assert ended.code == 1
    assert "action type 'shaky' cannot be used: " in ended.err
    assert "No module named 'nothing_of_this_name'" in ended.err
    assert broken.plans() == []


def test_a_bug_is_told_in_a_sentence_and_in_full_when_asked(actionplan: CommandLine) -> None:
    site = actionplan.folder / "site"
    site.mkdir()
    # As if the verb itself were wrong.
    text = "import applier.cli.plan_list as plans\nplans.List.take_action = lambda *_: 1 / 0\n"
    (site / "sitecustomize.py").write_text(text, encoding="utf-8")
    actionplan.environment["PYTHONPATH"] = str(site)
    ended = actionplan.program("list")
    assert (ended.code, ended.out) == (1, "")
    bug, more = ended.err.splitlines()
    assert bug.endswith("ZeroDivisionError: division by zero")
    assert more.endswith("actionplan --debug list")
    assert "Traceback" in actionplan.program("--debug", "list").err


def test_many_mistakes_with_long_values_are_a_screen_and_not_a_book(
    actionplan: CommandLine,
) -> None:
    wrong = ({"action_type": "nop", "input_parameters": {"message": ["x" * 5000]}},) * 500
    actionplan.document("plan.yaml", *wrong)
    ended = actionplan("create", "plan.yaml")
    assert ended.code == 1
    lines = ended.err.splitlines()
    assert lines[0] == "Refused, 500 mistakes:"
    assert lines[-1] == "  and 480 more"
    assert len(lines) == 22
    assert "(5004 characters)" in lines[1]
    assert max(map(len, lines)) < 200
