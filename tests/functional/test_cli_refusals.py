# SPDX-License-Identifier: Apache-2.0
"""What is refused: the exact sentence, the exit code, and a record that was left alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from command_line import EXAMPLE, ROOT, CommandLine

from applier.storage.tables import VERSION_TABLE
from planner.states import PlanState

ROWS = yaml.safe_load((ROOT / "tests/cases/cli/bad_input.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["title"])
def test_a_bad_document_is_answered_with_a_sentence_and_not_kept(
    actionplan: CommandLine, row: Mapping[str, Any]
) -> None:
    (actionplan.folder / "bad.yaml").write_text(row["document"], encoding="utf-8")
    ended = actionplan.inside("create", "bad.yaml", *row.get("arguments", ()))
    assert ended.err == row["message"]
    assert (ended.code, ended.out, actionplan.plans()) == (row.get("code", 1), "", [])


def test_every_mistake_of_a_cloud_has_a_line_of_its_own(actionplan: CommandLine) -> None:
    (actionplan.folder / "cloud.yaml").write_text("hosts: {}\n", encoding="utf-8")
    ended = actionplan.inside("simulator", "reset", "--from", "cloud.yaml")
    assert ended.err == (
        "Refused, 2 mistakes:\n"
        "  cloud.yaml:1: the field 'flavors' is missing\n"
        "  cloud.yaml:1: the field 'instances' is missing\n"
    )


def test_a_folder_is_not_written_over(actionplan: CommandLine) -> None:
    actionplan.document("p.yaml", {"action_type": "nop"})
    ended = actionplan.inside("create", "p.yaml", "--dry-run", "--out", ".")
    assert ended.err == "Refused: --out . cannot be written: Is a directory\n"


def test_states_may_be_typed_small(actionplan: CommandLine) -> None:
    assert actionplan("list", "--state", "failed").code == 0


FILES = {
    "missing.yaml": "missing.yaml: cannot be read: No such file or directory",
    "folder": "folder: cannot be read: Is a directory",
    "latin.yaml": "latin.yaml:1: not UTF-8 text: invalid",
    "broken.json": "broken.json:1: not JSON: ",
    "-": "standard input:1: not UTF-8 text: ",
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_cannot_be_read_is_named(actionplan: CommandLine, name: str) -> None:
    (actionplan.folder / "folder").mkdir()
    (actionplan.folder / "latin.yaml").write_bytes("name: Grüße\n".encode("latin-1"))
    (actionplan.folder / "broken.json").write_text('{"actions": [}', encoding="utf-8")
    ended = actionplan.inside("create", name, stdin=b"\xff\xfe")
    assert ended.err.startswith(f"Refused: {FILES[name]}")
    assert (ended.code, ended.out, actionplan.plans()) == (1, "", [])


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
    assert "größe ändern" in actionplan("show", "nächtlich", LC_ALL="C").out
    ascii_only = actionplan("show", "nächtlich", PYTHONIOENCODING="ascii")
    assert ascii_only.code == 0
    assert "gr\\xf6\\xdfe \\xe4ndern" in ascii_only.out


@pytest.mark.parametrize(
    "words",
    [
        ("x" * 5000,),
        ("help", "x" * 5000),
        ("show", "x" * 100_000),
        ("graph", "last", "--node", "(" * 500),
        ("graph", "last", "--node", "(" * 5000),
    ],
    ids=lambda words: " ".join(words)[:20],
)
def test_long_words_are_answered_with_a_short_sentence(
    actionplan: CommandLine, words: tuple[str, ...]
) -> None:
    actionplan.good("create", str(EXAMPLE))
    ended = actionplan.inside(*words)
    assert ended.code in (1, 2)
    assert "bug" not in ended.err
    assert "LIKE" not in ended.err
    assert 0 < len(ended.err) < 600


def test_what_a_name_does_to_a_terminal_is_not_shown(actionplan: CommandLine) -> None:
    actionplan.document("a.yaml", {"name": "a", "action_type": "nop"}, name="[red]x[/y]")
    out = actionplan.good("apply", "a.yaml", "--yes")
    assert "Plan " in out
    assert out.count("[red]x[/y]") == 2


def test_a_document_comes_from_standard_input(actionplan: CommandLine) -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    assert "11 actions in 7 waves" in actionplan.good("create", "-", stdin=text)
    assert "RECAP" in actionplan.good("apply", "-", "--yes", stdin=text)


def test_a_plan_without_actions_has_nothing_to_do(actionplan: CommandLine) -> None:
    actionplan.document("empty.yaml")
    out = actionplan.good("apply", "empty.yaml", "--yes")
    assert "Nothing to do: the plan has no actions." in out


def test_two_thousand_actions_are_planned_and_shown_in_few_lines(actionplan: CommandLine) -> None:
    actions = ({"name": f"a{i}", "action_type": "nop"} for i in range(2000))
    actionplan.document("many.yaml", *actions)
    lines = actionplan.good("create", "many.yaml").splitlines()
    assert any(line.startswith("2000 actions in 2000 waves") for line in lines)
    assert len(lines) < 50


def test_types_that_no_plugin_offers_are_planned_when_asked_and_never_run(
    actionplan: CommandLine,
) -> None:
    actionplan.document("a.yaml", {"name": "a", "action_type": "levitate"})
    ended = actionplan.inside("apply", "a.yaml", "--yes", "--no-check-types")
    assert ended.code == 1
    assert "needs action types that no plugin offers: levitate. Known: " in ended.err
    assert "RECAP" not in ended.out
    assert actionplan.plans() == []
    actionplan.good("create", "a.yaml", "--no-check-types")
    assert actionplan.plan().state is PlanState.RECOMMENDED
    assert actionplan.inside("apply", "last", "--yes").err == ended.err.replace(
        ended.err.split()[2], actionplan.plan().uuid[:8]
    )


@pytest.mark.parametrize("words", [("list",), ("create", str(EXAMPLE)), ("show", "last")])
def test_a_state_folder_that_cannot_be_used_is_named(
    actionplan: CommandLine, words: tuple[str, ...]
) -> None:
    (actionplan.folder / "state").write_text("in the way", encoding="utf-8")
    ended = actionplan.inside(*words)
    assert ended.code == 1
    assert ended.err.startswith(f"Refused: sqlite:///{actionplan.record}: cannot use the folder")


def test_a_record_that_is_none_is_left_alone(actionplan: CommandLine) -> None:
    actionplan.record.parent.mkdir(parents=True)
    actionplan.record.write_text("letters to my aunt" * 100, encoding="utf-8")
    ended = actionplan.inside("list")
    assert (ended.code, ended.out) == (1, "")
    assert "file is not a database; name another file in [actionplan] connection" in ended.err
    assert actionplan.record.read_text(encoding="utf-8").startswith("letters to my aunt")


def test_a_record_of_another_version_is_left_alone(actionplan: CommandLine) -> None:
    actionplan.good("list")
    with sqlite3.connect(actionplan.record) as database:
        database.execute(f"UPDATE {VERSION_TABLE} SET version_num = '9999'")  # noqa: S608
    database.close()
    ended = actionplan.inside("list")
    assert ended.code == 1
    assert "its tables have version 9999, not 0001_" in ended.err


def test_a_server_that_does_not_answer_is_named_without_its_password(
    actionplan: CommandLine,
) -> None:
    pytest.importorskip("psycopg")
    actionplan.configure(actionplan={"connection": "postgresql://me:secret@127.0.0.1:9/plans"})
    ended = actionplan.inside("list")
    assert ended.code == 1
    assert "postgresql://me:***@127.0.0.1:9/plans" in ended.err
    assert "secret" not in ended.err + ended.out


def test_a_simulator_file_that_is_damaged_is_named(actionplan: CommandLine) -> None:
    actionplan.simulator.parent.mkdir(parents=True)
    actionplan.simulator.write_text("{", encoding="utf-8")
    ended = actionplan.inside("simulator", "show")
    assert ended.code == 1
    assert str(actionplan.simulator) in ended.err
    assert "Traceback" not in ended.err


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


def test_a_broken_plugin_hides_no_other(broken: CommandLine) -> None:
    out = broken("action", "type", "list").out
    assert "shaky" in out
    assert "nothing_of_this_name" in out
    assert "migrate" in out


def test_a_broken_plugin_is_named_by_who_needs_it(broken: CommandLine) -> None:
    broken.document("a.yaml", {"name": "a", "action_type": "shaky"})
    ended = broken("apply", "a.yaml", "--yes")
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
    ended = actionplan("list")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.splitlines() == [
        "This is a bug in ActionPlan or in a plugin: ZeroDivisionError: division by zero",
        "To see where: actionplan --debug list",
    ]
    assert "Traceback" in actionplan("--debug", "list").err


def test_aliases_that_repeat_too_much_are_refused_and_nothing_is_stored(
    actionplan: CommandLine,
) -> None:
    lines = ["a0: &a0 [lol, lol]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    (actionplan.folder / "laugh.yaml").write_text("\n".join(lines), encoding="utf-8")
    ended = actionplan.inside("create", "laugh.yaml")
    assert ended.code == 1
    assert ended.err == (
        "Refused: laugh.yaml:7: not YAML: aliases repeat more than 1,000,000 values\n"
    )
    assert actionplan.inside("list", "-f", "json").out.strip() == "[]"


def test_many_mistakes_with_long_values_are_a_screen_and_not_a_book(
    actionplan: CommandLine,
) -> None:
    wrong = ({"action_type": "nop", "input_parameters": {"message": ["x" * 5000]}},) * 500
    actionplan.document("plan.yaml", *wrong)
    ended = actionplan.inside("create", "plan.yaml")
    assert ended.code == 1
    lines = ended.err.splitlines()
    assert lines[0] == "Refused, 500 mistakes:"
    assert lines[-1] == "  and 480 more"
    assert len(lines) == 22
    assert "(5004 characters)" in lines[1]
    assert max(map(len, lines)) < 200
