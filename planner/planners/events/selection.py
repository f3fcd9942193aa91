# SPDX-License-Identifier: Apache-2.0
"""Keeps the requested runs, and warns of the runs that are left out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from planner.errors import InvalidInput, Mistake, accepted
from planner.planners.events.document import Subset
from planner.planners.events.reachability import reachable_pairs
from planner.planners.events.unroll import Run

if TYPE_CHECKING:
    import networkx as nx


def selected(runs: Sequence[Run], subset: Subset) -> tuple[list[Run], list[str]]:
    """Return the requested runs, in their order, and warnings about runs that are left out.

    The links of the returned runs are indexes in the returned list. If all runs that could trigger
    a run are left out, it becomes staged: it runs without a trigger. Raises InvalidInput for names
    that are not in the plan.
    """
    if not (subset.only or subset.since or subset.until):
        return list(runs), []
    import networkx as nx

    only, since, until = _wanted(runs, subset)
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(len(runs)))
    graph.add_edges_from((j, i) for i, run in enumerate(runs) for j in _before(run))
    kept = set(range(len(runs)))
    if subset.only:
        kept &= only
    if subset.since:
        kept &= _reachable(graph, since)
    if subset.until:
        kept &= _reachable(graph.reverse(copy=False), until)
    place = {i: k for k, i in enumerate(sorted(kept))}
    found = _with_repeats_ordered([_without(runs[i], place) for i in place])
    return found, list(_warnings(runs, kept))


def _wanted(runs: Sequence[Run], subset: Subset) -> tuple[set[int], set[int], set[int]]:
    """Return the indexes of the runs that ``only``, ``since`` and ``until`` name.

    A name with a number stands for one run, a name without a number for all runs of the action.
    Raises InvalidInput for unknown names.
    """
    found: dict[str, set[int]] = {}
    for i, run in enumerate(runs):
        for name in {run.action, run.label}:
            found.setdefault(name, set()).add(i)
    mistakes = [
        Mistake(f"{name!r} is not in the plan; {accepted(name, found)}", (field,))
        for field, names in (("only", subset.only), ("from", subset.since), ("until", subset.until))
        for name in names
        if name not in found
    ]
    if mistakes:
        raise InvalidInput(mistakes)
    only, since, until = (
        {i for name in names for i in found[name]}
        for names in (subset.only, subset.since, subset.until)
    )
    return only, since, until


def _before(run: Run) -> Iterator[int]:
    yield from run.after
    yield from run.events


def _reachable(graph: nx.DiGraph[int], starts: Collection[int]) -> set[int]:
    import networkx as nx

    return {*chain.from_iterable(nx.bfs_layers(graph, starts))}


def _without(run: Run, place: dict[int, int]) -> Run:
    events = {place[i]: outcomes for i, outcomes in run.events.items() if i in place}
    return replace(
        run,
        staged=run.staged or not events,
        after=[place[i] for i in run.after if i in place],
        events=events,
    )


def _with_repeats_ordered(runs: Sequence[Run]) -> list[Run]:
    """Order a second run after the first one, if the path between them is left out."""
    first = {run.action: i for i, run in enumerate(runs) if not run.repeat}
    pairs = {(first[r.action], i) for i, r in enumerate(runs) if r.repeat and r.action in first}
    edges = [(j, i) for i, run in enumerate(runs) for j in _before(run)]
    new = {
        two: one for one, two in pairs.difference(reachable_pairs(range(len(runs)), edges, pairs))
    }
    return [
        replace(run, after=sorted((*run.after, new[i]))) if i in new else run
        for i, run in enumerate(runs)
    ]


def _warnings(runs: Sequence[Run], kept: Collection[int]) -> Iterator[str]:
    left = [run.label for i, run in enumerate(runs) if i not in kept]
    if left:
        yield f"left out by only, from or until: {', '.join(left)}"
    sets_off: dict[int, list[str]] = {}
    for i, run in enumerate(runs):
        if i in kept:
            missing = sorted({runs[j].label for j in _before(run) if j not in kept})
            if missing:
                names = ", ".join(missing)
                yield f"{run.label} does not wait for actions that are left out: {names}"
        else:
            for j in run.events:
                sets_off.setdefault(j, []).append(run.label)
    for i in sorted(kept):
        if i in sets_off:
            names = ", ".join(sets_off[i])
            yield f"{runs[i].label} may have to trigger actions that are left out: {names}"
