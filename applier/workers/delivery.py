# SPDX-License-Identifier: Apache-2.0
"""The interface of what brings messages to workers, and which queue an action belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from applier.store.worker_jobs import AttemptKey
from planner.model import Action

#: The queue of actions that no route leads to another.
DEFAULT_QUEUE = "default"


class Delivery(Protocol):
    """Tells workers that there may be something to do; a message may be lost, or come twice.

    No method waits for the broker or raises an error because of it.
    """

    def send(self, queue: str, key: AttemptKey) -> None:
        """Tell a worker of a queue about a job."""

    def look(self, key: AttemptKey) -> None:
        """Tell the worker that holds a job to look whether it is to stop."""

    def close(self) -> None:
        """Close the connection to the broker, after what was sent."""


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
