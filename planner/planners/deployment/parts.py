"""A part of a deployment: which tasks are chosen, what is fetched for them, and what is missing.

What is left out and stands between two that are chosen stays as a join: it does nothing, and keeps
their order and need. To depend on something is to come after it in the graph, also through anchors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from planner.errors import InvalidInput, Mistake, accepted
from planner.model import Action, ActionPlan
from planner.planners.deployment.actions import Maker, Step
from planner.planners.deployment.names import Index, near
from planner.planners.deployment.tasks import MASTER, SYNC, Deployment

#: What only a simulated node reads.
_UNSEEN = frozenset({"duration_s"})


class Chosen:
    """The chosen ones among steps in schedule order, each by its place, with the reason."""

    def __init__(self, deployment: Deployment, steps: Sequence[Step]) -> None:
        self._deployment, self._part = deployment, deployment.part
        self._steps = steps
        self.reasons: dict[int, str | None] = {}
        self.notes: list[str] = []

    def steps(self, maker: Maker) -> list[Step]:
        """Give what is left of the steps; notes what is missing then."""
        part = self._part
        if part.nodes is None and part.tasks is None and part.changed_since is None:
            return list(self._steps)
        self.reasons = dict.fromkeys(self._asked())
        if part.changed_since is not None:
            changed = self._changed(part.changed_since, maker)
            self.reasons = {i: changed[i] for i in self.reasons if i in changed}
        if part.fetch:
            self._fetch()
        elif part.changed_since is None:
            self._note_missing()
        return self._left()

    def _asked(self) -> list[int]:
        """Choose by nodes and tasks; raises InvalidInput for one that there is not."""
        part, deployment, mistakes = self._part, self._deployment, []
        uids = {SYNC, MASTER, *(node.uid for node in deployment.nodes)}
        for k, uid in enumerate(part.nodes or ()):
            if uid not in uids:
                mistakes.append(
                    Mistake(f"no node {uid!r}; {accepted(uid, uids)}", ("only", "nodes", k))
                )
        names = {task.id: None for task in deployment.runnable}
        index, ids = Index(names, deployment.patterns), set[str]()
        for k, name in enumerate(part.tasks or ()):
            if not index(name):
                text = f"no task is called {name!r}{near(name, names)}"
                mistakes.append(Mistake(text, ("only", "tasks", k)))
            ids.update(index(name))
        if mistakes:
            raise InvalidInput(mistakes)
        return [
            i
            for i, step in enumerate(self._steps)
            if step.task is not None
            and (part.nodes is None or step.uid in part.nodes)
            and (part.tasks is None or step.task.id in ids)
        ]

    def _changed(self, earlier: ActionPlan, maker: Maker) -> dict[int, str]:
        """Give what differs from an earlier plan, and what depends on that, with the reason."""
        known = {action.name: action for action in earlier.actions}
        short = earlier.uuid[:8]
        found: dict[int, str] = {}
        causes: dict[int, str] = {}
        for i, step in enumerate(self._steps):
            if step.task is not None:
                why = _difference(known.pop(step.name, None), maker.about(step), short)
                if why:
                    found[i], causes[i] = why, step.name
                    continue
            cause = next((causes[p] for p in _before(step) if p in causes), None)
            if cause is not None:
                causes[i] = cause
                if step.task is not None:
                    found[i] = f"depends on {cause}, which changed"
        gone = [a.label for a in known.values() if a.name and a.action_type != "join"]
        if gone:
            more = f" and {len(gone) - 5} more" if len(gone) > 5 else ""
            self.notes.append(f"no longer there since plan {short}: {', '.join(gone[:5])}{more}")
        if not found:
            self.notes.append(f"nothing changed since plan {short}")
        return found

    def _fetch(self) -> None:
        for i in range(len(self._steps) - 1, -1, -1):
            if i in self.reasons:
                for p in _before(self._steps[i]):
                    name = self._steps[i].name
                    if self._steps[i].task is None:
                        name = str(self.reasons[i]).removesuffix(" depends on it")
                    self.reasons.setdefault(p, f"{name} depends on it")

    def _note_missing(self) -> None:
        """Note each dependency that is left out, with who depends on it."""
        wanting: dict[int, list[str]] = {}
        users: dict[int, list[str]] = {}
        for i in sorted(self.reasons):
            step = self._steps[i]
            loose = [g for g in step.any_of if not any(self._chosen(p) for p in g)]
            for p in (*step.before, *(p for group in loose for p in group)):
                who = users if self._steps[p].task is None else wanting
                who.setdefault(p, []).append(step.name)
        for join, names in users.items():
            for p in _before(self._steps[join]):
                wanting.setdefault(p, []).extend(names)
        for p, names in sorted(wanting.items()):
            if p not in self.reasons:
                more = f" and {len(names) - 1} more" if len(names) > 1 else ""
                text = f"{self._steps[p].name} is left out; {names[0]}{more} depend on it"
                self.notes.append(text if more else text.replace(" depend ", " depends "))

    def _chosen(self, i: int) -> bool:
        if i in self.reasons:
            return True
        step = self._steps[i]
        return step.task is None and any(p in self.reasons for p in _before(step))

    def _left(self) -> list[Step]:
        """Give the chosen steps, and joins for what stands between two of them."""
        kept = {i for i in self.reasons if self._steps[i].task is not None}
        follows, leads = set(kept), set(kept)
        for i, step in enumerate(self._steps):
            if not follows.isdisjoint(_before(step)):
                follows.add(i)
        for i in range(len(self._steps) - 1, -1, -1):
            if i in leads:
                leads.update(_before(self._steps[i]))
        place = {i: k for k, i in enumerate(sorted(follows & leads))}
        return [self._one(i, i in kept, place) for i in place]

    def _one(self, i: int, kept: bool, place: Mapping[int, int]) -> Step:
        step = self._steps[i]
        sets = (tuple(place[p] for p in group if p in place) for group in step.any_of)
        rest = step._replace(
            before=tuple(place[p] for p in step.before if p in place),
            any_of=tuple(group for group in sets if group),
        )
        if kept:
            return rest._replace(reason=self.reasons[i] or step.reason)
        name = step.name if step.task is None else f"join/{step.name}"
        return rest._replace(name=name, task=None, reason="stands for what is left out")


def _before(step: Step) -> Iterable[int]:
    yield from step.before
    for group in step.any_of:
        yield from group


def _difference(earlier: Action | None, now: Mapping[str, Any], plan: str) -> str | None:
    """Say in what an action differs from the one of its name in an earlier plan."""
    if earlier is None:
        return f"it is not in plan {plan}"
    if earlier.action_type != now["action_type"]:
        if "skipped" in (earlier.action_type, now["action_type"]):
            is_now = "false" if now["action_type"] == "skipped" else "true"
            return f"its condition is {is_now} now"
        return f"it was of type {earlier.action_type}"
    if now["action_type"] == "skipped":
        return None
    old, new = earlier.input_parameters, now.get("input_parameters", {})
    nothing = object()
    differ = [
        key
        for key in sorted({*old, *new} - _UNSEEN)
        if old.get(key, nothing) != new.get(key, nothing)
    ]
    return f"its {', '.join(differ)} changed" if differ else None
