# SPDX-License-Identifier: Apache-2.0
"""Where OpenStack Watcher is not installed, the modules that import it are not collected.

Nor is eventlet imported there, as in our own programs.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "applier" / "watcher"
#: The modules that import nothing of Watcher, not even through others.
WITHOUT_WATCHER = ("engine_options.py", "states.py")

if find_spec("watcher") is None:
    sys.modules.setdefault("eventlet", None)  # type: ignore[arg-type]

collect_ignore = [
    str(file)
    for file in HERE.rglob("*.py")
    if find_spec("watcher") is None and file.name not in WITHOUT_WATCHER
]
# It is loaded by Ansible alone.
collect_ignore.append(str(HERE.parent / "actions" / "ansible_callbacks" / "actionplan.py"))


def pytest_configure(config: pytest.Config) -> None:
    """Leave them out also if they are named, as when the files of a change are tested."""
    config.args[:] = [arg for arg in config.args if str(Path(arg).absolute()) not in collect_ignore]
