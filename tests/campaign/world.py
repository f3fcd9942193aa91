# SPDX-License-Identifier: Apache-2.0
"""A plan whose commands write into one file what they do, and what must hold for that file.

The file tells what happened in the world, whatever appliers and record say. A line is ``begin
NAME`` or ``end NAME``; each is one write at the end of the file, so the order of the lines is the
order of the events.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from applier.scheduling.gates import Gates
from applier.scheduling.verdict import ActionEnd
from planner.plan.model import JOIN, Action, ActionPlan
from planner.plan.states import ActionState, Outcome, PlanState

sys.path.insert(0, str(Path(__file__).parents[1] / "contract"))
from random_plans import expected_ends, random_plan

#: On a full disk nothing can be printed; that alone is no failure of the command.
SCRIPT = """\
printf 'begin %s\\n' "$1" >>"$2"; echo "$1 begun"
sleep "$3"
printf 'end %s\\n' "$1" >>"$2"; echo "$1 done" || true
"""
#: The longest time that a command takes, in seconds, but for those that are to outlive appliers.
SHORT_S = 0.4
#: The type of actions that are no commands.
IN_PROCESS = "nop"
#: At least one command outlives appliers, and one of so many.
RARE = 12


def plan_of(
    seed: int,
    size: int,
    file: Path,
    longest_s: float,
    *,
    rare: int = RARE,
    in_process: float = 0.0,
) -> ActionPlan:
    """Return the plan of a seed; its commands write to ``file``, and one of ``rare`` is long.

    Such a part of them is no command, but work in the process of whoever runs it.
    """
    chance = Random(seed)
    plan = random_plan(seed, size)
    certain = chance.choice([a.uuid for a in plan.actions if a.action_type != JOIN])

    def command(action: Action) -> Action:
        if action.action_type == JOIN:
            return action
        long = action.uuid == certain or chance.randrange(rare) == 0
        seconds = chance.uniform(longest_s / 3, longest_s) if long else chance.uniform(0, SHORT_S)
        if in_process and chance.random() < in_process:
            work = {"uuid": action.uuid, "file": str(file), "seconds": seconds}
            return replace(action, action_type=IN_PROCESS, input_parameters=work)
        argv = ["/bin/sh", "-c", SCRIPT, "sh", action.uuid, str(file), f"{seconds:.2f}"]
        parameters = {"argv": argv, "timeout_s": longest_s * 20}
        return replace(action, action_type="shell", input_parameters=parameters)

    # Commands are found by the uuid of their plan: campaigns at once must not find each other's.
    uuid = f"{plan.uuid}-{os.getpid()}"
    return replace(plan, uuid=uuid, actions=tuple(map(command, plan.actions)))


def read(file: Path) -> list[tuple[str, str]]:
    """Read the events so far; each is ``begin`` or ``end``, and the uuid of an action."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [(word, uuid) for word, uuid in (line.split() for line in lines)]


def wrong_in(plan: ActionPlan, events: Sequence[tuple[str, str]], workers: int) -> Iterator[str]:
    """Say where an action began too early, twice, or beside too many others.

    Work in a process that was killed may begin again, and may never end; its effect is its end.
    What was lost so is not said to run: nobody knows until when it did.
    """
    actions = {action.uuid: action for action in plan.actions}
    commands = {uuid for uuid, action in actions.items() if action.action_type != JOIN}
    in_process = {uuid for uuid, action in actions.items() if action.action_type == IN_PROCESS}
    both = Counter(events)
    lost = {u for u in in_process if not both["begin", u] == both["end", u] == 1}
    limit = Gates(plan.limits, workers).limit
    begun: Counter[str] = Counter()
    ended: Counter[str] = Counter()
    for word, uuid in events:
        if word == "end":
            ended[uuid] += 1
            if ended[uuid] > 1:
                yield f"{uuid} ended {ended[uuid]} times"
            continue
        begun[uuid] = 1 if uuid in in_process else begun[uuid] + 1
        if begun[uuid] > 1:
            yield f"{uuid} began {begun[uuid]} times"
        running = Counter({u: n for u, n in (begun - ended).items() if u not in lost})
        for before in commands & set(actions[uuid].before()):
            if running[before]:
                yield f"{uuid} began before {before} had ended"
        held = Counter(token for u in running for token in actions[u].tokens)
        for token in actions[uuid].tokens:
            if held[token] > (limit(token) or held[token]):
                yield f"{token} was held {held[token]} times when {uuid} began"
        if running.total() > workers:
            yield f"{running.total()} ran at once when {uuid} began"
    for uuid in (begun - ended).keys() - in_process:
        yield f"{uuid} never ended"


#: Said of an action that needs a token of one that may still run.
HELD = " is held by "
#: Said of a command that did not begin because its job could not be written.
NO_ROOM = ("No space left", "cannot be written")


def wrong_at_the_end(
    found: ActionPlan, events: Sequence[tuple[str, str]], *, doubts: bool = False
) -> Iterator[str]:
    """Say where the record of an ended plan differs from what happened, and from what had to.

    An action may have FAILED if it says that there was no room for it, and did not begin. With
    ``doubts`` it may be UNKNOWN, whatever it did, and CANCELLED if it needs what such a one holds.
    """
    in_process = {a.uuid for a in found.actions if a.action_type == IN_PROCESS}
    begun = {u for word, u in events if word == ("end" if u in in_process else "begin")}
    failed = {
        action.uuid: ActionEnd(ActionState.FAILED, action.outcome)
        for action in found.actions
        if action.state is ActionState.FAILED
        and action.uuid not in begun
        and any(why in str(action.status_message) for why in NO_ROOM)
    }
    if doubts:
        unknown = ActionState.UNKNOWN
        failed |= {a.uuid: ActionEnd(unknown, None) for a in found.actions if a.state is unknown}
        failed |= {a.uuid: ActionEnd(a.state, None) for a in found.actions if _is_held_up(a)}
    well = ActionEnd(ActionState.SUCCEEDED, Outcome.CHANGED)
    ends = expected_ends(found, lambda uuid: failed.get(uuid, well))
    if found.state is not (PlanState.FAILED if failed else PlanState.SUCCEEDED):
        yield f"the plan ended {found.state}"
    for action in found.actions:
        end, told = ends[action.uuid], action.status_message
        if ActionEnd(action.state, action.outcome) != end:
            yield f"{action.uuid} ended {action.state} and not {end.state}: {told}"
        elif (
            action.action_type != JOIN
            and end.state is not ActionState.UNKNOWN
            and (end.state is ActionState.SUCCEEDED) != (action.uuid in begun)
        ):
            yield f"{action.uuid} is {action.state}, and in the world it is not so"


def _is_held_up(action: Action) -> bool:
    return action.state is ActionState.CANCELLED and HELD in str(action.status_message)
