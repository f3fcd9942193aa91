# SPDX-License-Identifier: Apache-2.0
"""What is refused and how: documents, command lines, output that goes where nobody reads it."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import signal
import struct
import subprocess
import termios
from typing import IO

import yaml
from command_line import EXAMPLE, PROGRAM, ROOT, wait_until

ROWS = yaml.safe_load((ROOT / "tests/cases/cli/bad_input.yaml").read_text(encoding="utf-8"))


def test_a_bad_document_is_answered_with_a_sentence_and_not_kept(actionplan):
    for row in ROWS:
        (actionplan.folder / "bad.yaml").write_text(row["document"], encoding="utf-8")
        ended = actionplan("create", "bad.yaml", *row.get("arguments", ()))
        assert ended == (row.get("code", 1), "", row["message"]), row["title"]
    assert actionplan.plans() == []


def test_names_with_blanks_and_letters_of_any_script_are_read_and_shown(actionplan):
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


def test_long_words_are_answered_with_a_short_sentence(actionplan):
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


def test_a_broken_plugin_hides_no_other_and_is_named_by_who_needs_it(actionplan):
    site = actionplan.folder / "site"
    info = site / "broken-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text("[actionplan.actions]\nshaky = broken:Shaky\n", "utf-8")
    (site / "broken.py").write_text("import nothing_of_this_name\n", encoding="utf-8")
    actionplan.environment["PYTHONPATH"] = str(site)
    out = actionplan.program("action", "type", "list").out
    assert all(text in out for text in ("shaky", "nothing_of_this_name", "migrate"))
    ended = actionplan.program(
        "apply", actionplan.document("a.yaml", {"action_type": "shaky"}), "--yes"
    )
    assert (ended.code, "action type 'shaky' cannot be used: " in ended.err) == (1, True)
    assert "No module named 'nothing_of_this_name'" in ended.err


def test_a_bug_is_told_in_a_sentence_and_in_full_when_asked(actionplan):
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


def test_standard_input_is_read_like_a_file(actionplan):
    ended = actionplan("create", "-", stdin=b"\xff\xfe")
    assert (ended.code, ended.err.startswith("Refused: standard input:1: not UTF-8 ")) == (1, True)
    out = actionplan.good("apply", "-", "--yes", stdin="actions: []\n")
    assert "Nothing to do: the plan has no actions." in out


def test_bytes_that_are_no_text_are_refused_but_in_names_of_files(actionplan):
    byte = os.fsdecode(b"\xe9")
    for words, name in (
        (("stop", "last", "--reason", f"caf{byte}"), "--reason: b'caf\\xe9'"),
        (("create", "a.yaml", "--set", byte), "--set: b'\\xe9'"),
        (("show", byte), "PLAN: b'\\xe9'"),
    ):
        ended = actionplan(*words)
        assert ended.code == 2
        assert f" argument {name} is not text in utf-8\n" in ended.err
    actionplan.document(f"{byte}.yaml", {"action_type": "nop"})
    assert actionplan("create", f"{byte}.yaml", "--out", f"{byte}.json").code == 0
    assert (actionplan.folder / f"{byte}.json").is_file()


def test_a_wrong_command_line_is_answered_with_a_right_one(actionplan):
    actionplan.check_refusals(
        "usage",
        "lst",
        "web.yaml create",
        "--config-file a.conf last show",
        "action lst last",
        "simulator",
        "qqq --help",
        "create",
        "show last first",
        "create a.yaml --seet a=b",
        "action skip last a --reson=b",
        "action skip last a b --reason '-late start'",
        "list -fcsv --lgo-file a",
        "--lgo-file a list",
        "list --limit 0",
        "create a.yaml --out ''",
        "--config-file '' list",
        "history --limit ten",
        "event list --after -1",
        "watch last -f yaml",
        "--config-file",
    )
    assert not actionplan.record.exists()


def test_who_reads_only_the_first_line_gets_no_complaint(actionplan):
    actions = ({"name": f"a{i}" + "x" * 60, "action_type": "nop"} for i in range(2000))
    actionplan.document("many.yaml", *actions)
    actionplan.good("create", "many.yaml", "--no-check-types")
    for words in ("show last --all", "show last -f json"):
        ended = actionplan.shell(f"actionplan {words} | head -n 1")
        assert (len(ended.out.splitlines()), ended.err) == (1, "")


def test_streams_that_the_shell_closed_or_that_are_full_break_nothing(actionplan):
    for words, code in (("list >&-", 0), ("create - <&-", 1), ("nonsense 2>&-", 2)):
        ended = actionplan.shell(f"actionplan {words}")
        assert ended.code == code
        assert not re.search("Traceback|bug", ended.err)
    ended = actionplan.shell("actionplan list > /dev/full")
    assert ended.code == 1
    assert (ended.err.count("\n"), os.strerror(errno.ENOSPC) in ended.err) == (1, True)


def unread(pipe: IO[str]) -> int:
    """Return how many bytes that were written to a pipe nobody has read."""
    return int(struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0])


def test_ctrl_c_while_a_document_is_awaited_ends_quietly(actionplan):
    with subprocess.Popen(
        [PROGRAM, "-v", "create", "-"],
        env=actionplan.environment,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        process.stdin.write("name: x\n")
        process.stdin.flush()
        # Before it reads, Python itself may still be starting, which has a word of its own.
        wait_until(lambda: not unread(process.stdin))
        process.send_signal(signal.SIGINT)
        told = process.stderr.read()
    assert process.returncode in (130, -signal.SIGINT)
    assert "bug" not in told


def test_what_libraries_log_goes_to_a_file_when_asked(actionplan):
    bad = {"name": "bad", "action_type": "shell", "input_parameters": {"argv": ["/no/such"]}}
    actionplan.document("plan.yaml", bad)
    ended = actionplan("--log-file", "log.txt", "apply", "plan.yaml", "--yes")
    assert (ended.code, ended.err) == (3, "")
    assert (actionplan.folder / "log.txt").exists()
    refused = actionplan("--log-file", "no/such/folder/log.txt", "list")
    assert refused.err.startswith("Refused: --log-file no/such/folder/log.txt ")
    assert (refused.code, os.strerror(errno.ENOENT) in refused.err) == (1, True)


def test_rows_come_in_every_format(actionplan):
    actionplan.document("plan.yaml", {"name": "a", "action_type": "nop"}, name="web")
    actionplan.good("create", "plan.yaml")
    for form in ("json", "yaml", "csv", "value", "table"):
        assert "web" in actionplan.good("list", "-f", form, "-c", "name")
    ended = actionplan("list", "-c", "nmae")
    assert ended.code == 1
    assert "-c nmae: no such column" in ended.err
