# SPDX-License-Identifier: Apache-2.0
"""Where OpenStack Watcher is not installed, the modules that import it are not collected."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent / "applier" / "watcher"
#: The modules that import nothing of Watcher, not even through others.
WITHOUT_WATCHER = ("engine_options.py", "options.py", "solutions.py", "states.py")

collect_ignore = [
    str(file)
    for file in HERE.rglob("*.py")
    if find_spec("watcher") is None and file.name not in WITHOUT_WATCHER
]
