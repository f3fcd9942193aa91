# SPDX-License-Identifier: Apache-2.0
"""The commands that deploy a software configuration to servers, as Heat's hook for scripts does.

The script gets as environment variables its inputs, and ``deploy_server_id``, ``deploy_action`` and
``deploy_resource_name``.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from planner.planners.rolling_update.conditions import as_text

#: Interpreters that take a script as the argument of ``-c``.
_INTERPRETERS = ("sh", "bash", "dash", "ash", "ksh", "zsh", "python", "python3")


def not_a_script(value: Mapping[str, Any]) -> str | None:
    """Return why a software configuration cannot be run, or None.

    >>> not_a_script({"group": "puppet", "config": "include web"})
    "its software configuration has the group 'puppet': only 'script' is run"
    """
    group = value.get("group", "Heat::Ungrouped")
    if group != "script":
        return f"its software configuration has the group {group!r}: only 'script' is run"
    config = value.get("config")
    if not isinstance(config, str) or not config or config.startswith("${"):
        return f"its script is {config!r}: the text itself is expected"
    if _interpreter(config) is None:
        return f"its script is for {config.splitlines()[0]!r}: {', '.join(_INTERPRETERS)} are run"
    return None


def command(value: Mapping[str, Any], server: str, key: str, action: str) -> dict[str, Any]:
    """Return the parameters of a shell action that deploys to the server ``key``.

    >>> found = command({"config": "#!/bin/sh -e\\nrun", "inputs": [{"name": "x"}]}, "id", "a",
    ...                 "UPDATE")
    >>> found["argv"], found["env"]["x"], found["env"]["deploy_action"]
    (['/bin/sh', '-e', '-c', '#!/bin/sh -e\\nrun'], '', 'UPDATE')
    """
    declared = value.get("inputs") or ()
    inputs = {str(i.get("name")): i.get("default") for i in declared if isinstance(i, Mapping)}
    inputs |= value.get("input_values") or {}
    env = {str(name): as_text(found) for name, found in inputs.items()}
    env |= {
        "deploy_server_id": server,
        "deploy_action": action,
        "deploy_resource_name": key,
    }
    script = value["config"]
    return {"node": server, "argv": [*(_interpreter(script) or ()), "-c", script], "env": env}


def _interpreter(script: str) -> list[str] | None:
    """Return the interpreter in the first line, /bin/sh without any, None for an unknown one."""
    first = script.partition("\n")[0]
    if not first.startswith("#!"):
        return ["/bin/sh"]
    words = shlex.split(first[2:])
    known = any(word.rpartition("/")[2] in _INTERPRETERS for word in words[:2])
    return words if known else None
