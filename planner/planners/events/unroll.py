"""Loops end here: the action that closes one runs again, under the next number."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from planner.cutting import Cut, cut
from planner.graph import arrange
from planner.planners.events.rules import Outcomes, Web
from planner.reach import Edge, behind


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One time that an action runs; the others are known by their place in the list of runs.

    ``number`` is None where it is the only one. ``after`` must have ended; ``events`` are those
    that set it off, with the outcomes that do. ``repeat``: its events are those that were cut.
    """

    action: str
    number: int | None
    staged: bool
    repeat: bool = False
    after: Sequence[int] = ()
    events: Mapping[int, Outcomes] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The name that it has in the plan."""
        return self.action if self.number is None else f"{self.action}#{self.number}"


class Unbreakable(Exception):
    """Loops in which no event can be cut; ``loops`` are positions in the web."""

    def __init__(self, loops: Collection[frozenset[int]]) -> None:
        self.loops = loops
        super().__init__(f"{len(loops)} loops")


def unroll(web: Web) -> list[Run]:
    """Give the runs in schedule order, by name where nothing else decides; raises Unbreakable.

    The repeat of an action follows its first run, is set off by the cut events alone and sets off
    nothing on the loop. What follows off the loop waits for both, and either may set it off.
    """
    found = cut(len(web.names), web.orders, web.events.keys(), web.staged)
    if found.left:
        raise Unbreakable(found.left)
    links = _Links(web, found)
    keys = sorted(links.runs)
    place = {links.runs[key]: i for i, key in enumerate(keys)}
    after: list[list[int]] = [[] for _ in keys]
    events: list[dict[int, Outcomes]] = [{} for _ in keys]
    for one, other in links.orders():
        after[place[other]].append(place[one])
    for one, other, outcomes in links.events():
        events[place[other]][place[one]] = outcomes
    order = arrange([(a, tuple(e)) for a, e in zip(after, events, strict=True)])
    rank = {i: k for k, i in enumerate(order)}
    staged = {web.names[i] for i in web.staged}
    return [
        Run(
            action=keys[i][0],
            number=keys[i][1] if keys[i][0] in links.twice else None,
            staged=keys[i][0] in staged and keys[i][1] == 0,
            repeat=keys[i][1] > 0,
            after=sorted({rank[j] for j in after[i]}),
            events={rank[j]: events[i][j] for j in sorted(events[i], key=rank.__getitem__)},
        )
        for i in order
    ]


class _Links:
    """Edges between runs; a run is a position in the web, or one behind them for a repeat."""

    def __init__(self, web: Web, found: Cut) -> None:
        self._web, self._cut = web, found
        self._loop = {node: k for k, nodes in enumerate(found.loops) for node in nodes}
        repeated = sorted({target for _, target in found.edges})
        self._second = {node: len(web.names) + k for k, node in enumerate(repeated)}
        #: The actions that run twice.
        self.twice = {web.names[node] for node in repeated}
        #: Name and number of every run, to the run.
        self.runs = {(name, 0): i for i, name in enumerate(web.names)}
        self.runs.update({(web.names[node], 1): run for node, run in self._second.items()})

    def orders(self) -> Iterator[Edge]:
        """Give the orders; what is off the loop waits for the last run."""
        for one, other in self._web.orders:
            yield self._ends(one, other)[-1], other
        # Nothing is said twice: most repeats follow their first run over the loop anyhow.
        implied = self._implied()
        yield from ((one, two) for one, two in self._second.items() if one not in implied)

    def events(self) -> Iterator[tuple[int, int, Outcomes]]:
        """Give the events; those that were cut lead to the repeat."""
        gone = {*self._cut.edges}
        for (one, other), outcomes in self._web.events.items():
            if (one, other) in gone:
                yield one, self._second[other], outcomes
            else:
                yield from ((run, other, outcomes) for run in self._ends(one, other))

    def _ends(self, one: int, other: int) -> tuple[int, ...]:
        """Give the runs of the first that the second follows: on a loop the first run only."""
        if one not in self._second or self._loop.get(one) == self._loop.get(other):
            return (one,)
        return (one, self._second[one])

    def _implied(self) -> set[int]:
        """Find the actions whose repeat comes after their first run over the loop."""
        gone = {*self._cut.edges}
        if not gone:
            return set()
        kept = [
            (one, other)
            for one, other in {*self._web.orders, *self._web.events}
            if (one, other) not in gone
            and one in self._loop
            and self._loop[one] == self._loop.get(other)
        ]
        before: defaultdict[int, list[int]] = defaultdict(list)
        for one, other in kept:
            before[other].append(one)
        order = arrange([(before.get(node, ()),) for node in range(len(self._web.names))])
        pairs = [(target, source) for source, target in self._cut.edges]
        return {one for one, _ in behind([n for n in order if n in self._loop], kept, pairs)}
