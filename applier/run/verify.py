# SPDX-License-Identifier: Apache-2.0
"""Asks plugins whether the work of interrupted actions is done."""

from __future__ import annotations

import logging
import queue
from collections.abc import Iterable
from functools import partial

from applier.contracts import ActionContext, ActionPlugin, Report, Verified
from applier.engines.environment import ActionEnvironment
from applier.engines.tasks import verified
from applier.engines.workers import Workers
from applier.errors import ActionFailed
from applier.scheduling.resumption import TO_VERIFY, decide
from applier.secret_values import resolve
from planner.model import Action

LOG = logging.getLogger(__name__)

#: The number of actions that are verified at once.
AT_ONCE = 16


def verify_all(
    actions: Iterable[Action], environment: ActionEnvironment, patience_s: float = 30.0
) -> list[Report]:
    """Return a report for each ONGOING or UNKNOWN action whose state changes; write nothing.

    Plugins are called in parallel. If none of them answers for ``patience_s`` seconds, the
    remaining actions are in doubt.
    """
    plugins = environment.plugins
    doubtful = [a for a in actions if a.state in TO_VERIFY]
    answers: queue.SimpleQueue[tuple[str, Verified]] = queue.SimpleQueue()
    found: dict[str, Verified] = {}
    with Workers(AT_ONCE, answers.put) as workers:
        workers.grow(len(doubtful))
        for action in doubtful:
            context = environment.context(action, _ignore)
            workers.submit(partial(_ask, action, plugins[action.action_type], context))
        try:
            while len(found) < len(doubtful):
                uuid, answer = answers.get(timeout=patience_s)
                found[uuid] = answer
        except queue.Empty:
            LOG.error("%d actions could not be verified in time", len(doubtful) - len(found))
    reports = (
        decide(
            action,
            found.get(action.uuid, Verified.IN_DOUBT),
            rerun_safe=plugins[action.action_type].RERUN_SAFE,
        )
        for action in doubtful
    )
    return [report for report in reports if report is not None]


def _ask(
    action: Action, plugin: type[ActionPlugin], context: ActionContext
) -> tuple[str, Verified]:
    try:
        parameters, blotting = resolve(action.input_parameters, plugin.SCHEMA)
    except ActionFailed as reason:
        LOG.warning("Action %s cannot be verified: %s", action.uuid, reason)
        return action.uuid, Verified.IN_DOUBT
    return action.uuid, verified(lambda: plugin(parameters, context).verify(), blotting)


def _ignore(_text: str) -> None:
    """Ignore the output of a plugin that verifies."""
