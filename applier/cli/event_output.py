# SPDX-License-Identifier: Apache-2.0
"""Where a verb that runs a plan writes the events of the run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from applier.cli.terminal import lasting, patient
from applier.cli.verb import Verb
from applier.errors import ConfigurationError


@contextmanager
def opened(verb: Verb, path: str) -> Iterator[TextIO]:
    """Open the file to which events are appended; raises ConfigurationError if that fails.

    For ``-``, yield standard output, whose writes raise OSError if they fail. The verb then writes
    its own output to standard error, until that fails.
    """
    if path == "-":
        out = patient(verb.app.stdout)
        verb.app.stdout = lasting(verb.app.stderr)
        yield out
        return
    try:
        file = Path(path).open("a", encoding="ascii", newline="\n")  # noqa: SIM115 - closed below
    except (OSError, ValueError) as reason:
        why = reason.strerror if isinstance(reason, OSError) else reason
        raise ConfigurationError(f"--events {path} cannot be written: {why}") from reason
    try:
        yield file
    finally:
        # What could not be written, the writer of the lines has told; it is still in the buffer.
        with suppress(OSError):
            file.close()
