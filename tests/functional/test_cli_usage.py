# SPDX-License-Identifier: Apache-2.0
"""Command lines typed wrong, and output that goes where it cannot be read."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import struct
import subprocess
import termios
from typing import IO

import pytest
from command_line import PROGRAM, CommandLine, wait_until

USAGE = [
    (["lst"], "actionplan: no verb 'lst'; did you mean: actionplan list\n"),
    (
        ["web.yaml", "create"],
        "actionplan: no verb 'web.yaml'; did you mean: actionplan create web.yaml\n",
    ),
    (
        ["--config-file", "a.conf", "last", "show"],
        "actionplan: no verb 'last'; did you mean: actionplan --config-file a.conf show last\n",
    ),
    (
        ["action", "lst", "last"],
        "actionplan: no verb 'action lst'; did you mean: actionplan action list last\n",
    ),
    (
        ["simulator"],
        "actionplan: no verb 'simulator'; with 'simulator' begin: "
        "simulator reset, simulator show\n",
    ),
    (["qqq", "--help"], "actionplan: no verb 'qqq'; all verbs: actionplan --help\n"),
    (
        ["create"],
        "actionplan create: the following arguments are required: FILE\n"
        "For example: actionplan create maintenance.yaml\n"
        "All of it: actionplan help create\n",
    ),
    (
        ["show", "last", "first"],
        "actionplan show: 'first' is one argument too many\n"
        "For example: actionplan show last\n"
        "All of it: actionplan help show\n",
    ),
    (
        ["create", "a.yaml", "--seet", "a=b"],
        "actionplan create: no option --seet; did you mean --set?\n"
        "For example: actionplan create maintenance.yaml\n"
        "All of it: actionplan help create\n",
    ),
    (
        ["list", "--limit", "0"],
        "actionplan list: argument --limit: '0' is not a whole number of 1 or more\n"
        "For example: actionplan list\n"
        "All of it: actionplan help list\n",
    ),
    (
        ["create", "a.yaml", "--out", ""],
        "actionplan create: argument --out: it is empty, and has to name a file\n"
        "For example: actionplan create maintenance.yaml\n"
        "All of it: actionplan help create\n",
    ),
    (
        ["--config-file", "", "list"],
        "actionplan: argument --config-file: it is empty, and has to name a file\n"
        "All of it: actionplan --help\n",
    ),
    (
        ["history", "--limit", "ten"],
        "actionplan history: argument --limit: 'ten' is not a whole number of 1 or more\n"
        "For example: actionplan history\n"
        "All of it: actionplan help history\n",
    ),
    (
        ["event", "list", "--after", "-1"],
        "actionplan event list: argument --after: '-1' is not the number of an event\n"
        "For example: actionplan event list\n"
        "All of it: actionplan help event list\n",
    ),
    (
        ["watch", "last", "-f", "yaml"],
        "actionplan watch: argument -f/--format: invalid choice: 'yaml' (choose from 'json')\n"
        "For example: actionplan watch last\n"
        "All of it: actionplan help watch\n",
    ),
    (
        ["--config-file"],
        "actionplan: argument --config-file: expected one argument\nAll of it: actionplan --help\n",
    ),
]


def test_bytes_that_are_no_text_are_refused_but_in_names_of_files(actionplan: CommandLine) -> None:
    byte = os.fsdecode(b"\xe9")
    for words, name in (
        (("cancel", "last", "--reason", f"caf{byte}"), "--reason: b'caf\\xe9'"),
        (("create", "a.yaml", "--set", byte), "--set: b'\\xe9'"),
        (("show", byte), "PLAN: b'\\xe9'"),
    ):
        ended = actionplan(*words)
        assert ended.code == 2
        assert f" argument {name} is not text in utf-8\n" in ended.err
    actionplan.document(f"{byte}.yaml", {"action_type": "nop"})
    assert actionplan("create", f"{byte}.yaml", "--out", f"{byte}.json").code == 0
    assert (actionplan.folder / f"{byte}.json").is_file()


@pytest.mark.parametrize(("words", "answer"), USAGE, ids=lambda value: " ".join(value)[:30])
def test_a_wrong_command_line_is_answered_with_a_right_one(
    actionplan: CommandLine, words: list[str], answer: str
) -> None:
    ended = actionplan(*words)
    assert ended.err == answer
    assert (ended.code, ended.out, actionplan.record.exists()) == (2, "", False)


@pytest.mark.parametrize(
    "words", [("--help",), ("show", "last", "--all"), ("show", "last", "-f", "json")]
)
def test_who_reads_only_the_first_line_gets_no_complaint(
    actionplan: CommandLine, words: tuple[str, ...]
) -> None:
    actions = ({"name": f"a{i}" + "x" * 60, "action_type": "nop"} for i in range(2000))
    if words[0] == "show":
        actionplan.document("many.yaml", *actions)
        actionplan.good("create", "many.yaml", "--no-check-types")
    line = f"{PROGRAM} {' '.join(words)} | head -n 1"
    ended = subprocess.run(
        ["bash", "-c", line],
        cwd=actionplan.folder,
        env=actionplan.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(ended.stdout.splitlines()) == 1
    assert ended.stderr == ""


@pytest.mark.parametrize("words", ["list >&-", "list <&-", "create - <&-", "nonsense 2>&-"])
def test_streams_that_the_shell_closed_break_nothing(actionplan: CommandLine, words: str) -> None:
    ended = subprocess.run(
        ["bash", "-c", f"{PROGRAM} {words}"],
        env=actionplan.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == {"create": 1, "nonsense": 2}.get(words.split()[0], 0)
    assert "Traceback" not in ended.stderr
    assert "bug" not in ended.stderr


def test_a_full_disk_is_named(actionplan: CommandLine) -> None:
    ended = subprocess.run(
        ["bash", "-c", f"{PROGRAM} list > /dev/full"],
        env=actionplan.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stderr == "Standard output cannot be written: No space left on device\n"


def test_what_was_planned_is_read_when_the_disk_of_the_record_is_full(
    actionplan: CommandLine,
) -> None:
    actionplan.document("p.yaml", {"name": "first", "action_type": "nop"})
    actionplan.good("apply", "p.yaml", "--yes")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    verbs = ("list", "show last", "why last first", "action list last", "simulate last")
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
        for verb in (*verbs, "graph last -f mermaid", "watch last"):
            ended = actionplan(*verb.split())
            assert (ended.code, ended.err) == (0, ""), verb
            assert ended.out, verb
        ended = actionplan("delete", "last", "--yes")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert ended.code == 1
    assert ended.err.startswith("Refused: sqlite:///")
    assert "disk I/O error; free some space there" in ended.err


def unread(pipe: IO[str]) -> int:
    """Return how many bytes that were written to a pipe nobody has read."""
    return int(struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0])


def test_ctrl_c_while_a_document_is_awaited_ends_quietly(actionplan: CommandLine) -> None:
    with subprocess.Popen(
        [PROGRAM, "-v", "create", "-"],
        env=actionplan.environment,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        process.stdin.write("name: x\n")
        process.stdin.flush()
        # Before it reads, Python itself may still be starting, which has a word of its own.
        wait_until(lambda: not unread(process.stdin))
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        told = process.stderr.read()
    assert process.returncode in (130, -signal.SIGINT)
    assert "bug" not in told


def test_what_libraries_log_goes_to_a_file_when_asked(actionplan: CommandLine) -> None:
    bad = {"name": "bad", "action_type": "shell", "input_parameters": {"argv": ["/no/such"]}}
    actionplan.document("plan.yaml", bad)
    ended = actionplan("--log-file", "log.txt", "apply", "plan.yaml", "--yes")
    assert (ended.code, ended.err) == (3, "")
    assert (actionplan.folder / "log.txt").exists()
    refused = actionplan("--log-file", "no/such/folder/log.txt", "list")
    assert refused.err == (
        "Refused: --log-file no/such/folder/log.txt cannot be written: No such file or directory\n"
    )


def test_rows_come_in_every_format(actionplan: CommandLine) -> None:
    actionplan.document("plan.yaml", {"name": "a", "action_type": "nop"}, name="web")
    actionplan.good("create", "plan.yaml")
    for form in ("json", "yaml", "csv", "value", "table"):
        assert "web" in actionplan.good("list", "-f", form, "-c", "name")
    ended = actionplan("list", "-c", "nmae")
    assert ended.code == 1
    assert "-c nmae: no such column; did you mean 'name'? Known: actions, created" in ended.err
