# SPDX-License-Identifier: Apache-2.0
"""The output of runs of Ansible for the action type ``ansible``.

Ansible loads this file in its own process; ActionPlan never imports it. It prints a line for each
result, and at the end one with how each host ended: the character RS, and a mapping in JSON.
Supported are ansible-core 2.16 to 2.19. In a later one, an error here may be a mere warning.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from ansible import context
from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: actionplan
type: stdout
short_description: what the action type ansible of ActionPlan reads
description: Prints a line for each result, and at the end how each host ended.
extends_documentation_fragment: [result_format_callback]
"""
#: Begins the last line, as in a JSON text sequence (RFC 7464).
RS = "\x1e"
#: Variables: the index of the only play to run, whether what commands print is shown, and a limit
#: that is no --limit.
ONLY_PLAY, SHOWS_OUTPUT = "ACTIONPLAN_PLAY", "ACTIONPLAN_SHOWS_OUTPUT"
LIMIT = "ACTIONPLAN_LIMIT"
#: The most characters of why a task failed.
_LONGEST = 400


class CallbackModule(CallbackBase):
    """Prints results, and runs one play of a playbook if that is asked for."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "actionplan"

    def __init__(self) -> None:
        super().__init__()
        self._only, self._has_hosts = None, False
        #: The hosts of ``--limit`` that no play has had yet; None before the first play.
        self._missing: dict[str, None] | None = None
        #: By host: the last task that failed, and why; the tasks that check mode does not look at.
        self._failed: dict[str, tuple[str, str]] = {}
        self._unchecked: dict[str, list[str]] = {}

    def v2_playbook_on_start(self, playbook: Any) -> None:
        """Leave only the play that is asked for in a playbook, and only its hosts."""
        if (host := os.environ.get(LIMIT)) and (plays := playbook.get_plays()):
            plays[0].get_variable_manager()._inventory.subset(host)
        if number := os.environ.get(ONLY_PLAY):
            plays = playbook.get_plays()
            if int(number) >= len(plays):
                sys.exit(f"ERROR! no play {number}: the playbook has {len(plays)}, from 0")
            self._only = plays[int(number)]
            playbook._entries[:] = [self._only]

    def v2_playbook_on_play_start(self, play: Any) -> None:
        """Refuse a play that was not asked for, and hosts that are not in the inventory."""
        if os.environ.get(ONLY_PLAY) and play._uuid != getattr(self._only, "_uuid", None):
            sys.exit("ERROR! this version of Ansible does not let a callback choose a play")
        inventory = play.get_variable_manager()._inventory
        if self._missing is None:
            self._missing = dict.fromkeys(filter(None, inventory._subset or ()))
            if unknown := [name for name in self._missing if inventory.get_host(name) is None]:
                sys.exit(f"ERROR! not in the inventory: {', '.join(unknown)}")
        for host in inventory.get_hosts(play.hosts, ignore_restrictions=True):
            self._missing.pop(host.get_name(), None)
            self._has_hosts = True
        if self._only is not None and self._missing:
            sys.exit(f"ERROR! the play is not for {', '.join(self._missing)}: nothing ran")
        self._say(f"PLAY {play.get_name().strip()}")

    def v2_playbook_on_no_hosts_matched(self) -> None:
        """Print that a play is for none of the hosts."""
        self._say("no hosts matched")

    def v2_playbook_on_task_start(self, task: Any, **_: bool) -> None:
        """Print the name of a task or a handler."""
        self._say(f"TASK {task.get_name().strip()}")

    v2_playbook_on_handler_task_start = v2_playbook_on_task_start

    def v2_runner_on_ok(self, result: Any) -> None:
        """Print that a host is changed or ok, and what it shows."""
        found = _of(result, "result")
        self._tell("changed" if found.get("changed") else "ok", result)
        if self._run_is_verbose(result):
            self._clean_results(found, _of(result, "task").action)
            self._say(self._dump_results(found))
        elif os.environ.get(SHOWS_OUTPUT) and found.get("stdout"):
            self._say(str(found["stdout"]))

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """Print and note why a task failed."""
        self._note("failed", result, ignore_errors)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """Print and note why a host was not reached."""
        self._note("unreachable", result, _of(result, "task").ignore_unreachable is True)

    def v2_runner_on_skipped(self, result: Any) -> None:
        """Print that a task is skipped; note one that check mode does not look at."""
        found = _of(result, "result")
        items = found.get("results") or [found]
        is_skipped = not context.CLIARGS.get("check") or all("skip_reason" in i for i in items)
        if not is_skipped:
            name = _of(result, "task").get_name().strip()
            self._unchecked.setdefault(_of(result, "host").get_name(), []).append(name)
        self._tell("skipped" if is_skipped else "not checked", result)

    def v2_on_file_diff(self, result: Any) -> None:
        """Print how files change, if Ansible was asked for that."""
        found = _of(result, "result")
        for one in found.get("results") or [found]:
            if isinstance(one, dict) and one.get("changed") and one.get("diff"):
                self._say(self._get_diff(one["diff"]).rstrip())

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """Print how each host ended; one that was asked for, and had no play, has failed."""
        if not self._has_hosts:
            sys.exit("ERROR! nothing ran: no play is for a host of the inventory")
        why = "no play of the playbook is for it"
        if stats.failures or stats.dark:
            why = "no play was run for it: the run ended before"
        ended = {h: {"outcome": "failed", "task": "", "message": why} for h in self._missing or ()}
        for host in stats.processed:
            counts = stats.summarize(host)
            kinds = (("failures", "failed"), ("unreachable", "unreachable"), ("changed", "changed"))
            outcome = next((outcome for kind, outcome in kinds if counts[kind]), "ok")
            task, why = ", ".join(self._unchecked.get(host, ())), ""
            if outcome in ("failed", "unreachable"):
                task, why = self._failed.get(host, ("", ""))
            ended[host] = {"outcome": outcome, "task": task, "message": why}
        sys.stdout.write(f"{RS}{json.dumps(ended)}\n")

    def _note(self, what: str, result: Any, is_ignored: bool) -> None:
        task, why = _of(result, "task").get_name().strip(), _reason(_of(result, "result"))
        if not is_ignored:
            self._failed[_of(result, "host").get_name()] = (task, why)
        self._tell(f"{what}, ignored" if is_ignored else what, result, why)

    def _tell(self, what: str, result: Any, why: str = "") -> None:
        self._say(f"  {what}: {_of(result, 'host').get_name()}{why and f': {why}'}")

    def _say(self, text: str) -> None:
        self._display.display(text.replace(RS, " "))


def _of(result: Any, name: str) -> Any:
    """Return a field of a result, which is private before ansible-core 2.19."""
    return getattr(result, name) if hasattr(result, name) else getattr(result, f"_{name}")


def _reason(found: Any) -> str:
    """Return why a task failed as one line, with the last line that a command printed."""
    items = [one for one in found.get("results") or () if isinstance(one, dict)]
    wrong = next((one for one in items if one.get("failed")), found)
    said = str(wrong.get("msg") or found.get("msg") or found.get("censored") or "no message")
    outputs = (wrong.get(kind) for kind in ("stderr", "stdout", "module_stderr", "module_stdout"))
    printed = str(next(filter(None, outputs), "")).strip().splitlines()
    return " ".join(f"{said}: {printed[-1]}".split() if printed else said.split())[:_LONGEST]
