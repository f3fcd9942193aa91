# SPDX-License-Identifier: Apache-2.0
"""Command lines typed wrong, and output that goes where it cannot be read."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import resource
import signal
import struct
import subprocess
import termios
from typing import IO

from command_line import PROGRAM, CommandLine, wait_until


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


def test_a_wrong_command_line_is_answered_with_a_right_one(actionplan: CommandLine) -> None:
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
        "list --limit 0",
        "create a.yaml --out ''",
        "--config-file '' list",
        "history --limit ten",
        "event list --after -1",
        "watch last -f yaml",
        "--config-file",
    )
    assert not actionplan.record.exists()


def test_who_reads_only_the_first_line_gets_no_complaint(actionplan: CommandLine) -> None:
    actions = ({"name": f"a{i}" + "x" * 60, "action_type": "nop"} for i in range(2000))
    actionplan.document("many.yaml", *actions)
    actionplan.good("create", "many.yaml", "--no-check-types")
    for words in ("show last --all", "show last -f json"):
        ended = actionplan.shell(f"actionplan {words} | head -n 1")
        assert (len(ended.out.splitlines()), ended.err) == (1, "")


def test_streams_that_the_shell_closed_or_that_are_full_break_nothing(
    actionplan: CommandLine,
) -> None:
    for words, code in (("list >&-", 0), ("create - <&-", 1), ("nonsense 2>&-", 2)):
        ended = actionplan.shell(f"actionplan {words}")
        assert ended.code == code
        assert not re.search("Traceback|bug", ended.err)
    ended = actionplan.shell("actionplan list > /dev/full")
    assert ended.code == 1
    assert (ended.err.count("\n"), os.strerror(errno.ENOSPC) in ended.err) == (1, True)


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
    assert refused.err.startswith("Refused: --log-file no/such/folder/log.txt ")
    assert (refused.code, os.strerror(errno.ENOENT) in refused.err) == (1, True)


def test_rows_come_in_every_format(actionplan: CommandLine) -> None:
    actionplan.document("plan.yaml", {"name": "a", "action_type": "nop"}, name="web")
    actionplan.good("create", "plan.yaml")
    for form in ("json", "yaml", "csv", "value", "table"):
        assert "web" in actionplan.good("list", "-f", form, "-c", "name")
    ended = actionplan("list", "-c", "nmae")
    assert ended.code == 1
    assert "-c nmae: no such column" in ended.err
