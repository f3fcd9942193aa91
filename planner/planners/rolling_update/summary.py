# SPDX-License-Identifier: Apache-2.0
"""Summarises an update in sentences and figures: the efficacy indicators of its plan."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import groupby
from typing import Any

from planner.planners.rolling_update.batches import RESIZE, Phase, Roll


def of_group(roll: Roll, end_s: float, *, timed: bool) -> dict[str, Any]:
    """Return the efficacy indicator of one group: a ``description``, and the figures in ``value``.

    ``batches`` lists the numbers of created and terminated members of each batch. ``floor`` is the
    minimum number of members in service, ``peak`` the maximum number of members, ``maximum`` that
    of the group itself or None. ``end_s`` is the time from the start of the plan to the end of the
    group, in seconds; the indicator has None instead unless ``timed``, because the duration of some
    action is not known.
    """
    rolling = [phase for phase in roll.phases if phase.name != RESIZE]
    pauses = [s for p in rolling for s in (p.pause_before_s, p.pause_after_s) if s]
    return {
        "name": roll.group.name,
        "description": f"{roll.group.name}: {_sentence(roll, rolling, pauses)}",
        "unit": None,
        "value": {
            "cause": roll.cause,
            "batches": [[phase.create, len(phase.terminate)] for phase in rolling],
            "floor": roll.floor,
            "peak": roll.peak,
            "maximum": roll.group.most,
            "size": roll.end,
            "pause_s": sum(pauses),
            "end_s": end_s if timed else None,
        },
    }


def of_all(
    rolls: Sequence[Roll], peak: int, total_s: float, untimed: Collection[str]
) -> dict[str, Any]:
    """Return the efficacy indicator of all groups together.

    ``peak`` is the maximum number of instances. ``total_s`` is the duration of the plan in seconds,
    without the actions of the types ``untimed``, whose duration is not known.
    """
    most = f"at most {peak} instances at once; " if peak else ""
    if not any(roll.phases for roll in rolls):
        text = "nothing changes"
    elif untimed:
        text = f"{most}it ends after {total_s:g} s and what {' and '.join(sorted(untimed))} take"
    else:
        text = f"{most}it ends {total_s:g} s after its start, if each batch runs side by side"
    value = {"peak": peak, "end_s": None if untimed else total_s, "known_s": total_s}
    return {"name": "all groups", "description": f"In all: {text}", "unit": None, "value": value}


def _sentence(roll: Roll, rolling: Sequence[Phase], pauses: Sequence[float]) -> str:
    start = len(roll.members)
    if not roll.phases:
        return f"stays as it is, {_members(start)}" + (
            f" ({roll.cause}, and all of them are current)" if roll.cause else ""
        )
    parts = []
    if rolling:
        how = "create first" if rolling[0].creates_first else "in place"
        alike = groupby(_batch(p, deploys=roll.group.servers is not None) for p in rolling)
        counted = ((size, sum(1 for _ in among)) for size, among in alike)
        sizes = ", ".join(f"{n} x {size}" if n > 1 else size for size, n in counted)
        plural = "batch" if len(rolling) == 1 else "batches"
        parts.append(f"{len(rolling)} {plural} ({sizes}), {how}")
    if roll.end != start:
        parts.append(f"from {start} to {_members(roll.end)}")
    parts.append(
        f"never fewer than {roll.floor} in service, never more than {_members(roll.peak)}"
        f"{_maximum(roll)}"
    )
    if pauses:
        plural = "pause" if len(pauses) == 1 else "pauses"
        parts.append(f"{len(pauses)} {plural} of {pauses[0]:g} s")
    why = f", because {roll.cause}" if roll.cause else ", and no roll"
    return "; ".join(parts) + why


def _batch(phase: Phase, *, deploys: bool) -> str:
    return str(phase.create) if deploys else f"+{phase.create} -{len(phase.terminate)}"


def _maximum(roll: Roll) -> str:
    """Return what the peak is in terms of the group's own maximum, if it has one."""
    most = roll.group.most
    if most is None:
        return ""
    if roll.group.policy is not None and roll.group.policy.replaces and roll.cause:
        return f" (two groups, its maximum is {most})"
    over = roll.peak - most
    return f" ({over} above its maximum of {most})" if over > 0 else f" (its maximum is {most})"


def _members(number: int) -> str:
    return f"{number} member" if number == 1 else f"{number} members"
