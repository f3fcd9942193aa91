# SPDX-License-Identifier: Apache-2.0
"""The planner of playbooks: plays in order, cut into calls of Ansible for one host or for several.

What Ansible keeps to itself within a play stays in one call: handlers, registered variables, facts.
Between calls, the plan says what Ansible would: plays and batches come in order, a host that failed
is left out of later plays, and a batch of which too many hosts failed ends the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from planner.contract import Options, Planner
from planner.errors import InvalidInput, Mistake, shown
from planner.plan.extent import listed
from planner.plan.model import JOIN, Action, ActionPlan, ProposedAction
from planner.planners.draft import action_of, tokens
from planner.planners.playbook.plays import SCHEMA, Play, PlayReader
from planner.planners.solution import ActionReader

#: The action type of a call of Ansible.
ANSIBLE = "ansible"
#: How many hosts, tasks and handlers a description names.
_SHOWN = 8
#: Fields that become parameters of each call as they are.
_PARAMETERS = ("playbook", "inventory", "variables", "become", "forks", "vault_password")


class Call(NamedTuple):
    """A call of Ansible: a play on some hosts of a batch; ``why`` they are these."""

    play: Play
    batch: int
    hosts: tuple[str, ...]
    why: str


class Playbook(NamedTuple):
    """What a document asks for: ``stages`` are the calls of each batch, which come in order."""

    name: str | None
    stages: Sequence[Sequence[tuple[Call, ProposedAction]]]
    forks: int | None
    warnings: tuple[str, ...]


class PlaybookPlanner(Planner[Playbook]):
    """Runs the plays of a playbook of Ansible in order, batch by batch, on hosts of an inventory.

    A batch is one call of Ansible, unless its hosts are counted or go their own way: ``serial``,
    ``max_fail_percentage``, ``strategy: free`` and ``host_pinned`` give each host a call of its
    own. Tasks that look at other hosts, such as ``run_once``, keep a batch in one call.
    """

    NAME = "playbook"
    KIND = "playbook"
    SCHEMA = SCHEMA
    FILES = {"playbook": "plays"}
    PLAYBOOKS = ("playbook",)

    def parse(self, document: Mapping[str, Any]) -> Playbook:
        reader = PlayReader(document)
        read = [reader.read(i, entry) for i, entry in enumerate(document.get("plays", ()))]
        plays = [play for play in read if play is not None]
        if not plays and not reader.mistakes:
            reader.mistakes.append(Mistake("no task of a play is left for any host", ("plays",)))
        stages = [*_stages(plays)]
        raw = [_raw(call, document) for stage in stages for call in stage]
        actions = ActionReader(self.surroundings, {"actions": raw})
        made = iter([actions.action(i, one) for i, one in enumerate(raw)])
        mistakes = [*reader.mistakes, *_once(actions.mistakes)]
        if mistakes:
            raise InvalidInput(mistakes)
        warnings = map(self.surroundings.told, [*reader.warnings(), *_differences(stages)])
        return Playbook(
            document.get("name"),
            [[(call, next(made)) for call in stage] for stage in stages],
            document.get("forks"),
            tuple(dict.fromkeys((*warnings, *actions.warnings))),
        )

    def plan(self, problem: Playbook, options: Options) -> ActionPlan:  # noqa: ARG002
        """Return the plan: each stage needs the one before, each host the last call with it."""
        count = sum(len(stage) + 1 for stage in problem.stages)
        uuids = iter(self.surroundings.new_ids(count))
        actions: list[Action] = []
        tolerances: list[Mapping[str, Any]] = []
        last: dict[str, str] = {}
        before: tuple[str, ...] = ()
        for stage in problem.stages:
            made = []
            for call, proposed in stage:
                own = [last[host] for host in call.hosts if host in last]
                held = tokens(ANSIBLE, proposed.touches, *(f"node:{host}" for host in call.hosts))
                made.append(
                    action_of(
                        proposed,
                        next(uuids),
                        reason=self._reason(call),
                        description=_description(call),
                        needs=tuple(dict.fromkeys((*before, *own))),
                        tokens=held,
                    )
                )
            for (call, _), action in zip(stage, made, strict=True):
                last |= dict.fromkeys(call.hosts, action.uuid)
            actions += made
            ended = _ended(stage, made, next(uuids))
            actions += ended
            before = ((ended or made)[-1].uuid,)
            tolerances += _tolerance(stage)
        return self.surroundings.new_plan(
            self.NAME,
            actions,
            name=problem.name,
            limits={} if problem.forks is None else {f"type:{ANSIBLE}": problem.forks},
            tolerances=tolerances,
            warnings=problem.warnings,
        )

    def _reason(self, call: Call) -> str:
        play = call.play
        place = self.surroundings.locate(("plays", play.number))
        where = f" ({place.rpartition('/')[2]})" if place else ""
        batches = len(play.batches)
        batch = f", batch {call.batch + 1} of {batches}" if batches > 1 else ""
        return f"play {play.number + 1}{where}{batch}: {call.why}"


def _stages(plays: Sequence[Play]) -> Iterator[list[Call]]:
    """Yield the calls of each batch of each play.

    Hosts that may share a call do so only if they have shared all calls before: of those that have
    not, one may have failed alone.
    """
    shared: dict[str, int] = {}
    number = 0
    for play in plays:
        for batch, hosts in enumerate(play.batches):
            groups: dict[Any, list[str]] = {}
            if play.together:
                groups, why = {None: [*hosts]}, f"one call for all hosts ({play.together})"
            elif play.apart:
                groups = {host: [host] for host in hosts}
                why = f"a call for each host ({play.apart})"
            else:
                for host in hosts:
                    groups.setdefault(shared.get(host), []).append(host)
                why = "one call for all hosts"
                if len(groups) > 1:
                    why = "a call for all hosts that shared the calls before"
            calls = [Call(play, batch, tuple(members), why) for members in groups.values()]
            for call in calls:
                number += 1
                shared |= dict.fromkeys(call.hosts, number)
            yield calls


def _raw(call: Call, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call as an action of a document."""
    hosts, more = call.hosts, len(call.hosts) - 1
    parameters = {
        **{field: document[field] for field in _PARAMETERS if field in document},
        "play": call.play.number,
        "hosts": [*hosts],
    }
    for field in ("tags", "skip_tags"):
        if found := [t for text in listed(document.get(field)) for t in text.split(",")]:
            parameters[field] = found
    name = f"{call.play.name}/{hosts[0]}{f' and {more} more' if more else ''}"
    return {"name": name, "action_type": ANSIBLE, "input_parameters": parameters}


