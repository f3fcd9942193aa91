# SPDX-License-Identifier: Apache-2.0
"""Calls the prechecks of the actions of a plan, without running any action."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import partial
from typing import NamedTuple

from applier import log_fields
from applier.contracts import ActionPlugin, silent
from applier.engines.attempts_in_progress import AT_ONCE, answers
from applier.engines.environment import ActionEnvironment
from applier.errors import ActionFailed, AlreadyDone
from applier.secret_values import NO_SECRETS, resolve
from planner.plan.model import JOIN, Action
from planner.plan.states import ActionState

#: Kinds of resources that an action changes, on a host that it only uses.
_SINGLE = frozenset({"instance", "volume"})
#: How many seconds without any result are waited for dry runs that run commands.
COMMANDS_PATIENCE_S = 600.0


class Precheck(StrEnum):
    """The result of the precheck of an action."""

    #: There is work to do, and nothing that forbids it.
    TO_DO = "to do"
    #: Its work is done already, or what it works on is gone: it would be skipped.
    NOT_NEEDED = "not needed"
    #: It would fail now.
    REFUSED = "refused"
    #: An earlier action of the plan works on the same resource: the result may be different then.
    LATER = "not known yet"
    #: Its type has no precheck.
    UNCHECKED = "not checked"
    #: The precheck did not return in time, or raised an unexpected error.
    NO_ANSWER = "no answer"


class Prechecked(NamedTuple):
    """An action, the result of its precheck, and the reason for it, if there is one."""

    action: Action
    found: Precheck
    why: str | None = None


def check_all(
    actions: Sequence[Action],
    environment: ActionEnvironment,
    patience_s: float = 30.0,
    *,
    runs_commands: bool = False,
) -> list[Prechecked]:
    """Call the precheck of each action that has not started, in parallel; change nothing.

    Return the results in plan order, without joins. If no precheck returns for ``patience_s``
    seconds, the remaining ones are NO_ANSWER. A result DONE or REFUSED is replaced by LATER if an
    earlier action of the plan works on the same resource. With ``runs_commands``, the dry run of
    each is called instead, which may run commands that only look; those are waited for longer.
    """
    plugins = environment.plugins
    waiting = [a for a in actions if a.state is ActionState.PENDING and a.action_type != JOIN]
    asked = [a for a in waiting if plugins[a.action_type].precheck is not ActionPlugin.precheck]
    if runs_commands and any(
        plugins[a.action_type].dry_run is not ActionPlugin.dry_run for a in asked
    ):
        patience_s = COMMANDS_PATIENCE_S
    questions = [partial(_ask, action, environment, runs_commands) for action in asked]
    found = {answer.action.uuid: answer for answer in answers(questions, AT_ONCE, patience_s)}
    silence = f"no answer within {patience_s:g} s"
    for action in asked:
        found.setdefault(action.uuid, Prechecked(action, Precheck.NO_ANSWER, silence))
    return list(_judged(waiting, found))


def _ask(action: Action, environment: ActionEnvironment, runs_commands: bool) -> Prechecked:
    with log_fields.about(action=action.uuid):
        return _answered(action, environment, runs_commands)


def _answered(action: Action, environment: ActionEnvironment, runs_commands: bool) -> Prechecked:
    plugin = environment.plugins[action.action_type]
    blotting = NO_SECRETS
    found: Precheck = Precheck.TO_DO
    why: str | None = None
    try:
        parameters, blotting = resolve(action.input_parameters, plugin.SCHEMA)
        work = plugin(parameters, environment.context(action, silent))
        if runs_commands:
            why = work.dry_run()
        else:
            work.precheck()
    except AlreadyDone as reason:
        found, why = Precheck.NOT_NEEDED, str(reason)
    except ActionFailed as reason:
        found, why = Precheck.REFUSED, str(reason)
    except Exception as error:  # noqa: BLE001 -- a plugin may raise anything; then it is its answer
        found, why = Precheck.NO_ANSWER, f"{type(error).__name__}: {error}"
    return Prechecked(action, found, blotting(why) if why else None)


def _judged(actions: Iterable[Action], found: dict[str, Prechecked]) -> Iterable[Prechecked]:
    """Yield the result of each action: LATER if an earlier action works on its resources."""
    worked_on: dict[str, Action] = {}
    for action in actions:
        resources = _own(action)
        earlier = next((t for t in resources if t in worked_on), None)
        _, result, why = known = found.get(action.uuid, Prechecked(action, Precheck.UNCHECKED))
        if earlier is not None and result in (Precheck.NOT_NEEDED, Precheck.REFUSED):
            before = f"{worked_on[earlier].label} works on {earlier} before it"
            yield Prechecked(action, Precheck.LATER, f"{before}; now: {why or result}")
        else:
            yield known
        if result is not Precheck.NOT_NEEDED:
            worked_on.update(dict.fromkeys(action.tokens, action))


def _own(action: Action) -> list[str]:
    """Return the tokens of the instances and volumes of an action; else all but those of types."""
    held = [t for t in action.tokens if not t.startswith("type:")]
    return [t for t in held if t.partition(":")[0] in _SINGLE] or held
