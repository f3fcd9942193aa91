# SPDX-License-Identifier: Apache-2.0
"""Runs the command line and prints which files of the packages it entered, in order.

A file is entered when one of its functions is called. What runs while a module is imported does not
count. Used by test_generated_files.py.
"""

from __future__ import annotations

import json
import sys
import threading
from types import FrameType
from typing import Any

ROOTS = ("planner.", "applier.")
#: Flag of code that makes local variables: of functions, not of modules and class bodies.
_NEW_LOCALS = 0x2

entered: dict[str, str] = {}


def note(frame: FrameType, event: str, _argument: Any) -> None:
    """Note the file of a function that is called."""
    code = frame.f_code
    module = str(frame.f_globals.get("__name__", ""))
    if event != "call" or not module.startswith(ROOTS) or module in entered:
        return
    if "<" in code.co_filename[:1] + code.co_name[:1]:
        return  # generated, as the methods of dataclasses are, or a lambda
    if code.co_flags & _NEW_LOCALS and not is_importing(frame):
        entered[module] = code.co_name


def is_importing(frame: FrameType | None) -> bool:
    """Return whether a call belongs to the import of a module."""
    while frame is not None:
        if frame.f_globals.get("__name__") == "importlib._bootstrap":
            return True
        frame = frame.f_back
    return False


if __name__ == "__main__":
    import applier.cli.main

    sys.setprofile(note)
    threading.setprofile(note)
    ended = applier.cli.main.main(sys.argv[2:])
    sys.setprofile(None)
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(entered, file)
    sys.exit(ended)
