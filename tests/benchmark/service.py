# SPDX-License-Identifier: Apache-2.0
"""What the service costs while there is nothing to do: ``python tests/benchmark/service.py``.

The processor time of all processes of an ``actionplan-applier`` with a SQLite record and default
options, over ``SECONDS``, after it has reported for the first time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from applier.storage.sql_store import SqlStore

PROGRAM = Path(sys.executable).with_name("actionplan-applier")
SECONDS, PATIENCE_S = 30.0, 30.0
#: How much of a processor it may take.
MOST = 0.01


def processor_s(group: int) -> float:
    """Return the seconds that the processes of a group have used so far."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        if int(fields[2]) == group:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Start it, let it idle, print what it took, end it."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/record.sqlite"
        file = Path(folder, "watcher.conf")
        file.write_text(f"[actionplan]\nconnection = {url}\n")
        with (
            closing(SqlStore(url)) as store,
            subprocess.Popen(
                [PROGRAM, "--config-file", file],
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            ) as process,
        ):
            try:
                end = time.monotonic() + PATIENCE_S
                while not store.services() and time.monotonic() < end:
                    time.sleep(0.1)
                before, began = processor_s(process.pid), time.monotonic()
                time.sleep(SECONDS)
                used = processor_s(process.pid) - before
                share = used / (time.monotonic() - began)
                print(f"idle service: {share:.2%} of a processor (at most {MOST:.0%})")
            finally:
                process.terminate()


if __name__ == "__main__":
    main()
