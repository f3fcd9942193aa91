# SPDX-License-Identifier: Apache-2.0
"""Adds our tables to a database: ``python prepare_tables.py FOLDER URL [PATIENCE]``.

It prints ``ready``, and begins when it can read a line. PATIENCE is for how many seconds it waits
for the lock of MySQL.
"""

from __future__ import annotations

import sys
from pathlib import Path

from watcher_in_one_process import configure


def main(folder, url, patience="60"):
    """Wait for a line, and add the tables."""
    path = Path(folder)
    configure(path / "watcher.conf", path / "none.sqlite", {"database": {"connection": url}})
    from applier.watcher import database

    lock, release = database._LOCKS["mysql"]
    database._LOCKS["mysql"] = lock.replace("60", patience), release
    print("ready", flush=True)
    sys.stdin.readline()
    database.prepare()


if __name__ == "__main__":
    main(*sys.argv[1:])
