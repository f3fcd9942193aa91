# SPDX-License-Identifier: Apache-2.0
"""Compares a plan with the cloud as it is: what is not as planned any more, and a dry run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from applier.actions.group_instances import definition
from applier.actions.parameters import resource, text
from applier.assembly import Assembly, now
from applier.errors import Difference, Drift, GuardRefusal
from applier.operations import Tell
from applier.run import plan_cloud
from applier.run.prechecks import Precheck, Prechecked, check_all
from applier.store.runs import size_of
from applier.wording import ago
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState

Facts = Mapping[str, Any]
_OPEN = (ActionState.PENDING, ActionState.ONGOING, ActionState.UNKNOWN)
#: The states that make a host ready to receive instances, by action type.
_MAKES_READY = {
    "change_nova_service_state": ("enabled", "up"),
    "change_node_power_state": ("on",),
}


def require_no_drift(
    assembly: Assembly, plan: ActionPlan, say: Tell, *, accepted: bool, in_any_case: bool
) -> None:
    """Pass lines about the age of a plan, and about what differs in the cloud, to ``say``.

    The cloud is read only if the plan has a PENDING action of a type that can be compared. If
    nothing differs, ``say`` is called only with ``in_any_case``. Raises Drift if anything
    differs and that is not ``accepted``, and ActionFailed if the cloud cannot be read.
    """
    compared = (a.state is ActionState.PENDING and a.action_type in _COMPARED for a in plan.actions)
    if not any(compared):
        return
    differences = found(plan, assembly.facts())
    age = f" {ago((now() - plan.created_at).total_seconds())}" if plan.created_at else ""
    if differences:
        say(f"Planned{age}; the cloud is not as planned:")
        for difference in differences:
            say(f"  {difference.detail}")
        if not accepted:
            raise Drift(plan.uuid, differences)
    elif in_any_case:
        say(f"Planned{age}; the cloud is as planned.")


def found(plan: ActionPlan, facts: Facts) -> list[Difference]:
    """Return each difference of the cloud that concerns a PENDING action.

    ``facts`` is the content of the cloud. Of several open actions on an instance or host only the
    first is compared, because it changes the state that the others find. A host that an action of
    the plan enables or powers on may be disabled or down now. An interrupted action is not
    compared, because it is verified before it runs. An instance that is at its destination already
    is no difference, so that a document can be planned and applied again until all is done.
    """
    ready = {
        resource(a.input_parameters, "")
        for a in plan.actions
        if a.input_parameters.get("state") in _MAKES_READY.get(a.action_type, ())
    }
    seen: set[str] = set()
    differences: list[Difference] = []
    for action in plan.actions:
        if action.action_type not in _COMPARED or action.state not in _OPEN:
            continue
        what = action.resource_id or resource(action.input_parameters, "")
        if action.state is ActionState.PENDING and what not in seen:
            differences += _COMPARED[action.action_type](action, facts, ready)
        seen.add(what)
    return list(dict.fromkeys(differences))


def _moved(action: Action, facts: Facts, ready: set[str]) -> Iterator[Difference]:
    parameters = action.input_parameters
    instance = facts["instances"].get(action.resource_id)
    if instance is None:
        yield from _gone(action, facts, ready)
        return
    name, source = instance["name"], parameters.get("source_node")
    destination = text(parameters, "destination_node")
    if instance["host"] is not None and instance["host"] == destination:
        return
    host = instance["host"]
    if host != source:
        told = f"{name} is on {host or 'no host'}, and was planned to leave {source}"
        yield Difference(told, name, source, host)
    if destination is None or destination in ready:
        return
    service = facts["services"].get(destination)
    if service is None:
        told = f"there is no compute service on {destination}, where instances are to go"
        yield Difference(told, destination, "enabled")
    elif service["status"] != "enabled":
        why = f" ({service['reason']})" if service["reason"] else ""
        told = f"{destination}, where instances are to go, is disabled{why}"
        yield Difference(told, destination, "enabled", "disabled")
    elif service.get("state") == "down":
        told = f"{destination}, where instances are to go, is down"
        yield Difference(told, destination, "up", "down")


def _gone(action: Action, facts: Facts, _: set[str]) -> Iterator[Difference]:
    if action.resource_id not in facts["instances"]:
        name = resource(action.input_parameters, "an instance")
        told = f"{name} does not exist, and is to be changed by {action.label}"
        yield Difference(told, name, text(action.input_parameters, "source_node"))


def _no_host(action: Action, facts: Facts, _: set[str]) -> Iterator[Difference]:
    host = resource(action.input_parameters, "")
    if host not in facts["hosts"] and host not in facts["services"]:
        yield Difference(f"there is no host {host}, which is to be changed by {action.label}", host)


_COMPARED: Mapping[str, Callable[[Action, Facts, set[str]], Iterator[Difference]]] = {
    "migrate": _moved,
    "resize": _gone,
    "stop": _gone,
    "shelve": _gone,
    "change_nova_service_state": _no_host,
    "change_node_power_state": _no_host,
    "turn_host_to_acpi_s3_state": _no_host,
}


class DryRun(NamedTuple):
    """The findings of a dry run.

    ``checked`` are the results of the prechecks in plan order. ``moved`` are sentences about what
    differs in the cloud from the plan; None if the plan needs no cloud. ``guard`` is the sentence
    with which a guard refuses the plan; None if none does.
    """

    checked: Sequence[Prechecked]
    moved: Sequence[str] | None
    guard: str | None

    @property
    def is_refused(self) -> bool:
        """Whether anything is refused, or not as planned."""
        refused = any(one.found is Precheck.REFUSED for one in self.checked)
        return refused or bool(self.moved) or self.guard is not None


def dry_run(assembly: Assembly, plan: ActionPlan, *, runs_commands: bool = False) -> DryRun:
    """Call the prechecks of a plan, compare it with the cloud, and check its guards.

    With ``runs_commands``, types may run commands that only look (``ActionPlugin.dry_run``).

    Nothing is stored or changed. Raises ActionFailed if the cloud cannot be read.
    """
    environment = assembly.environment.of_plan(plan)
    try:
        checked = check_all(plan.actions, environment, runs_commands=runs_commands)
    finally:
        environment.close()
    needs_cloud = plan_cloud.needed_by(plan, assembly.plugins) is not None
    moved = None
    if needs_cloud:
        facts = assembly.facts()
        moved = [difference.detail for difference in found(plan, facts)]
        checked = [_with_room(one, facts) for one in checked]
    guard = None
    try:
        assembly.require_allowed(plan)
    except GuardRefusal as refusal:
        guard = str(refusal)
    return DryRun(checked, moved, guard)


def as_dict(plan: ActionPlan, found: DryRun) -> dict[str, Any]:
    """Return what a dry run found as a mapping, for JSON."""
    return {
        "uuid": plan.uuid,
        "name": plan.name,
        "cloud": plan_cloud.name_of(plan),
        "refused": found.is_refused,
        "guard": found.guard,
        "moved": None if found.moved is None else list(found.moved),
        "actions": [
            {
                "uuid": one.action.uuid,
                "name": one.action.name,
                "found": str(one.found),
                "why": one.why,
            }
            for one in found.checked
        ],
    }


def _with_room(one: Prechecked, facts: Facts) -> Prechecked:
    """Return the result, REFUSED if the flavor of an action is larger than every host.

    Disks do not count: an instance on a volume needs none of its host.

    >>> facts = {"hosts": {"a": {"vcpus": 8}}, "flavors": {"m1.huge": {"vcpus": 64}}}
    >>> grow = Action(uuid="u", action_type="resize", input_parameters={"flavor": "m1.huge"})
    >>> _with_room(Prechecked(grow, Precheck.TO_DO), facts).why
    'no host is large enough for m1.huge: it has 64 vcpus, and the largest host 8'
    """
    parameters = one.action.input_parameters
    name = size_of(parameters) or definition(parameters).get("flavor")
    flavor, hosts = (facts.get("flavors") or {}).get(name), (facts.get("hosts") or {}).values()
    if one.found not in (Precheck.TO_DO, Precheck.LATER) or not flavor or not hosts:
        return one
    for room in ("vcpus", "ram_mb"):
        known = [host[room] for host in hosts if room in host]
        if known and room in flavor and flavor[room] > max(known):
            why = f"no host is large enough for {name}: it has {flavor[room]} {room}, and the "
            return one._replace(found=Precheck.REFUSED, why=f"{why}largest host {max(known)}")
    return one
