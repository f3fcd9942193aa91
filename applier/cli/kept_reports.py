# SPDX-License-Identifier: Apache-2.0
"""Writes the reports of plans that a purge is about to delete to a folder."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from applier.cli import plan_files
from applier.errors import DamagedRecord, PlanNotFound

if TYPE_CHECKING:
    from applier.cli.session import Session

OPTION = "--keep-reports"
#: What a report is called until it is whole.
_UNFINISHED = ".new-report-"


@contextmanager
def folder(path: str) -> Iterator[None]:
    """Make a folder for reports, in which what killed purges left unfinished is removed.

    Several purges may use it at once: a lock, which ends with its process, tells whether another
    one does, whose unfinished report must stay. Raises ConfigurationError.
    """
    plan_files.make_folder(path, OPTION)
    handle = None
    try:
        with suppress(OSError):
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            with suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                for left in Path(path).glob(f"{_UNFINISHED}*"):
                    left.unlink()
            fcntl.flock(handle, fcntl.LOCK_SH)
        yield
    finally:
        if handle is not None:
            os.close(handle)


def keep(session: Session, path: str, uuid: str) -> str | None:
    """Write the report of a plan to a folder; return why there is none, in a sentence, or None.

    Of a plan that another purge deletes meanwhile nothing is written: that one keeps its report,
    and what was read of the plan may not be whole. Raises ConfigurationError.
    """
    from applier.assembly import now
    from applier.report import content, page

    try:
        plan = session.store.load_plan(uuid)
        made = content.report(
            session.assembly, plan, session.max_workers, now=now(), is_stored=True
        )
        session.store.refresh_plan(plan)
    except PlanNotFound:
        return None
    except DamagedRecord as damaged:
        return f"{damaged}; no report of it can be made; see: actionplan delete {uuid[:8]}"
    file = os.path.join(path, f"{uuid}.html")
    plan_files.write_text(file, page.render(made), OPTION, unfinished=_UNFINISHED)
    return None
