# SPDX-License-Identifier: Apache-2.0
"""``actionplan apply --dry-run``: calls the precheck of each action, and runs none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from applier.cli.reporters.plan_table import cell, console, put, table_of
from applier.cli.verb import OUT_OF_DATE, Verb
from applier.operations.dry_run import dry_run
from applier.run.plan_cloud import cloud_of
from applier.run.prechecks import Precheck, Prechecked
from applier.wording import count, one_line
from planner.model import ActionPlan

#: The colours of findings.
_STYLES = {
    Precheck.DONE: "cyan",
    Precheck.REFUSED: "bold red",
    Precheck.NO_ANSWER: "yellow",
}


def show_dry_run(verb: Verb, plan: ActionPlan) -> int:
    """Write what the prechecks found, how the cloud differs from the plan, and a refusing guard.

    Return the exit code, OUT_OF_DATE if a run would be refused. Nothing is stored or changed.
    """
    found = dry_run(verb.session.assembly, plan)
    verb.say(f"Cloud: {cloud_of(plan)}")
    _show(verb, found.checked)
    if found.moved is not None:
        verb.say("The cloud is as planned." if not found.moved else "The cloud is not as planned:")
        for sentence in found.moved:
            verb.say(f"  {one_line(sentence)}")
    if found.guard is not None:
        verb.say(f"A guard refuses it: {found.guard}")
    verb.say("Nothing was changed, and nothing was stored.")
    return OUT_OF_DATE if found.is_refused else 0


def _show(verb: Verb, found: Sequence[Prechecked]) -> None:
    if found:
        table = table_of("action", "what", "now", "why")
        for one in found:
            state = cell(str(one.found))
            state.stylize(_STYLES.get(one.found, ""))
            what = cell(one.action.description or one.action.action_type)
            table.add_row(cell(one.action.label), what, state, cell(one.why or ""))
        put(console(verb.app.stdout), table)
    counts = Counter(one.found for one in found)
    parts = [f"{counts[kind]} {kind}" for kind in Precheck if counts[kind]]
    verb.say(f"{count(len(found), 'action')}: {', '.join(parts) or 'nothing is left to do'}.")
