# SPDX-License-Identifier: Apache-2.0
"""Who runs plans, and who changes them: claimants, requests, the history, approvals."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple


class Claimant(NamedTuple):
    """The process that runs a plan.

    ``heartbeat_at`` is the time of its last recorded heartbeat, by the clock of its host, and
    ``heartbeat_interval_s`` the seconds between two. ``requests_before`` is the number of the last
    request that was made before it claimed the plan. The store sets the first and the last.
    """

    host: str
    pid: int
    user: str
    heartbeat_at: datetime | None = None
    heartbeat_interval_s: float = 5.0
    requests_before: int = 0


class RequestVerb(StrEnum):
    """The kinds of requests to a running plan."""

    CANCEL = "cancel"
    PAUSE = "pause"
    #: Pause the plan, and leave it to another applier. Only the applier that runs it requests this.
    HAND_BACK = "hand_back"
    #: Skip one action.
    SKIP = "skip"
    #: Stop one running action.
    ABORT = "abort"
    #: Change limits.
    LIMIT = "limit"


class Request(NamedTuple):
    """A request to a running plan, usually by an operator.

    ``verb`` is a :class:`RequestVerb`; an unknown one, which a newer release may have recorded, is
    ignored. ``action`` is the uuid of the action to skip or to abort. ``limits`` maps tokens to new
    limits, and ``max_workers`` to the number of workers. ``number`` counts the requests of a plan
    from 1.
    """

    verb: str
    who: str
    why: str | None = None
    action: str | None = None
    limits: Mapping[str, int] = {}
    number: int = 0
    created_at: datetime | None = None


class HistoryEntry(NamedTuple):
    """A change of a plan: who made it, when and why.

    ``verb`` is what was done or asked for. ``project``, ``address`` and ``request_id`` are known
    of requests over HTTP. ``number`` and ``plan`` are set by the store; the numbers of the entries
    of a plan are in the order of its changes.
    """

    verb: str
    who: str
    at: datetime
    why: str | None = None
    action: str | None = None
    project: str | None = None
    address: str | None = None
    request_id: str | None = None
    number: int = 0
    plan: str = ""


class Approval(NamedTuple):
    """Somebody said that a plan may run.

    ``content`` is what was approved: :func:`applier.guarding.content.approvable`. It is void for a
    plan with another.
    """

    who: str
    at: datetime
    content: str
    why: str | None = None
    project: str | None = None
