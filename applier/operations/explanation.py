# SPDX-License-Identifier: Apache-2.0
"""Explains when an action starts, why it waits, or why it did not run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from applier.assembly import Assembly
from applier.operations import services, start_times, who_runs
from applier.operations.predictions import past_durations, predicted, sentence
from applier.scheduling.concurrency import Concurrency, queue_of
from applier.scheduling.forecast import Forecast
from applier.scheduling.gates import Gates
from applier.store import Reservation
from applier.store.plans import Overview
from applier.store.worker_jobs import unserved
from applier.wording import count, duration, for_reserved, one_line, some, sources
from planner.plan import guarantees
from planner.plan.graph_algorithms import reachable
from planner.plan.model import JOIN, Action, ActionPlan
from planner.plan.states import OPEN, WELL, ActionState

#: The maximum number of actions that a line names.
_MOST = 6


def before(plan: ActionPlan, action: Action) -> list[Action]:
    """Return the direct predecessors of an action in plan order; joins are replaced by theirs."""
    actions = {a.uuid: a for a in plan.actions}

    def links(uuid: str) -> Iterable[str]:
        one = actions[uuid]
        if uuid != action.uuid and one.action_type != JOIN:
            return ()
        return chain(one.before(), *one.needs_any)

    found = reachable([action.uuid], links)
    return [
        a
        for a in plan.actions
        if a.uuid in found and a.action_type != JOIN and a.uuid != action.uuid
    ]


def foreseen(
    plan: ActionPlan, action: Action, found: Forecast, concurrency: Concurrency
) -> Iterator[str]:
    """Yield lines about the forecast start of an action, and the cause of that time."""
    label, timeline = one_line(action.label), found.timeline
    at = timeline.start_s.get(action.uuid)
    if at is None:
        yield f"{label} takes no time: it is a join, and only waits for its predecessors."
        return
    end = duration(timeline.end_s[action.uuid])
    slack = found.slack_s[action.uuid]
    moves = f"it may be {duration(slack)} late" if slack else "what delays it delays the plan"
    yield f"{label} is expected to start at {duration(at)} and to end at {end}; {moves}."
    places = concurrency.queue_tokens.get(action.uuid)
    if at <= 0 and places is not None and places not in concurrency.limits:
        return  # nobody serves its queue
    if at <= 0:
        yield "It starts at once: no open predecessors; its tokens and a worker are free."
        return
    yield _decides(plan, action, found, concurrency)


def _decides(plan: ActionPlan, action: Action, found: Forecast, concurrency: Concurrency) -> str:
    """Return a sentence that names what the action waits for: predecessors, a token, a worker."""
    at, end_s = found.timeline.start_s[action.uuid], found.timeline.end_s
    then = [a for a in plan.actions if end_s.get(a.uuid) == at]
    direct = {a.uuid for a in before(plan, action)}
    links = [a for a in then if a.uuid in direct]
    if links:
        needed = {*action.needs, *(u for group in action.needs_any for u in group)}
        words = "needs" if any(a.uuid in needed for a in links) else "comes after"
        return f"It {words} {_names(links)}: nothing else before it ends as late."
    for place in action.places:
        left = [a for a in then if any(p.token == place.token for p in a.places)]
        members = [p.member for a in left for p in a.places if p.token == place.token]
        if members and place.member not in members:
            who = some([one_line(name) for name in dict.fromkeys(members)], _MOST, ", ")
            return f"A place of {place.token} is held until then by {who}."
    gates = Gates(concurrency.limits, concurrency.max_workers)
    for token in concurrency.tokens_of(action):
        limit = gates.limit(token)
        holders = [a for a in then if token in concurrency.tokens_of(a)]
        if limit is not None and holders:
            if token == concurrency.queue_tokens.get(action.uuid):
                names = _names(holders)
                return f"All {token} ({limit}) are taken until then; {names} gives one back."
            return (
                f"Token {token} (at most {limit} at once) is held until then by {_names(holders)}."
            )
    return (
        f"All {concurrency.max_workers} workers are busy until then; {_names(then)} gives one back."
    )


def waiting(
    plan: ActionPlan,
    action: Action,
    others: Iterable[Reservation],
    changed: Mapping[str, int],
    workers: int,
    window: str | None = None,
) -> list[str]:
    """Return lines about what an action of a running plan waits for, by the stored states.

    ``others`` are reservations of other plans, ``changed`` the limits that operators have set for
    this run. ``window`` names the window for which it waits; None if it waits for none.
    """
    lines = not_ended(plan, action)
    if lines:
        return lines
    limits: dict[str, int] = {"max_workers": workers, **plan.limits, **changed}
    running = [a for a in plan.actions if a.state is ActionState.ONGOING]
    lines = [for_reserved(r) for r in others if r.resource in action.tokens]
    lines += _full(action, running, limits)
    lines += _no_place(plan, action, changed)
    if action.attempts and action.status_message:
        lines.append(f"for its next try: {one_line(action.status_message)}")
    if window:
        lines.append(f"for {window}")
    return lines or ["for its turn: nothing on record holds it back; it starts any moment."]


def not_ended(plan: ActionPlan, action: Action) -> list[str]:
    """Return lines about the predecessors that have not ended."""
    groups = {u for group in action.needs_any for u in group} - set(action.before())
    open_ones = [a for a in before(plan, action) if a.state in OPEN]
    lines = [
        f"for {_names([a for a in open_ones if a.uuid not in groups and a.state is state])}, {word}"
        for state, word in ((ActionState.ONGOING, "running"), (ActionState.PENDING, "not started"))
        if any(a.uuid not in groups and a.state is state for a in open_ones)
    ]
    actions = {a.uuid: a for a in plan.actions}
    for group in action.needs_any:
        members = [actions[u] for u in group]
        left = [a for a in members if a.state in OPEN]
        if left and not any(a.state in WELL for a in members):
            lines.append(f"for one of {_names(left)} to end well")
    return lines


def _full(action: Action, running: list[Action], limits: Mapping[str, int]) -> list[str]:
    """Return lines about the limits that are reached, and the actions that hold them."""
    workers = limits["max_workers"]
    gates = Gates({k: n for k, n in limits.items() if k != "max_workers"}, workers)
    lines = []
    for token in dict.fromkeys(action.tokens):
        limit, holders = gates.limit(token), [a for a in running if token in a.tokens]
        if limit is not None and len(holders) >= limit:
            lines.append(f"for token {token} (at most {limit} at once), held by {_names(holders)}")
    if len(running) >= workers:
        lines.append(f"for a worker: {len(running)} actions run, and at most {workers} may")
    return lines


def _no_place(plan: ActionPlan, action: Action, changed: Mapping[str, int]) -> Iterator[str]:
    """Yield a line for each place that is not free, with the nodes that hold all."""
    for token, member in action.places:
        holders = guarantees.holders(plan, token)
        limit = changed.get(token, guarantees.width(plan, token))
        if member not in holders and len(holders) >= limit:
            names = some([one_line(name) for name in holders], _MOST, ", ")
            yield f"for a place of {token} (at most {limit} at once), held by {names}"


def _names(actions: Iterable[Action]) -> str:
    return some([one_line(a.label) for a in actions], _MOST, ", ")


def explained(
    assembly: Assembly, plan: ActionPlan, action: Action, wanted_workers: int | None
) -> list[str]:
    """Return lines about when an action ended or starts, and why it waits.

    ``plan`` may be a part as by ``load_part`` of the store: the rest is loaded where the answer
    depends on it, that is on windows, on places, and on a forecast. If the plan does not run, the
    start is forecast, with ``wanted_workers`` or as many workers as are configured; for a long plan
    only if ``wanted_workers`` is given.
    """
    from applier.storage.sql_store import SqlStore

    store = assembly.plans
    if action.state is not ActionState.PENDING:
        about = list(sources(plan, action))
        if action.state is ActionState.ONGOING and isinstance(store, SqlStore):
            about[:0] = services.worker_lines(assembly, plan, action)
        return [*_ended_or_runs(action), *(f"  {line}" for line in about)]
    if plan.state not in who_runs.RUNNING and wanted_workers is None:
        kept = store.long_plan(plan.uuid)
        if kept is not None:
            return [*start_times.lines(plan), *_before_a_long_run(plan, action, kept.overview)]
    workers = wanted_workers or assembly.max_workers
    has_windows = assembly.open_times(plan) is not None
    if has_windows or action.places or plan.state not in who_runs.RUNNING:
        plan = store.load_plan(plan.uuid)
        action = next(a for a in plan.actions if a.uuid == action.uuid)
    window = assembly.waits_for(plan)(action)
    if plan.state in who_runs.RUNNING:
        others, changed = store.held_by_others(plan.uuid), who_runs.holding_now(store, plan)
        waits = waiting(plan, action, others, changed, workers, window)
        return [f"{one_line(action.label)} waits:", *(f"  {line}" for line in waits)]
    durations = past_durations(assembly).of(plan)
    made = predicted(assembly, plan, durations, workers)
    first = [f"It waits for {window}. From then on:"] if window else []
    later = []
    if made.unserved and (queue := queue_of(action, assembly.route or ())) in made.unserved:
        later.append(unserved([queue]))
    found = foreseen(plan, action, made.forecast, made.concurrency)
    return [*start_times.lines(plan), *first, *found, *later, sentence(durations)]


def _before_a_long_run(plan: ActionPlan, action: Action, seen: Overview) -> list[str]:
    """Return lines about what an action of a long plan that does not run waits for."""
    number = count(seen.actions, "action")
    return [
        f"{one_line(action.label)} waits:",
        f"  for the plan to run: it is {plan.state}",
        *(f"  {line}" for line in not_ended(plan, action)),
        f"A forecast of all {number} says when it starts: ask for it with max_workers=N.",
    ]


def _ended_or_runs(action: Action) -> list[str]:
    """Return lines about the end of an action, or the start of a running one."""
    label, why = one_line(action.label), one_line(action.status_message or "")
    if action.state is ActionState.ONGOING:
        since = f" since {action.started_at:%Y-%m-%d %H:%M:%S} UTC" if action.started_at else ""
        return [f"{label} runs{since}, attempt {action.attempts}."]
    ran = "ran" if action.started_at else "did not run"
    outcome = f" ({action.outcome})" if action.outcome else ""
    return [f"{label} {ran}: it is {action.state}{outcome}{f': {why}' if why else '.'}"]
