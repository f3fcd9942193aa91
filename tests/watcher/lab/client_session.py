# SPDX-License-Identifier: Apache-2.0
"""Runs commands of OpenStack's client without importing it each time, which takes seconds.

Each line of the input is a command, as a JSON list of words. Each line of the output is a JSON list
of its exit code, its output and what it said of errors. Each command runs in a fork, because the
client remembers URL and version of the first command of a process.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys

from openstackclient import shell

# Loaded by the first command otherwise, in every fork again.
from watcherclient.osc import plugin  # noqa: F401
from watcherclient.v1 import client  # noqa: F401


def run(words):
    """Run one command; return its exit code, output and errors."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = shell.main(words)
        except SystemExit as ended:
            code = ended.code
    return code, out.getvalue(), err.getvalue()


def main():
    """Run commands until the input ends."""
    for line in iter(sys.stdin.readline, ""):
        child = os.fork()
        if child == 0:
            print(json.dumps(run(json.loads(line))), flush=True)
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
