# SPDX-License-Identifier: Apache-2.0
"""Finds out what became of interrupted actions: looks for their commands, else asks plugins."""

from __future__ import annotations

import logging
import queue
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from applier import log_fields
from applier.contracts import ActionPlugin, Claimant, Report, Verified
from applier.contracts.attempt_machines import AttemptMachines, JobFound
from applier.engines.environment import ActionEnvironment
from applier.engines.tasks import needs_permit, verified
from applier.engines.workers import Workers
from applier.errors import ActionFailed
from applier.run.left_commands import AT_ONCE, away, runs_on
from applier.scheduling.resumption import TO_VERIFY, decide, going_on, runs_again
from applier.secrets import resolve
from planner.model import Action

LOG = logging.getLogger(__name__)


class Finding(NamedTuple):
    """What was found of one action: that it goes on, else what its plugin says of its work.

    ``age_s`` is how many seconds ago it started, if it goes on. ``lost`` says what happened to its
    command. ``elsewhere`` says that processes of it may still run. ``not_begun`` are the machines
    of its last attempt if that has not begun and never will.
    """

    uuid: str
    verified: Verified = Verified.IN_DOUBT
    age_s: float | None = None
    lost: str | None = None
    elsewhere: str | None = None
    not_begun: AttemptMachines | None = None


@dataclass(kw_only=True, slots=True)
class Findings:
    """What is to be done about the interrupted actions of a plan.

    ``reports`` change the states of actions. ``continued`` are the actions that go on, because
    commands of them were found: how many seconds ago each was started. ``not_begun`` are the
    machines of attempts that may be forgotten once the reports are on record.
    """

    reports: list[Report] = field(default_factory=list)
    continued: dict[str, float] = field(default_factory=dict)
    not_begun: list[AttemptMachines] = field(default_factory=list)


def verify_all(
    actions: Iterable[Action],
    environment: ActionEnvironment,
    patience_s: float = 30.0,
    *,
    before: Claimant | None = None,
    host: str = "",
    permits_are_here: bool = False,
) -> Findings:
    """Return what is to be done about each ONGOING or UNKNOWN action; write nothing.

    Machines and plugins are asked in parallel. If none of them answers for ``patience_s`` seconds,
    the remaining actions are in doubt. ``before`` is the claimant of the last run, ``host`` this
    host: commands on the host of another claimant cannot be found. ``permits_are_here`` says that
    an attempt may only begin with a permit on this machine.
    """
    plugins = environment.plugins
    doubtful = [a for a in actions if a.state in TO_VERIFY]
    answers: queue.SimpleQueue[Finding] = queue.SimpleQueue()
    found: dict[str, Finding] = {}
    with Workers(AT_ONCE, answers.put) as workers:
        workers.grow(len(doubtful))
        for action in doubtful:
            elsewhere = away(action, plugins[action.action_type], before, host)
            workers.submit(partial(_ask, action, environment, elsewhere, permits_are_here))
        try:
            while len(found) < len(doubtful):
                finding = answers.get(timeout=patience_s)
                found[finding.uuid] = finding
        except queue.Empty:
            LOG.error("%d actions could not be verified in time", len(doubtful) - len(found))
    return _decided(doubtful, found, environment)


def _decided(
    doubtful: Iterable[Action], found: dict[str, Finding], environment: ActionEnvironment
) -> Findings:
    made = Findings()
    for action in doubtful:
        plugin = environment.plugins[action.action_type]
        late = "nothing was heard of its machine in time" if runs_on(action, plugin) else None
        finding = found.get(action.uuid, Finding(action.uuid, elsewhere=late))
        if finding.age_s is not None:
            made.continued[action.uuid] = finding.age_s
            report = going_on(action)
        elif finding.not_begun is not None:
            made.not_begun.append(finding.not_begun)
            report = runs_again(action)
        else:
            report = decide(
                action,
                finding.verified,
                rerun_safe=plugin.RERUN_SAFE,
                lost=finding.lost,
                elsewhere=finding.elsewhere,
            )
        if report is not None:
            made.reports.append(report)
    return made


def _ask(
    action: Action, environment: ActionEnvironment, unseen: str | None, permits_are_here: bool
) -> Finding:
    """Find out whether an action has begun; its plugin logs for that action."""
    with log_fields.about(action=action.uuid):
        return _found(action, environment, unseen, permits_are_here)


def _found(
    action: Action, environment: ActionEnvironment, unseen: str | None, permits_are_here: bool
) -> Finding:
    """Look for the commands of an action, else ask its plugin."""
    machines = environment.machines_of(action, action.attempts)
    plugin = environment.plugins[action.action_type]
    is_here = permits_are_here and needs_permit(action, plugin)
    if machines is not None and machines.forbid(is_here=is_here):
        return Finding(action.uuid, not_begun=machines)
    jobs, elsewhere = _look(action, plugin, environment)
    lost = next((job for job in jobs if job.is_lost), None)
    if jobs and lost is None:
        return Finding(action.uuid, age_s=max(job.age_s or 0.0 for job in jobs))
    if lost is not None and lost.left:
        elsewhere = str(lost)
    context = environment.context(action, _ignore)
    try:
        parameters, blotting = resolve(action.input_parameters, plugin.SCHEMA)
    except ActionFailed as reason:
        LOG.warning("Action %s cannot be verified: %s", action.uuid, reason)
        answer = Verified.IN_DOUBT
    else:
        answer = verified(lambda: plugin(parameters, context).verify(), blotting)
    what = None if lost is None else str(lost)
    return Finding(action.uuid, answer, None, what, elsewhere or (unseen if lost is None else None))


def _look(
    action: Action, plugin: type[ActionPlugin], environment: ActionEnvironment
) -> tuple[Sequence[JobFound], str | None]:
    """Return the commands of the last attempt, or why one of its machines cannot be asked."""
    machines = environment.machines_of(action, action.attempts)
    if machines is None:
        return (), None
    try:
        return machines.find(list(dict.fromkeys((None, *runs_on(action, plugin))))), None
    except (ActionFailed, OSError) as reason:
        return (), f"{reason}; its command may still run there"


def _ignore(_text: str) -> None:
    """Ignore the output of a plugin that verifies."""
