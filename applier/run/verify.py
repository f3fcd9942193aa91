# SPDX-License-Identifier: Apache-2.0
"""Asks plugins whether interrupted work is done."""

from __future__ import annotations

import logging
import queue
from collections.abc import Iterable
from functools import partial

from applier.contracts import ActionContext, ActionPlugin, Report, Verified
from applier.engines.environment import ActionEnvironment
from applier.engines.tasks import verified
from applier.engines.workers import Workers
from applier.scheduling.resumption import TO_VERIFY, decide
from planner.model import Action

LOG = logging.getLogger(__name__)

#: How many actions are verified at once.
AT_ONCE = 16


def verify_all(
    actions: Iterable[Action], environment: ActionEnvironment, patience_s: float = 30.0
) -> list[Report]:
    """Return how the ONGOING and UNKNOWN actions go on; change and write nothing.

    Plugins are asked in parallel. When none of them answers for ``patience_s`` seconds, the
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
    return action.uuid, verified(lambda: plugin(action.input_parameters, context).verify())


def _ignore(_text: str) -> None:
    """Drop what a plugin prints while it verifies."""
