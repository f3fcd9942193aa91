# SPDX-License-Identifier: Apache-2.0
"""The part of the interface of stores that remembers what changes with a key were answered with."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple, Protocol

from applier.contracts import Once


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


class AnswerStore(Protocol):
    """The part of a store that remembers answers.

    A change whose history entry has a key (:class:`applier.contracts.Once`) writes a row for that
    key in its own transaction. If there is one already, nothing is written, and an ApplierError is
    raised. Rows of a plan are deleted with the plan.
    """

    def answer(self, key: str) -> Answer | None:
        """Return the change with a key; None if there is none."""

    def keep_answer(self, once: Once, request_id: str, text: str, *, now: datetime) -> bool:
        """Keep the answer of a request, also if it has changed nothing.

        Returns False if another request has the key; nothing is written then.
        """
