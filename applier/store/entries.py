# SPDX-License-Identifier: Apache-2.0
"""Approvals, answers, archives, ended plans and services, as the record keeps them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from applier.contracts import Approval, HistoryEntry, Request
from applier.store.runs import Attempt
from planner.plan.model import ActionPlan


class GivenApprovals(NamedTuple):
    """The approvals of a plan, oldest first, with its creator and the users who imported it.

    ``creator`` is None if the record has none. ``importers`` matter because the imported document
    itself names the creator.
    """

    creator: str | None
    approvals: Sequence[Approval]
    importers: frozenset[str] = frozenset()

    @property
    def makers(self) -> frozenset[str | None]:
        """The users whose approval does not count as that of another person than the creator.

        These are the creator (None if unknown) and the importers.
        """
        return self.importers | {self.creator}


class Answer(NamedTuple):
    """A change that was made once, and what its request was answered with.

    ``plan`` is that of its entry in the history. ``text`` is None while the answer is not known,
    and stays so if the process that made the change died before it had answered.
    """

    digest: str
    plan: str
    request_id: str
    at: datetime
    text: str | None


class PlanArchive(NamedTuple):
    """A plan with its states, the attempts by uuid of action, the history, and the requests."""

    plan: ActionPlan
    attempts: Mapping[str, Sequence[Attempt]]
    history: Sequence[HistoryEntry]
    requests: Sequence[Request]


#: The plan of an entry of the history that is about no single plan, such as a purge.
NO_PLAN = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True, kw_only=True, slots=True)
class EndedPlan:
    """A plan that ended or was removed, with the number of its actions.

    Plans that were saved later have a larger ``number``.
    """

    number: int
    uuid: str
    actions: int


class Service(NamedTuple):
    """An applier service that is registered in the store; its ``uuid`` is new at each start.

    ``cloud`` is the name of the cloud that it is configured for, ``plans`` the number
    of plans that it runs.
    """

    uuid: str
    host: str
    pid: int
    user: str
    started_at: datetime
    heartbeat_at: datetime
    cloud: str
    plans: int = 0
