# SPDX-License-Identifier: Apache-2.0
"""``--out``: to files, links, pipes, devices and full disks."""

from __future__ import annotations

import json
import os
import stat

import pytest
from command_line import EXAMPLE, CommandLine

VERBS = {
    "create": ("create", str(EXAMPLE), "--dry-run", "--out"),
    "graph": ("graph", str(EXAMPLE), "-f", "svg", "--out"),
}


@pytest.fixture(params=VERBS)
def words(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return VERBS[request.param]


def test_a_device_that_is_full_is_a_sentence_and_stays_a_device(
    actionplan: CommandLine, words: tuple[str, ...]
) -> None:
    before = os.stat("/dev/full")
    (actionplan.folder / "link").symlink_to("/dev/full")
    for place in ("link", "/dev/full"):
        ended = actionplan(*words, place)
        assert ended.code == 1
        assert ended.err == f"Refused: --out {place} cannot be written: No space left on device\n"
        assert stat.S_ISCHR(os.stat("/dev/full").st_mode)
        assert os.stat("/dev/full").st_ino == before.st_ino


def test_files_that_people_asked_for_follow_their_umask(
    actionplan: CommandLine, words: tuple[str, ...]
) -> None:
    before = os.umask(0o022)
    try:
        actionplan.good(*words, "made")
        actionplan.good("create", str(EXAMPLE))
    finally:
        os.umask(before)
    assert stat.S_IMODE((actionplan.folder / "made").stat().st_mode) == 0o644
    assert stat.S_IMODE(actionplan.record.stat().st_mode) == 0o600


def test_standard_output_is_a_place_too(actionplan: CommandLine) -> None:
    ended = actionplan("create", str(EXAMPLE), "--dry-run", "--out", "/dev/stdout", "-f", "yaml")
    plan, rest = json.JSONDecoder().raw_decode(ended.out)
    assert (ended.code, plan["version"], ended.out[rest:].lstrip()[:8]) == (0, "2.0", "version:")


def test_events_that_cannot_be_written_do_not_change_how_a_run_ended(
    actionplan: CommandLine,
) -> None:
    actionplan.document("plan.yaml", {"action_type": "nop"})
    ended = actionplan("apply", "plan.yaml", "--yes", "--events", "/dev/full")
    told = "No more events are written: No space left on device\n"
    assert (ended.code, ended.err) == (0, told)
