# SPDX-License-Identifier: Apache-2.0
"""Adds our tables to a database: ``python prepare_tables.py FOLDER URL``.

It prints ``ready``, and begins when it can read a line.
"""

from __future__ import annotations

import sys
from pathlib import Path

from watcher_in_one_process import configure


def main(folder, url):
    """Wait for a line, and add the tables."""
    path = Path(folder)
    configure(path / "watcher.conf", path / "none.sqlite", {"database": {"connection": url}})
    from applier.watcher import database

    print("ready", flush=True)
    sys.stdin.readline()
    database.prepare()


if __name__ == "__main__":
    main(*sys.argv[1:])
