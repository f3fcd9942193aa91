# SPDX-License-Identifier: Apache-2.0
"""``purge --keep-reports``: writes the report of each plan to a folder before it is deleted."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from applier.cli import plan_files
from applier.errors import DamagedRecord, PlanNotFound

if TYPE_CHECKING:
    from applier.cli.session import Session

OPTION = "--keep-reports"
#: The prefix of the name of a report that is not written completely yet.
_UNFINISHED = ".new-report-"


def prepare(path: str) -> None:
    """Make the folder of the reports, and remove what purges that were killed left unfinished.

    Unfinished reports stay if another purge writes a report now, or if the folder cannot be locked.
    Raises ConfigurationError.
    """
    plan_files.make_folder(path, OPTION)
    with suppress(OSError), _locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB):
        for left in Path(path).glob(f"{_UNFINISHED}*"):
            left.unlink()


def keep(session: Session, path: str, uuid: str) -> str | None:
    """Write the report of a plan to a folder; return None, or why the plan must not be deleted.

    If another purge deletes the plan meanwhile, nothing is written, and None is returned: that one
    has written the report, and here the plan may have been read in part. Raises ConfigurationError.
    The folder is locked only while a file is written: it may also be that of the record, which
    nobody can open meanwhile.
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
    text = page.render(made)
    with ExitStack() as lock:
        with suppress(OSError):
            lock.enter_context(_locked(path, fcntl.LOCK_SH))
        plan_files.write_text(file, text, OPTION, unfinished=_UNFINISHED)
    return None


@contextmanager
def _locked(path: str, operation: int) -> Iterator[None]:
    """Lock a folder inside the block; raises OSError, BlockingIOError if another has locked it."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, operation)
        yield
    finally:
        os.close(handle)
