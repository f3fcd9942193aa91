# SPDX-License-Identifier: Apache-2.0
"""A run as a trace: its spans, how they nest, when they begin and end, and what they tell."""

from __future__ import annotations

from functools import partial
from itertools import count

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from random_plans import carry_out, random_fate, random_plan
from trials import Trial, changed

from applier.contracts import Report
from applier.engines.taskflow_engine import TaskFlowEngine
from applier.errors import ActionFailed, StoreError
from applier.monitoring.traces import TracedRun
from planner.plan.model import JOIN, Action, ActionPlan
from planner.plan.states import OPEN, ActionState, Outcome, PlanState


class Recorded:
    """Runs plans, and keeps the spans that ended."""

    def __init__(self, open_trial) -> None:
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.listener_of = partial(
            TracedRun, provider.get_tracer("test"), clock=count(1000).__next__
        )
        self._open = open_trial

    def trial(self, plan, work=changed, **options) -> Trial:
        """Return a trial of a plan that is traced."""
        engine = TaskFlowEngine(max_workers=2)
        return self._open(
            plan, engine, work, max_workers=2, listener_of=self.listener_of, **options
        )

    def spans(self, kind):
        """Return the spans of plans, actions or attempts, in the order of their ends."""
        ended = self.exporter.get_finished_spans()
        return [span for span in ended if span.name.split()[0] == kind]

    def actions(self):
        """Return the spans of actions by the name of their action."""
        return {told(span, "action")["name"]: span for span in self.spans("action")}


def told(span, what):
    """Return the attributes of a span by the last part of their names."""
    start = f"actionplan.{what}."
    assert all(name.startswith(start) for name in span.attributes)
    return {name.removeprefix(start): value for name, value in span.attributes.items()}


@pytest.fixture
def recorded(open_trial):
    """Return what runs plans and keeps their spans."""
    return Recorded(open_trial)


def nop(uuid: str, **fields) -> Action:
    return Action(uuid=uuid, name=f"the {uuid}", **{"action_type": "nop", **fields})


def plan_of(*actions: Action, **fields) -> ActionPlan:
    given = {"uuid": "plan", "planner": "test", "state": PlanState.PENDING, **fields}
    return ActionPlan(actions=actions, **given)


def failing(times: int):
    """Return work that fails this often, and then changes something."""
    left = iter(range(times))

    def work(_parameters, _context, _stop):
        if next(left, None) is not None:
            raise ActionFailed("no host takes it")
        return Outcome.CHANGED

    return work


def test_a_plan_that_succeeds_tells_what_it_is(recorded):
    actions = nop("a", tokens=("node:n1", "instance:i1")), nop("b", needs=("a",))
    recorded.trial(plan_of(*actions, name="night", cloud="simulated")).run()
    (plan,) = recorded.spans("plan")
    assert told(plan, "plan") == {
        "uuid": "plan",
        "name": "night",
        "planner": "test",
        "cloud": "simulated",
        "state": "SUCCEEDED",
        "actions": 2,
        "message": "2 succeeded",
    }
    first = recorded.actions()["the a"]
    assert first.name == "action nop"
    assert told(first, "action") == {
        "uuid": "a",
        "name": "the a",
        "type": "nop",
        "tokens": ("node:n1", "instance:i1"),
        "state": "SUCCEEDED",
        "outcome": "changed",
    }
    assert {span.status.status_code for span in recorded.exporter.get_finished_spans()} == {
        StatusCode.UNSET
    }


def test_a_retry_is_an_attempt_of_its_own_in_its_action_and_that_in_its_plan(recorded):
    recorded.trial(plan_of(nop("a", retries=1)), failing(1)).run()
    (plan,), (action,) = recorded.spans("plan"), recorded.spans("action")
    first, second = recorded.spans("attempt")
    assert plan.parent is None
    assert action.parent.span_id == plan.context.span_id
    assert {s.parent.span_id for s in (first, second)} == {action.context.span_id}
    times = [plan.start_time, action.start_time, first.start_time, first.end_time]
    times += [second.start_time, second.end_time, action.end_time, plan.end_time]
    assert times == sorted(times)
    assert (action.start_time, action.end_time) == (first.start_time, second.end_time)
    assert told(first, "attempt") == {"number": 1, "state": "FAILED", "outcome": "failed"}
    assert first.status.status_code is StatusCode.ERROR
    assert first.status.description == "no host takes it; retry in 0 s"
    assert told(second, "attempt") == {"number": 2, "state": "SUCCEEDED", "outcome": "changed"}
    assert recorded.spans("action")[0].status.status_code is StatusCode.UNSET


