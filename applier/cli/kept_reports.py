# SPDX-License-Identifier: Apache-2.0
"""``purge --keep-reports``: writes the report of each plan to a folder before it is deleted."""

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
#: The prefix of the name of a report that is not written completely yet.
_UNFINISHED = ".new-report-"


@contextmanager
def folder(path: str) -> Iterator[None]:
    """Make the folder of the reports, and hold a shared lock on it inside the block.

    Unfinished reports of purges that were killed are removed, but only under an exclusive lock,
    which shows that no other purge writes to the folder now. Raises ConfigurationError.
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
    """Write the report of a plan to a folder; return None, or why the plan must not be deleted.

    If another purge deletes the plan meanwhile, nothing is written, and None is returned: that one
    has written the report, and here the plan may have been read in part. Raises ConfigurationError.
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
