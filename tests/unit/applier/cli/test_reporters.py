# SPDX-License-Identifier: Apache-2.0
"""What people read: the foot of a plan, lines and block while it runs, the recap."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console
from rich.live import Live

from applier.cli import action_views
from applier.cli.apply import question
from applier.cli.reporters import plan_table, progress_block, recap
from applier.cli.reporters.progress_block import ProgressBlock
from applier.cli.reporters.progress_lines import ProgressLines
from applier.cli.terminal import lasting
from applier.contracts import Report
from applier.operations.last_run import next_steps
from applier.run.plan_cloud import overview
from applier.wording import duration, one_line
from planner.plan import graph
from planner.plan.model import JOIN, Action, ActionPlan, Trigger
from planner.plan.states import ActionState, Outcome, PlanState

S = ActionState


def action(name: str, *tokens: str, **fields: object) -> Action:
    """Make an action whose uuid is its name."""
    return Action(uuid=name, name=name, action_type="nop", tokens=tokens, **fields)  # type: ignore[arg-type]


def plan(*actions: Action, **fields: object) -> ActionPlan:
    """Make a plan of actions."""
    return ActionPlan(uuid="12345678-9", planner="weight", actions=actions, **fields)  # type: ignore[arg-type]


def shown(made: ActionPlan, **options: object) -> str:
    """Write a plan as text."""
    out = io.StringIO()
    plan_table.show(made, out, **options)  # type: ignore[arg-type]
    return out.getvalue()


def test_the_foot_counts_what_a_plan_touches_and_what_bounds_it() -> None:
    made = plan(
        action("a", "node:h1", "instance:i1", estimate_s=60.0),
        action("b", "node:h1", "node:h2", "volume:v", estimate_s=15.0, parents=("a",)),
        limits={"node:*": 2},
    )
    size, touched = plan_table.footer(made, overview(made, graph.waves(made.actions)), 4)
    for fact in ("2 actions in 2 waves", "widest of 1", "1m15s"):
        assert fact in size
    for fact in ("2 hosts, 1 instance, 1 volume", "at most 4", "node:* 2"):
        assert fact in touched


def test_joins_without_names_are_looked_through_wherever_needs_are_written() -> None:
    joins = (
        Action(uuid="ed33f458-1", action_type=JOIN, needs=("a", "b"), parents=("z",)),
        Action(uuid="0f0f0f0f-2", action_type=JOIN, needs=("ed33f458-1",)),
    )
    last = action("c", needs=("0f0f0f0f-2",), parents=("y", "0f0f0f0f-2"))
    made = plan(action("y"), action("z"), action("a"), action("b"), *joins, last)
    assert "nop   a b\n" in shown(made)
    told = "\n".join(action_views.described(made, last, [], 100))
    assert "a (PENDING), b (PENDING)\n" in told
    assert "y (PENDING), z (PENDING)\n" in told + "\n"
    assert not {"ed33f458", "0f0f0f0f"} & set(re.findall(r"\w{8}", shown(made) + told))


def test_without_all_estimates_no_total_is_given() -> None:
    made = plan(action("a", estimate_s=60.0), action("b"))
    size, touched = plan_table.footer(made, overview(made, graph.waves(made.actions)), None)
    assert size == "2 actions in 1 wave, the widest of 2."
    assert "no host" in touched


def test_a_long_plan_is_shown_by_wave_unless_all_is_asked_for() -> None:
    for rows in (60, 61):
        made = plan(*(action(f"a{i}") for i in range(rows)))
        assert ("a59" in shown(made)) is (rows == 60)
        assert "a59" in shown(made, whole=True)
        assert (f"{rows} x nop" in shown(made)) is (rows == 61)


def test_once_begun_a_plan_shows_states_instead_of_reasons() -> None:
    before, after = action("a", reason="weight 9"), action("b", reason="weight 8")
    assert "weight 8" in shown(plan(before, after))
    text = shown(plan(replace(before, state=S.SUCCEEDED), after))
    assert "weight 8" not in text
    assert "PENDING" in text


def test_a_plan_without_reasons_has_no_column_for_them() -> None:
    assert "why here" in shown(plan(action("a", reason="weight 9"), action("b")))
    assert "why here" not in shown(plan(action("a"), action("b")))


def test_names_are_text_and_nothing_else() -> None:
    text = shown(plan(action("[bold]a[/b]\x1b[2J\nb"), name="[/x]", status_message="[red]"))
    assert "[bold]a[/b]\\x1b[2J b" in text
    assert "[/x]" in text
    assert "\n[red]\n" in text


def test_the_question_counts_what_is_left() -> None:
    made = plan(action("a", "node:h1", state=S.SUCCEEDED), action("b", "node:h2", "instance:i"))
    for fact in ("remaining 1 action", "1 host (h2)", "1 instance", "at most 1", "simulated"):
        assert fact in question(made, 4)
    assert question(plan(action("a")), 4).startswith("Apply 1 action, ")


def recapped(made: ActionPlan) -> list[str]:
    """Write a recap as lines."""
    out = io.StringIO()
    recap.show(made, 75.0, out)
    return out.getvalue().splitlines()


def test_the_recap_counts_by_host_and_type() -> None:
    made = plan(
        action("a", "node:h1", state=S.SUCCEEDED, outcome=Outcome.CHANGED),
        action("b", "node:h1", "node:h2", state=S.SKIPPED, outcome=Outcome.OK),
        action("c", "node:h2", state=S.SKIPPED),
        action("d", "node:h2", state=S.FAILED, status_message="no room"),
        action("e", state=S.FAILED_DEPENDENCIES, status_message="needs d"),
        state=PlanState.FAILED,
        name="web",
    )
    lines = recapped(made)
    assert lines[0] == "RECAP web 12345678  FAILED  took 1m15s"
    counts = {line.split()[0]: line.split()[-5:] for line in lines if line[-1:].isdigit()}
    assert counts["h1"] == ["1", "1", "0", "0", "0"]
    assert counts["h2"] == ["0", "1", "1", "1", "0"]
    assert counts["nop"] == counts["all"] == ["1", "1", "1", "1", "1"]
    assert lines[-3:] == [
        "Not done:",
        "  FAILED               d: no room",
        "  FAILED_DEPENDENCIES  e: needs d",
    ]


def test_the_recap_counts_what_is_in_doubt_apart_if_anything_is() -> None:
    failed = action("a", "node:h1", state=S.FAILED, status_message="no room")
    unsure = action("b", "node:h2", state=S.UNKNOWN, status_message="it was cut off")
    assert not any("in doubt" in line for line in recapped(plan(failed)))
    lines = recapped(plan(action("c", state=S.CANCELLED), failed, unsure))
    assert lines[2].split()[-5:] == ["failed", "in", "doubt", "not", "run"]
    counts = {line.split()[0]: line.split()[-6:] for line in lines if line[-1:].isdigit()}
    assert counts["h1"] == ["0", "0", "0", "1", "0", "0"]
    assert counts["h2"] == ["0", "0", "0", "0", "1", "0"]
    assert counts["all"] == ["0", "0", "0", "1", "1", "1"]
    assert [line.split()[0] for line in lines[-3:]] == ["FAILED", "UNKNOWN", "CANCELLED"]


def test_of_many_hosts_only_those_where_something_went_wrong_are_shown() -> None:
    well = (action(f"a{i}", f"node:h{i}", state=S.SUCCEEDED) for i in range(30))
    bad = action("bad", "node:odd", state=S.FAILED, status_message="x")
    lines = recapped(plan(*well, bad))
    assert any(line.startswith("odd ") for line in lines)
    assert "30 more hosts" in lines
    assert not any(line.startswith("h1 ") for line in lines)


def test_of_very_much_that_was_not_done_the_failures_come_first() -> None:
    late = (action(f"n{i}", state=S.CANCELLED, status_message=f"{i}") for i in range(25))
    lines = recap.not_done([*late, action("bad", state=S.FAILED, status_message="x")])
    assert lines[1] == "  FAILED               bad: x"
    assert lines[-1] == "  and 6 more (actionplan action list)"


def test_what_holds_for_several_actions_is_told_once() -> None:
    lost = [action(f"{i}/net", state=S.FAILED, status_message="no route") for i in range(16)]
    other = action("17/net", state=S.FAILED, status_message="no power")
    assert recap.not_done([*lost, other])[1:] == [
        "  FAILED               16 actions (0/net, 1/net, 2/net, +13): no route",
        "  FAILED               17/net: no power",
    ]


def test_what_ran_until_a_cancel_is_not_counted_as_not_run() -> None:
    killed = action("a", state=S.CANCELLED, started_at=datetime(2026, 1, 2, tzinfo=UTC))
    lines = recapped(plan(killed, action("b", state=S.CANCELLED)))
    (heads,) = (line.split() for line in lines if "stopped" in line)
    (counts,) = (line.split() for line in lines if line.startswith("all 2"))
    assert heads[-3:] == ["stopped", "not", "run"]
    assert counts[-2:] == ["1", "1"]


def test_a_move_that_was_not_needed_is_not_counted_under_its_destination() -> None:
    moved = {"source_node": "c1", "destination_node": "c2"}
    there = action(
        "a", "node:c1", "node:c2", state=S.SKIPPED, outcome=Outcome.OK, input_parameters=moved
    )
    lines = recapped(plan(there))
    assert [line.split()[0] for line in lines if line.startswith("c")] == ["c1"]


def test_what_a_pause_left_over_is_named_as_such() -> None:
    lines = recap.not_done([action(f"a{i}") for i in range(10)])
    assert [line.split()[-3:] for line in lines] == [["a6,", "a7,", "+2"]]


def test_the_end_says_how_to_go_on() -> None:
    for state, command in (
        (PlanState.PAUSED, "actionplan apply 12345678"),
        (PlanState.FAILED, "actionplan action list 12345678 --state FAILED"),
        (PlanState.SUCCEEDED, ""),
    ):
        text = "\n".join(next_steps(plan(action("a"), state=state)))
        assert command in text
        assert bool(text) is bool(command)


def test_a_plan_that_pauses_at_a_failure_says_how_to_try_it_again() -> None:
    failed = action("a", state=ActionState.FAILED)
    lines = next_steps(plan(failed, action("b"), state=PlanState.PAUSED))
    assert [line.partition(": ")[2] for line in lines] == [
        "actionplan apply 12345678",
        "actionplan stop 12345678 --cancel",
    ]


def test_what_is_in_doubt_is_to_be_settled_first() -> None:
    unsure = action("a", state=ActionState.UNKNOWN)
    first, look, *_ = next_steps(plan(unsure, state=PlanState.FAILED))
    assert "actionplan action set 12345678 a --state" in first
    assert look.endswith("--state UNKNOWN")


def test_the_list_to_look_at_is_not_empty() -> None:
    aborted = action("a", state=ActionState.CANCELLED)
    look, _ = next_steps(plan(aborted, state=PlanState.FAILED))
    assert look.endswith("--state CANCELLED")


def clock(*seconds: float) -> Iterator[float]:
    """Return the times at which a reporter looks."""
    yield from seconds


def test_lines_tell_starts_and_ends_with_their_place() -> None:
    out, times = io.StringIO(), clock(0, 0, 1, 61.5, 62)
    lines = ProgressLines(plan(action("a"), action("b")), out, clock=lambda: next(times))
    lines.on_plan(PlanState.ONGOING, None)
    lines.on_reports([Report(uuid="a", old=S.PENDING, state=S.ONGOING)])
    lines.on_reports([Report(uuid="a", old=S.ONGOING, state=S.FAILED, message="no\nroom")])
    lines.on_plan(PlanState.FAILED, "1 failed")
    assert out.getvalue().splitlines() == [
        "  0:00  plan ONGOING",
        "  0:01  start      a  nop",
        "  1:01  FAILED [1/2] a: no room",
        "  1:02  plan FAILED: 1 failed",
    ]


def test_a_try_in_vain_is_no_end() -> None:
    out = io.StringIO()
    lines = ProgressLines(plan(action("a")), out, clock=lambda: 0.0)
    again = Report(uuid="a", old=S.ONGOING, state=S.PENDING, message="no\nroom")
    lines.on_reports([again])
    lines.on_reports([Report(uuid="a", old=S.ONGOING, state=S.SUCCEEDED)])
    assert out.getvalue().splitlines() == [
        "  0:00  retry: a: no room",
        "  0:00  SUCCEEDED [1/1] a",
    ]


def test_what_was_in_doubt_and_runs_again_has_not_ended() -> None:
    out = io.StringIO()
    doubt = plan(action("a", state=S.UNKNOWN))
    lines, block = (
        ProgressLines(doubt, out, clock=lambda: 0.0),
        ProgressBlock(doubt, out, clock=lambda: 0.0),
    )
    assert "1/1 ended" in drawn(block)
    again = [Report(uuid="a", old=S.UNKNOWN, state=S.PENDING, message="verified: not done")]
    for watcher in (lines, block):
        watcher.on_reports(again)
    assert "0/1 ended" in drawn(block)
    assert "retry: a: verified: not done" in drawn(block)
    done = [Report(uuid="a", old=S.ONGOING, state=S.SUCCEEDED)]
    for watcher in (lines, block):
        watcher.on_reports(done)
    assert "1/1 ended" in drawn(block)
    assert "retry:" not in drawn(block)
    assert out.getvalue().splitlines()[-1] == "  0:00  SUCCEEDED [1/1] a"


def test_what_began_before_somebody_watched_is_counted_from_its_start() -> None:
    began = datetime(2026, 11, 23, 9, tzinfo=UTC)
    ended = action("a", state=S.SUCCEEDED, started_at=began)
    runs = action("b", state=S.ONGOING, started_at=began + timedelta(seconds=50))
    at, out = began + timedelta(seconds=80), io.StringIO()
    given = {"clock": lambda: 7.0, "at": at, "first": began}
    block = ProgressBlock(plan(ended, runs), io.StringIO(), **given)
    lines = ProgressLines(plan(ended, runs), out, **given)
    for shown in (block, lines):
        shown.on_reports([Report(uuid="b", old=S.PENDING, state=S.ONGOING)])
    assert "elapsed 1:20" in drawn(block)
    assert "running 30s  b" in drawn(block)
    assert out.getvalue().splitlines() == ["  1:20  start      b  nop"]
    early = ProgressBlock(plan(ended), io.StringIO(), **{**given, "at": began - timedelta(1)})
    assert "elapsed 0:00" in drawn(early)


def test_ctrl_c_before_the_block_has_begun_leaves_the_terminal_as_it_was(monkeypatch) -> None:
    echo, out = [], io.StringIO()

    @contextmanager
    def unechoed() -> Iterator[None]:
        echo.append("off")
        try:
            yield
        finally:
            echo.append("on")

    begin = Live.start

    def start(live: Live) -> None:
        begin(live)
        raise KeyboardInterrupt

    monkeypatch.setattr(progress_block, "unechoed", unechoed)
    monkeypatch.setattr(Live, "start", start)
    with pytest.raises(KeyboardInterrupt), ProgressBlock(plan(action("a")), out):
        pass
    assert echo == ["off", "on"]


def test_what_an_earlier_run_has_begun_runs_from_the_begin_of_this_one() -> None:
    """Its command may go on for hours, and nothing else starts before its end."""
    began = datetime(2026, 11, 23, 9, tzinfo=UTC)
    made = plan(action("a", state=S.ONGOING, started_at=began), action("b"))
    out, seconds = io.StringIO(), [5.0]
    given = {"clock": lambda: seconds[0], "at": began + timedelta(seconds=30)}
    block, lines = ProgressBlock(made, io.StringIO(), **given), ProgressLines(made, out, **given)
    for passed, reports in (
        (7.0, []),
        (67.0, [Report(uuid="a", old=S.ONGOING, state=S.SUCCEEDED)]),
        (68.0, [Report(uuid="b", old=S.PENDING, state=S.ONGOING)]),
    ):
        seconds[0] = passed
        for shown in (block, lines):
            if reports:
                shown.on_reports(reports)
            else:
                shown.on_plan(PlanState.ONGOING, None)
        if not reports:
            assert "running 30s  a" in drawn(block)
            assert "running 1  elapsed 0:00" in drawn(block)
    assert "running 1  changed 1  elapsed 1:01" in drawn(block)
    assert out.getvalue().splitlines() == [
        "  0:00  plan ONGOING",
        "  0:00  taken over a  nop",
        "  1:00  SUCCEEDED [1/2] a",
        "  1:01  start      b  nop",
    ]


def test_the_clock_counts_from_the_beginning_of_the_run_and_never_goes_back() -> None:
    out, times = io.StringIO(), clock(0, 0, 40, 41, 45)
    at = datetime(2026, 11, 23, 9, tzinfo=UTC)
    lines = ProgressLines(plan(action("a")), out, clock=lambda: next(times), at=at)
    lines.on_plan(PlanState.PENDING, None)
    lines.on_plan(PlanState.ONGOING, None)
    lines.on_reports([Report(uuid="a", old=S.PENDING, state=S.ONGOING)])
    lines.on_reports([Report(uuid="a", old=S.ONGOING, state=S.SUCCEEDED)])
    assert [line.split()[0] for line in out.getvalue().splitlines()] == [
        "0:00",
        "0:00",
        "0:01",
        "0:05",
    ]


def drawn(block: ProgressBlock, width: int = 80) -> str:
    """Draw a block once."""
    out = Console(file=io.StringIO(), width=width)
    with out.capture() as text:
        out.print(block.render())
    return text.get()


def test_the_block_shows_what_runs_what_failed_and_what_was_asked_for() -> None:
    made = plan(*(action(f"a{i}") for i in range(20)))
    block = ProgressBlock(made, io.StringIO(), clock=lambda: 0.0)
    starts = [Report(uuid=a.uuid, old=S.PENDING, state=S.ONGOING) for a in made.actions]
    block.on_reports(starts[:15])
    block.on_reports([Report(uuid="a0", old=S.ONGOING, state=S.FAILED, message="no room " * 30)])
    block.tell("SIGINT: pausing")
    text = drawn(block)
    for fact in ("1/20 ended", "running 14", "failed 1", "elapsed 0:00", "simulated"):
        assert fact in text
    assert "FAILED  a0: no room" in text
    assert "running 0s  a12  nop" in text
    assert "and 2 more" in text
    assert "SIGINT: pausing" in text
    assert max(map(len, text.splitlines())) <= 80
    assert len(text.splitlines()) == 16


class Hung(io.StringIO):
    """A terminal that has gone away."""

    def write(self, _: str) -> int:
        """Fail as such a terminal does."""
        raise OSError(5, "Input/output error")

    def flush(self) -> None:
        """Fail in the same way."""
        raise OSError(5, "Input/output error")


def test_a_stream_that_fails_is_written_to_in_peace() -> None:
    stream = lasting(Hung())
    assert stream.write("lost") == 4
    stream.flush()
    plan_table.show(plan(action("a")), stream)
    recap.show(plan(action("a")), 1.0, stream)


def test_durations_round_to_the_next_unit() -> None:
    texts = {None: "-", 0.04: "0.0s", 59.6: "1m00s", 60: "1m00s", 3599.9: "1h00m"}
    assert {seconds: duration(seconds) for seconds in texts} == texts


def test_letters_of_any_script_stay() -> None:
    assert one_line("aß漢\N{SNOWMAN}éb") == "aß漢\N{SNOWMAN}éb"


def test_what_a_plan_brings_stands_above_it() -> None:
    made = plan(
        action("a"),
        efficacy_indicators=(
            {"name": "web", "description": "web: in one batch", "value": {"peak": 3}},
            {"name": "hosts", "description": "Hosts released:", "value": 2, "unit": "hosts"},
            {"name": "share", "description": "Released", "value": 50, "unit": None},
            {"name": "no words", "value": 1},
            "anything",
        ),
        global_efficacy=({"description": "In all:\n fine"},),
    )
    assert shown(made).splitlines()[2:6] == [
        "web: in one batch",
        "Hosts released: 2 hosts",
        "Released 50",
        "In all: fine",
    ]


def test_what_starts_is_told_with_what_set_it_off_also_after_a_resume() -> None:
    asked = (Outcome.CHANGED, Outcome.CREATED)
    made = plan(
        action("config", state=S.SUCCEEDED, outcome=Outcome.CREATED),
        action("keys"),
        action("plain", needs=("keys",)),
        action("reload", triggers=(Trigger("config", asked), Trigger("keys", asked))),
    )
    out = io.StringIO()
    lines, block = (
        ProgressLines(made, out, clock=lambda: 0.0),
        ProgressBlock(made, io.StringIO(), lambda: 0.0),
    )
    ended = Report(uuid="keys", old=S.ONGOING, state=S.SUCCEEDED, outcome=Outcome.OK)
    starts = [Report(uuid=name, old=S.PENDING, state=S.ONGOING) for name in ("plain", "reload")]
    for watcher in (lines, block):
        watcher.on_reports([ended, *starts])
    told, why = out.getvalue().splitlines(), "reload  because config was created  nop"
    assert told[1:] == [
        "  0:00  start      plain  nop",
        f"  0:00  start      {why}",
    ]
    assert f"running 0s  {why}" in drawn(block)
