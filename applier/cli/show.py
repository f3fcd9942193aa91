# SPDX-License-Identifier: Apache-2.0
"""``actionplan show``: one stored plan."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, ClassVar

from applier.assembly import now
from applier.cli.arguments import ALL, PLAN, argument, format_of
from applier.cli.verb import Verb, rendered, shown_plan
from applier.guarding import windows
from applier.operations import approving, hidden_parameters, start_times, who_runs
from applier.run import node_states
from applier.store.plans import LongPlan
from applier.wording import count
from planner.errors import InvalidInput, Mistake, accepted
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState


class ShowPlan(Verb):
    """Show a plan wave by wave, or the whole plan as JSON or YAML

    '-f message' writes the three-level message of a deployment: nodes, their tasks, and the
    dependencies of each task. 'create' can read it. '--node HOST' looks at the cloud, and says what
    left the host, what remains on it and why, and whether it is safe to power off.
    """

    EXAMPLES: ClassVar[tuple[str, ...]] = (
        "show last",
        "show host-maintenance --all",
        "show 7f3a91 -f json",
        "show last -f message",
        "show last --node compute-1",
    )
    ARGUMENTS = (
        PLAN,
        ALL,
        argument("--node HOST", "show one host of the cloud instead"),
        format_of("message"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        store, shown_whole = self.session.plans, parsed_args.all or parsed_args.node
        uuid = store.find_plan(parsed_args.plan)
        if parsed_args.format == "table" and not shown_whole:
            kept = store.long_plan(uuid)
            if kept and not approving.concerns(self.session, kept.plan):
                self._show(kept.plan, kept)
                if kept.plan.planner == node_states.PLANNER and kept.has_begun:
                    self.say(f"For the states of its nodes: actionplan show {uuid[:8]} --all")
                return 0
        plan = store.load_plan(uuid)
        if parsed_args.node:
            return self._show_host(plan, parsed_args.node, parsed_args.format)
        if parsed_args.format == "message":
            from planner.planners.deployment import message

            known = hidden_parameters.without(plan, self.session.action_types)
            self.app.stdout.write(rendered(message.write(known), "json"))
            return 0
        if parsed_args.format != "table":
            self.app.stdout.write(shown_plan(self.session, plan, parsed_args.format))
            return 0
        from applier.cli.reporters import recap

        self._show(plan, whole=parsed_args.all)
        if recap.is_shown(plan):
            recap.show_nodes(plan, self.app.stdout)
        return 0

    def _show(self, plan: ActionPlan, kept: LongPlan | None = None, *, whole: bool = False) -> None:
        from applier.cli.reporters import plan_table

        changed = who_runs.holding_now(self.session.plans, plan)
        plan_table.show(
            plan,
            self.app.stdout,
            whole=whole,
            run_by=self.about(plan),
            changed=changed,
            kept=kept,
        )

    def about(self, plan: ActionPlan) -> Iterable[str]:
        """Return lines about who runs the plan, its approvals, and its windows."""
        assembly, at = self.session, now()
        return chain(
            who_runs.claimant_lines(self.session.plans, plan, self.session.record, at),
            approving.lines(assembly, plan),
            start_times.lines(plan),
            windows.lines(plan, assembly.open_times(plan), at),
        )

    def _show_host(self, plan: ActionPlan, host: str, form: str) -> int:
        """Write which instances have left a host and which remain, by a new query of the cloud."""
        if form == "message":
            raise InvalidInput([Mistake("a host has no message", place="--node")])
        self.session.require_own_cloud(plan)
        state = compare_with_facts(plan, host, self.session.facts())
        if form == "table":
            for line in lines(state):
                self.say(line)
        else:
            self.app.stdout.write(rendered(state, form))
        return 0


_OPEN = (ActionState.PENDING, ActionState.ONGOING)
#: Why an instance is still there, by the state of its move.
_WHY = {
    ActionState.PENDING: "its move has not started",
    ActionState.ONGOING: "it is being moved",
    ActionState.SUCCEEDED: "it came back after its move",
    ActionState.UNKNOWN: "its move is in doubt",
}


def compare_with_facts(plan: ActionPlan, host: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Compare the actions of a plan that concern one host with the facts of the cloud.

    The result has ``host, power, service, left, remains, safe_to_power_off, not_safe_because``, as
    JSON types. ``left`` has the instances that the plan moves away and that are not on the host,
    ``remains`` those that are on it. Raises InvalidInput if there is no such host.
    """
    known = {**facts["hosts"], **facts["services"]}
    if host not in known:
        text = f"there is no such host; {accepted(host, known)}"
        raise InvalidInput([Mistake(text, place=f"--node {host}")])
    moves = {a.resource_id: a for a in plan.actions if _leaves(a, host)}
    there = {i: at for i, at in facts["instances"].items() if at["host"] == host}
    service = facts["services"].get(host)
    because = [
        *([f"{count(len(there), 'instance')} on it"] if there else []),
        *(
            ["its service is enabled, so that instances may come"]
            if service and service["status"] == "enabled"
            else []
        ),
        *(f"{a.label} is {a.state}" for a in plan.actions if _comes(a, host)),
    ]
    return {
        "host": host,
        "power": facts["hosts"].get(host, {}).get("power"),
        "service": service,
        "left": [
            {
                "id": uuid,
                "name": action.input_parameters.get("resource_name"),
                "host": facts["instances"].get(uuid, {}).get("host"),
                "exists": uuid in facts["instances"],
            }
            for uuid, action in moves.items()
            if uuid not in there
        ],
        "remains": [
            {"id": i, "name": at["name"], "status": at["status"], "why": _why(moves.get(i))}
            for i, at in there.items()
        ],
        "safe_to_power_off": not because,
        "not_safe_because": because,
    }


def lines(state: Mapping[str, Any]) -> Iterator[str]:
    """Yield the result of :func:`compare_with_facts` as lines of text."""
    service = state["service"]
    power = [f"power {state['power']}"] if state["power"] else []
    yield ", ".join([state["host"], *power, *(_service(service) if service else ())])
    moved = [left for left in state["left"] if left["exists"]]
    yield f"Moved away: {count(len(moved), 'instance')}"
    for left in moved:
        yield f"  {left['name'] or left['id']}  on {left['host'] or 'no host'}"
    for left in state["left"]:
        if not left["exists"]:
            yield f"Does not exist any more: {left['name'] or left['id']}"
    yield f"Remains: {count(len(state['remains']), 'instance')}"
    for remaining in state["remains"]:
        yield f"  {remaining['name']}  {remaining['status']}: {remaining['why']}"
    because = state["not_safe_because"]
    yield f"Safe to power off: {'no: ' + '; '.join(because) if because else 'yes'}"


def _service(service: Mapping[str, Any]) -> Iterator[str]:
    why = f" ({service['reason']})" if service["reason"] else ""
    yield f"service {service['status']}{why} and {service['state']}"


def _leaves(action: Action, host: str) -> bool:
    return action.action_type == "migrate" and action.input_parameters.get("source_node") == host


def _comes(action: Action, host: str) -> bool:
    """Return whether an open action moves an instance to the host, or changes one that is there."""
    works = any(token.startswith("instance:") for token in action.tokens)
    open_here = action.state in _OPEN and f"node:{host}" in action.tokens
    return open_here and works and not _leaves(action, host)


def _why(move: Action | None) -> str:
    if move is None:
        return "no action of the plan moves it"
    message = f": {move.status_message}" if move.status_message else ""
    return _WHY.get(move.state, f"its move is {move.state}{message}")
