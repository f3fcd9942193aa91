# SPDX-License-Identifier: Apache-2.0
"""Read parameters that may not have been checked against a schema; no function raises errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.plan.model import Effect, Touch


def text(parameters: Mapping[str, Any], key: str) -> str | None:
    """Return the value if it is a text that is not blank, else None.

    >>> text({"state": "on"}, "state"), text({"state": ""}, "state"), text({"state": 1}, "state")
    ('on', None, None)
    """
    value = parameters.get(key)
    return value if isinstance(value, str) and value.strip() else None


def resource(parameters: Mapping[str, Any], otherwise: str) -> str:
    """Return the name of the resource for messages: its name, else its id, else ``otherwise``.

    >>> resource({"resource_id": "6a1f", "resource_name": "web-1"}, "an instance")
    'web-1'
    >>> resource({}, "an instance")
    'an instance'
    """
    return text(parameters, "resource_name") or text(parameters, "resource_id") or otherwise


def touch(kind: str, name: str | None, effect: Effect | None = Effect.USES) -> tuple[Touch, ...]:
    """Return a tuple of one Touch; an empty one if the name or the effect is unknown.

    >>> touch("node", "compute-1", Effect.LEAVES)
    (Touch(resource='node:compute-1', effect=<Effect.LEAVES: 'leaves'>),)
    >>> touch("node", None)
    ()
    """
    return (Touch(f"{kind}:{name}", effect),) if name and effect else ()


def one_line(value: str, limit: int = 100) -> str:
    """Return a text as one line of at most ``limit`` characters, without control characters.

    >>> one_line("systemctl restart\\n  haproxy", 20)
    'systemctl restart h…'
    """
    line = " ".join(value.split())
    if not line.isprintable():
        line = "".join(c if c.isprintable() else "?" for c in line)
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
