# SPDX-License-Identifier: Apache-2.0
"""The links that a document of ``kind: solution`` says: what an action needs, and what it follows.

``needs`` name actions that must end well first, ``after`` those that must have ended. They hold for
every planner: where a weight says otherwise, the link wins.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, permutations
from typing import Any, NamedTuple

from planner.errors import Mistake, Path, accepted
from planner.plan.graph_algorithms import CycleError, reachable_pairs, topological_order
from planner.plan.model import Effect, ProposedAction

#: Why an action comes after what the document names.
SAID = "the document says so"


class DocumentLinks(NamedTuple):
    """The links of actions by position: ``needs[i]`` and ``after[i]`` come before action ``i``."""

    needs: Sequence[tuple[int, ...]]
    after: Sequence[tuple[int, ...]]

    def __bool__(self) -> bool:
        return any(self.needs) or any(self.after)

    def both(self, i: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return both groups of what comes before action ``i``."""
        return self.needs[i], self.after[i]

    def before(self, i: int) -> tuple[int, ...]:
        """Return all positions that come before action ``i``."""
        return (*self.needs[i], *self.after[i])


def of(actions: Sequence[ProposedAction]) -> DocumentLinks:
    """Return the links of actions, by their positions in ``actions``.

    A name that is not among them is left out, and what is needed is not in ``after`` as well.

    >>> a = ProposedAction(name="a", action_type="nop")
    >>> b = ProposedAction(name="b", action_type="nop", needs=("a",), after=("a",))
    >>> of([a, b])
    DocumentLinks(needs=[(), (0,)], after=[(), ()])
    """
    at = {action.name: i for i, action in enumerate(actions)}

    def positions(names: Sequence[str], but: Sequence[str] = ()) -> tuple[int, ...]:
        others = frozenset(but)
        return tuple([at[name] for name in names if name in at and name not in others])

    return DocumentLinks(
        [positions(a.needs) for a in actions], [positions(a.after, a.needs) for a in actions]
    )


def mistakes(actions: Sequence[ProposedAction]) -> list[Mistake]:
    """List the unknown names in links; if there are none, the cycles, with their paths."""
    names = [action.name for action in actions]
    known = set(names)
    found = []
    for i, action in enumerate(actions):
        for field, before in (("needs", action.needs), ("after", action.after)):
            for k, name in enumerate(before):
                where: Path = ("actions", i, field, k)
                if name == action.name:
                    found.append(Mistake(f"{name!r} cannot come before itself", where))
                elif name not in known:
                    hint = accepted(name, names, found)
                    found.append(Mistake(f"no action {name!r}; {hint}", where))
    return found or cycles(actions, of(actions))


def cycles(
    actions: Sequence[ProposedAction],
    links: DocumentLinks,
    others: Mapping[tuple[int, int], str] | None = None,
) -> list[Mistake]:
    """List cycles with a link of the document, each at that link.

    ``others`` maps what comes before by another rule, (earlier, later), to that rule.
    """
    because = dict(others or {})
    before = [list(links.before(i)) for i in range(len(actions))]
    for one, other in because:
        before[other].append(one)
    try:
        topological_order([(tuple(earlier),) for earlier in before])
    except CycleError as error:
        found = (_cycle(actions, links, because, cycle) for cycle in error.cycles())
        return [mistake for mistake in found if mistake]
    return []


def _cycle(
    actions: Sequence[ProposedAction],
    links: DocumentLinks,
    because: Mapping[tuple[int, int], str],
    cycle: Sequence[int],
) -> Mistake | None:
    steps = [*pairwise(cycle), (cycle[-1], cycle[0])]
    first = next((k for k, (one, other) in enumerate(steps) if one in links.before(other)), None)
    if first is None:
        return None
    # That link closes the cycle.
    steps = [*steps[first + 1 :], *steps[: first + 1]]
    names = [actions[steps[0][0]].name]
    for one, other in steps:
        known = one in links.before(other)
        rule = actions[other].because.get(actions[one].name) if known else because[one, other]
        names.append(f"{actions[other].name} ({rule})" if rule else actions[other].name)
    last, closing = steps[-1]
    action, name = actions[closing], actions[last].name
    place: Path = ("actions", closing)
    if name not in action.because:
        field = "needs" if last in links.needs[closing] else "after"
        place = (*place, field, getattr(action, field).index(name))
    return Mistake("a cycle: " + " -> ".join(names), place)


def in_order(
    actions: Sequence[ProposedAction], rank: Callable[[ProposedAction], Any]
) -> list[ProposedAction]:
    """Sort actions by rank, equal ones in input order, but each after those that it is linked to.

    >>> light = ProposedAction(name="light", action_type="nop")
    >>> heavy = ProposedAction(name="heavy", action_type="nop", after=("light",))
    >>> [a.name for a in in_order([heavy, light], rank=lambda a: a.name == "light")]
    ['light', 'heavy']
    """
    links = of(actions)
    ranked = sorted(range(len(actions)), key=lambda i: rank(actions[i]))
    place = {i: k for k, i in enumerate(ranked)}
    before = [[tuple([place[earlier] for earlier in links.before(i)])] for i in ranked]
    return [actions[ranked[k]] for k in topological_order(before)]


def unordered_on_a_machine(
    actions: Sequence[ProposedAction], local: Callable[[ProposedAction], bool]
) -> list[str]:
    """Return a warning if two actions run something on one machine, and no link orders them.

    Only actions count that use a node and no instance, as commands and files do, and those that are
    ``local``: they run on the machine of the applier.
    """
    links = of(actions)
    on: dict[str, list[int]] = defaultdict(list)
    for i, action in enumerate(actions):
        if local(action):
            on[_APPLIER].append(i)
        used = {t.resource for t in action.touches if t.effect is Effect.USES}
        if used and all(resource.startswith("node:") for resource in used):
            for resource in used:
                on[resource].append(i)
    neighbours = [(on_it, *pair) for on_it, found in sorted(on.items()) for pair in pairwise(found)]
    order = topological_order([links.both(i) for i in range(len(actions))]) if neighbours else []
    both_ways = ((a, b) for _, *pair in neighbours for a, b in permutations(pair))
    linked = set(reachable_pairs(order, links.both, both_ways))
    for resource, one, other in neighbours:
        if (one, other) not in linked and (other, one) not in linked:
            machine = resource.removeprefix("node:")
            first, second = actions[one].name, actions[other].name
            return [
                f"{first} and {second} both run on {machine}, and no link orders them: where "
                f"the order matters, say 'after: [{first}]'"
            ]
    return []


#: What a warning calls the machine of actions that name none.
_APPLIER = "the applier's machine or that of a worker"
