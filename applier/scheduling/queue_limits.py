# SPDX-License-Identifier: Apache-2.0
"""The queues of workers as limits of a forecast: which actions share the places of a queue.

A run does not wait for places: it hands an action to its queue, where the job waits for a worker.
So only forecasts have these limits. A place is one job that a worker carries out at once. A worker
that serves several queues counts for each of them. A queue that no worker serves has no limit,
because its workers are yet to come.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from applier.store.worker_jobs import Served
from planner.plan.model import JOIN, Action

#: The queue of actions without a token that names one.
DEFAULT_QUEUE = "default"


class QueueLimits(NamedTuple):
    """A token for each action that runs at a worker, and the limits of these tokens.

    ``unserved`` are those queues of the actions that no worker serves.
    """

    tokens: Mapping[str, str] = {}
    limits: Mapping[str, int] = {}
    unserved: Collection[str] = ()


def queue_of(action: Action, route: Sequence[str]) -> str:
    """Return the queue of an action: the first of its tokens of a kind in ``route`` names it.

    >>> a = Action(uuid="a", action_type="nop", tokens=("type:nop", "region:b", "node:n1"))
    >>> queue_of(a, ("node", "region")), queue_of(a, ("region",)), queue_of(a, ())
    ('n1', 'b', 'default')
    """
    for kind in route:
        for token in action.tokens:
            of_kind, _, name = token.partition(":")
            if of_kind == kind and name:
                return name
    return DEFAULT_QUEUE


def queue_limits(
    actions: Sequence[Action],
    route: Sequence[str],
    workerless: Collection[str],
    served: Mapping[str, Served],
) -> QueueLimits:
    """Return a token for the queue of each action, limited to the number of places of its workers.

    >>> a, b = (Action(uuid=u, action_type="nop", tokens=(f"region:{u}",)) for u in "ab")
    >>> queue_limits([a, b], ["region"], (), {"a": Served(workers=2, places=8)})
    ... # doctest: +NORMALIZE_WHITESPACE
    QueueLimits(tokens={'a': 'places of queue a', 'b': 'places of queue b'},
                limits={'places of queue a': 8}, unserved={'b'})
    """
    queues = {
        a.uuid: queue_of(a, route)
        for a in actions
        if a.uuid not in workerless and a.action_type != JOIN
    }
    asked = set(queues.values())
    return QueueLimits(
        {uuid: _token(queue) for uuid, queue in queues.items()},
        {_token(queue): max(1, served[queue].places) for queue in asked & served.keys()},
        asked - served.keys(),
    )


def _token(queue: str) -> str:
    return f"places of queue {queue}"
