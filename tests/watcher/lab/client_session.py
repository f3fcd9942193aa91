# SPDX-License-Identifier: Apache-2.0
"""Runs commands of OpenStack's client in one process, because its imports take seconds.

Each line of the input is a command, as a JSON list of words. Each line of the output is a JSON list
of its exit code, its output and what it said of errors.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import sys

from openstackclient import shell
from openstackclient.common.clientmanager import ClientManager
from osc_lib.clientmanager import ClientCache


def run(words):
    """Run one command; return its exit code, output and errors."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = shell.main(words)
        except SystemExit as ended:
            code = ended.code
    # Each command adds a handler, which writes to its own stream.
    logging.getLogger().handlers.clear()
    # The class remembers the client of the first command, with its URL and version.
    for cache in vars(ClientManager).values():
        if isinstance(cache, ClientCache):
            cache._handle = None
    return code, out.getvalue(), err.getvalue()


def main():
    """Run commands until the input ends."""
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