def _once(mistakes: Sequence[Mistake]) -> list[Mistake]:
    """Return the mistakes of parameters, each once, at the field of the document that has it."""
    return [*dict.fromkeys(m._replace(path=m.path[3:]) for m in mistakes)]


def _description(call: Call) -> str:
    """Return what a call does: the names of the first hosts, tasks and handlers."""
    play = call.play
    tasks = "; ".join(shown(play.tasks, _SHOWN) or ["no tasks"])
    handlers = f"; if notified: {'; '.join(shown(play.handlers, _SHOWN))}" if play.handlers else ""
    on = f"on {', '.join(shown(call.hosts, _SHOWN))}: " if len(call.hosts) > 1 else ""
    return f"{on}{tasks}{handlers}"


def _ended(
    stage: Sequence[tuple[Call, ProposedAction]], made: Sequence[Action], uuid: str
) -> list[Action]:
    """Return the join of the calls of a stage, which fails if the run is to end; none for one call.

    The run ends if no host of a batch is left, or if none may fail and one did.
    """
    if len(made) == 1:
        return []
    call, all_of = stage[0][0], tuple(action.uuid for action in made)
    number = f" (batch {call.batch + 1})" if len(call.play.batches) > 1 else ""
    join = Action(
        uuid=uuid,
        action_type=JOIN,
        name=f"{call.play.name}/ended{number}",
        reason="all hosts have ended the play, and enough of them ended it well",
        parents=all_of,
        needs_any=(all_of,),
    )
    if call.play.tolerated[call.batch] == 0:
        return [replace(join, parents=(), needs_any=(), needs=all_of)]
    return [join]


def _tolerance(stage: Sequence[tuple[Call, ProposedAction]]) -> Iterator[dict[str, Any]]:
    """Yield how many hosts of a batch may fail if it is some, and not all."""
    play, batch = stage[0][0].play, stage[0][0].batch
    hosts, most = play.batches[batch], play.tolerated[batch]
    if 0 < most < len(hosts) - 1 and len(stage) > 1:
        number = f", batch {batch + 1}" if len(play.batches) > 1 else ""
        yield {"name": f"{play.name}{number}", "nodes": [*hosts], "failed_nodes": most}


def _differences(stages: Sequence[Sequence[Call]]) -> Iterator[Mistake]:
    """Yield what goes otherwise than in Ansible, each kind once, at the first play that has it."""
    texts: dict[str, Call] = {}
    for stage in stages:
        call = stage[0]
        play, hosts = call.play, call.play.batches[call.batch]
        if any(len(one.hosts) > 1 for one in stage):
            text = (
                "if a host fails in a call of several, all of them wait for a resume before what "
                "comes after; Ansible goes on with the others"
            )
            texts.setdefault(text, call)
        elif len(hosts) > 1 and not play.apart.startswith("strategy"):
            text = "with a call for each host, no host waits for others at each task"
            texts.setdefault(text, call)
            if play.tolerated[call.batch] == 0:
                text = (
                    "when a host fails that may not, the others of its batch end the play, and "
                    "nothing more starts; Ansible stops them at the next task"
                )
                texts.setdefault(text, call)
    for text, call in texts.items():
        yield Mistake(text, ("plays", call.play.number))
