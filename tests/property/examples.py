# SPDX-License-Identifier: Apache-2.0
"""How many examples a property is tried on, and actions with other uuids."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from hypothesis import settings

from planner.plan.model import Action


def examples(number: int) -> int:
    """Return ``number`` in the profile ``full``, and a tenth of it without one.

    The profiles are in ``tests/conftest.py``: one tries 100 examples, the other 10.
    """
    return max(1, number * settings.default.max_examples // 100)


def renamed(
    action: Action, other: Callable[[str], str], kept: Collection[str] | None = None
) -> Action:
    """Return an action with other uuids; with ``kept``, without its links to anything else."""

    def some(uuids: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(other(uuid) for uuid in uuids if kept is None or uuid in kept)

    def those(links: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(
            link._replace(action=other(link.action)) for link in links if some((link.action,))
        )

    return replace(
        action,
        uuid=other(action.uuid),
        parents=some(action.parents),
        needs=some(action.needs),
        needs_any=tuple(group for g in action.needs_any if (group := some(g))),
        triggers=those(action.triggers),
        blocked_by=those(action.blocked_by),
    )
