# SPDX-License-Identifier: Apache-2.0
"""Notices that the file of a SQLite record was removed or replaced while it is in use."""

from __future__ import annotations

import os

import sqlalchemy as sa

from applier.errors import StoreError
from applier.storage.urls import shown


class SameFile:
    """The file that a store has opened.

    SQLite itself goes on with a file that has lost its name: its writes would be lost, and a new
    file of that name would be another record.
    """

    def __init__(self, url: sa.URL) -> None:
        self._url = url
        self._opened = self._found()

    def require(self) -> None:
        """Raise StoreError unless the name still leads to the file that was opened."""
        if self._found() != self._opened:
            raise StoreError(
                f"{shown(self._url)}: the file was removed or replaced while it was in use; "
                "put it back, or end the programs that use it"
            )

    def _found(self) -> tuple[int, int] | None:
        try:
            status = os.stat(self._url.database or "")
        except OSError:
            return None
        return status.st_dev, status.st_ino
