# SPDX-License-Identifier: Apache-2.0
"""The jobs of one attempt of an action, and the permit with which the attempt may begin.

A permit is written before the start of the attempt is recorded. It is a folder beside the jobs on
the machine of the applier. A symbolic link in it records what came first: the beginning of the
attempt (``used``), or an applier that took its plan over (``withdrawn``). Only one process can make
the link, whatever is killed, frozen or late. So an attempt whose permit was withdrawn has not
begun, and never will.

The name of the folder contains the boot id. After a restart of the machine it is not known whether
its files are as they were, so older permits are ignored.
"""

from __future__ import annotations

import hashlib
import logging
import os
import threading
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path

from applier.errors import ActionFailed
from applier.machines.job_names import REMOVED, AttemptName, JobName, unnamed

LOG = logging.getLogger(__name__)
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_USED, _WITHDRAWN = "used", "withdrawn"
#: The reason in messages why a command is not started: the attempt has ended.
ENDED = "another applier has ended the action"


class Permit:
    """The permit of one attempt; ``place`` is the folder of the jobs on this machine."""

    def __init__(self, place: Path, attempt: AttemptName) -> None:
        self._folder = place / attempt.permit(boot_id())
        self._first_job = place / attempt.job(1).folder
        self._state = self._folder / "state"
        self._lock = threading.Lock()
        self._is_to_be_used = False

    def write(self) -> bool:
        """Write the permit; return False, and log the reason, if its folder cannot be made.

        Without it, no later applier can find out whether the attempt has begun.
        """
        try:
            self._folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as reason:
            LOG.warning("%s cannot be made: %s", self._folder, reason.strerror)
            return False
        self._is_to_be_used = True
        return True

    def use(self) -> None:
        """Record that the attempt begins; raise ActionFailed if the permit was withdrawn.

        Does nothing if no permit was written, or if this object has used it before.
        """
        with self._lock:
            if not self._is_to_be_used:
                return
            try:
                os.symlink(_USED, self._state)
            except (FileExistsError, FileNotFoundError) as reason:
                # Whoever took the plan over has linked the state, or removed the folder since.
                text = "another applier has taken the plan over"
                if not self._folder.parent.is_dir():
                    text = f"the folder {self._folder.parent} is missing; put it back"
                raise ActionFailed(f"not started: {text}") from reason
            except OSError as reason:
                raise ActionFailed(f"not started: {self._state}: {reason.strerror}") from reason
            self._is_to_be_used = False

    def withdraw(self, *, is_here: bool = False) -> bool:
        """Withdraw the permit; return True if the attempt has not begun and never will.

        False if it has begun, or if that cannot be known. ``is_here`` says that it may only begin
        with a permit in this folder, since the last restart of the machine: then an attempt without
        a permit has not begun.
        """
        try:
            if is_here:
                self._folder.mkdir(mode=0o700, exist_ok=True)
            with suppress(FileExistsError):
                os.symlink(_WITHDRAWN, self._state)
            if os.readlink(self._state) != _WITHDRAWN:
                return False
        except OSError:
            return False
        with suppress(OSError):
            self._first_job.rmdir()  # it was made, and its attempt was about to use the permit
        return True

    def remove(self) -> None:
        """Remove the permit of an attempt whose end is on record."""
        removed = self._folder.with_name(f"{REMOVED}{self._folder.name}")
        with suppress(OSError):
            # An applier that was frozen must not find the folder without its link.
            self._folder.rename(removed)
            (removed / self._state.name).unlink(missing_ok=True)
            removed.rmdir()


class AttemptJobs:
    """Names the commands of an attempt on one machine, in the order in which they are run.

    Without an ``attempt``, each has a new name, and cannot be found again. An applier that takes
    the attempt over runs the same commands in the same order, and so finds each of them. Once
    ``let_go`` is set, a stop leaves them running. The ``permit`` of the attempt is used before the
    first of them. ``is_taken_over`` says that jobs of the attempt were found on the machine. If the
    folder of the first is gone later, it was removed because the end of the attempt is on record.
    """

    def __init__(
        self,
        attempt: AttemptName | None = None,
        let_go: threading.Event | None = None,
        permit: Permit | None = None,
        is_taken_over: bool = False,
    ) -> None:
        self.attempt, self._permit = attempt, permit
        self.let_go = let_go or threading.Event()
        self.is_taken_over = is_taken_over
        self._numbers = count(1)
        self.names: list[JobName] = []

    def begin(self) -> None:
        """Use the permit of the attempt; raise ActionFailed if another applier has withdrawn it.

        May be repeated. Without a permit, do nothing.
        """
        if self._permit is not None:
            self._permit.use()

    def was_made_before(self, name: JobName) -> bool:
        """Return whether the folder of a command was made by another applier: it must not be made.

        It is there, or was removed because the end of the attempt is on record.
        """
        return self.is_taken_over and name.folder == self.first

    @property
    def first(self) -> str | None:
        """The folder of its first command, which is removed when its end is on record."""
        return self.attempt.job(1).folder if self.attempt else None

    def next(self) -> JobName:
        """Return the name of the next command."""
        if self.attempt is None:
            return unnamed()
        name = self.attempt.job(next(self._numbers))
        self.names.append(name)
        return name


def origin(place: Path | None) -> str:
    """Return six hexadecimal digits that identify a folder of jobs until the machine restarts.

    Another folder, machine or restart has others. If ``place`` is None or cannot be used, they are
    random.
    """
    try:
        if place is None:
            return os.urandom(3).hex()
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = place.stat()
    except OSError:
        return os.urandom(3).hex()
    text = f"{boot_id()} {found.st_dev} {found.st_ino} {place.resolve()}"
    return hashlib.sha256(text.encode()).hexdigest()[:6]


@cache
def boot_id() -> str:
    """Return the id of this start of the machine; it is read once."""
    # Another encoding would be imported, from a file, perhaps when no more can be opened.
    return _BOOT_ID.read_text(encoding="utf-8").strip()
