# SPDX-License-Identifier: Apache-2.0
"""The answers of changes that are made once, in a database."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import bindparam

from applier.contracts import Once
from applier.storage import statements
from applier.storage.compiled import Deferred
from applier.storage.database import Database
from applier.storage.refusals import Duplicate
from applier.storage.tables import answers
from applier.store.answers import Answer
from applier.store.retention import NO_PLAN

_READ = Deferred(lambda: sa.select(answers).where(answers.c.key == bindparam("of_key")))
_KEEP = Deferred(
    lambda: (
        sa.update(answers)
        .where(answers.c.key == bindparam("of_key"), answers.c.request_id == bindparam("by"))
        .values(answer=bindparam("text"))
    )
)


class Answers:
    """The methods of the store for answers."""

    _database: Database

    def answer(self, key: str) -> Answer | None:
        """See :meth:`applier.store.answers.AnswerStore.answer`."""

        def read() -> Answer | None:
            with self._database.read() as transaction:
                found = transaction.read_typed(_READ, {"of_key": key})
            return _answer(**found[0]) if found else None

        return self._database.tried(read)

    def keep_answer(self, once: Once, request_id: str, text: str, *, now: datetime) -> bool:
        """See :meth:`applier.store.answers.AnswerStore.keep_answer`."""
        row = {"plan": NO_PLAN, "request_id": request_id, "at": now, "answer": text}

        def keep() -> bool:
            try:
                with self._database.write() as transaction:
                    kept = {"of_key": once.key, "by": request_id, "text": text}
                    if not transaction.write(_KEEP, kept):
                        transaction.write(statements.INSERT_ANSWER, {**once._asdict(), **row})
            except Duplicate:
                return False
            return True

        return self._database.tried(keep)


def _answer(*, answer: str | None, key: str, **values: object) -> Answer:  # noqa: ARG001
    return Answer(text=answer, **values)  # type: ignore[arg-type]