def test_a_message_is_told_as_it_is_recorded(recorded):
    """With a lone surrogate, none of its batch could be sent."""

    def work(_parameters, _context, _stop):
        raise ActionFailed("caf\udce9\0")

    one = recorded.trial(plan_of(nop("a")), work)
    one.run()
    (action,), (kept,) = recorded.spans("action"), one.plan().actions
    assert told(action, "action")["message"] == kept.status_message == "caf?\ufffd"
    assert encode_spans(recorded.exporter.get_finished_spans()).ByteSize()


def test_a_link_names_the_action_that_ended_last_before(recorded):
    """Also through a join, which has no span."""
    join = Action(uuid="j", action_type=JOIN, parents=("a", "b"))
    late = nop("b", parents=("a",))
    recorded.trial(plan_of(nop("a"), late, join, nop("c", parents=("j",)))).run()
    actions = recorded.actions()
    assert len(recorded.spans("action")) == 3
    assert actions["the a"].links == ()
    for name, before in (("the b", "the a"), ("the c", "the b")):
        (link,) = actions[name].links
        assert link.context.span_id == actions[before].context.span_id


def test_a_run_that_breaks_off_ends_its_spans_as_errors(recorded):
    one = recorded.trial(plan_of(nop("a")))
    commit = one.store.commit

    def away(uuid, claim, reports, *, now):
        if any(report.state is ActionState.SUCCEEDED for report in reports):
            raise StoreError("connection refused")
        commit(uuid, claim, reports, now=now)

    one.store.commit = away
    with pytest.raises(StoreError):
        one.run()
    ended = recorded.exporter.get_finished_spans()
    assert [span.name for span in ended] == ["attempt", "action nop", "plan"]
    assert {span.status.description for span in ended} == {"the run broke off: StoreError"}
    assert told(ended[1], "action")["state"] == told(ended[2], "plan")["state"] == "ONGOING"


def test_what_waits_for_its_next_attempt_is_left_to_the_next_run(recorded):
    """The next run is a trace of its own, and goes on with the numbers of the attempts."""
    one = recorded.trial(plan_of(nop("a", retries=1)))
    with recorded.listener_of(one.plan()) as run:
        begun = Report(uuid="a", old=ActionState.PENDING, state=ActionState.ONGOING)
        run.on_plan(PlanState.ONGOING, None)
        run.on_reports([begun])
        run.on_reports([Report(uuid="a", old=ActionState.ONGOING, state=ActionState.PENDING)])
        run.on_plan(PlanState.PAUSED, "paused by ann")
    attempt, action, plan = recorded.exporter.get_finished_spans()
    assert told(action, "action")["state"] == "PENDING"
    assert action.end_time == plan.end_time
    assert {s.status.status_code for s in (action, plan)} == {StatusCode.UNSET}
    assert attempt.status.status_code is StatusCode.ERROR


def test_an_attempt_that_was_found_again_keeps_its_number(recorded):
    found = nop("a", state=ActionState.UNKNOWN, attempts=2)
    with recorded.listener_of(plan_of(found)) as run:
        run.on_reports([Report(uuid="a", old=ActionState.UNKNOWN, state=ActionState.ONGOING)])
    (attempt,) = recorded.spans("attempt")
    assert told(attempt, "attempt")["number"] == 2


def test_work_that_was_found_undone_has_no_span_until_it_starts(recorded):
    found = nop("a", state=ActionState.UNKNOWN, attempts=1)
    with recorded.listener_of(plan_of(found)) as run:
        run.on_reports([Report(uuid="a", old=ActionState.UNKNOWN, state=ActionState.PENDING)])
        assert recorded.exporter.get_finished_spans() == ()
    assert [span.name for span in recorded.exporter.get_finished_spans()] == ["plan"]


@pytest.mark.parametrize("seed", range(8))
def test_the_spans_of_any_run_tell_what_the_record_says(recorded, seed):
    plan, fate = random_plan(seed), random_fate(seed, failing=0.2)
    one = recorded.trial(
        plan, lambda parameters, _context, _stop: carry_out(fate(parameters["uuid"]))
    )
    one.run()
    final = {a.uuid: a for a in one.plan().actions if a.action_type != JOIN}
    assert not any(a.state in OPEN for a in final.values())
    spans = {told(span, "action")["uuid"]: span for span in recorded.spans("action")}
    assert spans.keys() == final.keys()
    for uuid, action in final.items():
        facts = told(spans[uuid], "action")
        assert facts["state"] == action.state
        assert facts.get("outcome") == action.outcome
        assert facts.get("message") == action.status_message
        assert facts.get("reason") == action.state_reason
        failed = action.state is ActionState.FAILED
        assert (spans[uuid].status.status_code is StatusCode.ERROR) is failed
    attempts = [span.parent.span_id for span in recorded.spans("attempt")]
    for uuid, action in final.items():
        assert attempts.count(spans[uuid].context.span_id) == action.attempts
