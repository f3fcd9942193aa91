# SPDX-License-Identifier: Apache-2.0
"""What becomes of a subscription while events are delivered, with a receiver that may refuse."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from applier.delivery.progress import BatchProgress
from applier.delivery.receivers import Away, EventRefused
from applier.store.entries import EventPage, Subscription, Trouble

NOW = datetime(2026, 1, 2, tzinfo=UTC)
DAY = timedelta(days=1)


def event(number, plan="p", at=NOW):
    return {"number": number, "plan": plan, "at": at.isoformat()}


def page(*events, last=None):
    end = last or events[-1]["number"]
    return EventPage(events=events, last=end, deleted=0, newest=end)


class Answers:
    """A receiver that answers events by number; it notes those that it has accepted."""

    def __init__(self, **answers):
        self.answers = {int(k.removeprefix("n")): v for k, v in answers.items()}
        self.got = []

    def __call__(self, event):
        answer = self.answers.get(event["number"])
        if answer is not None:
            raise answer
        self.got.append(event["number"])


def progress(now=NOW, **fields):
    mine = Subscription(name="ops", until=None, **{"delivered": 0, **fields})
    return BatchProgress(mine, give_up=DAY, clock=lambda: now)


def never():
    return False


def test_a_refused_event_holds_back_its_plan_and_no_other():
    made, receiver = progress(), Answers(n1=EventRefused("400"))
    made.deliver_new(page(event(1), event(2, "q"), event(3)), receiver, never)
    assert receiver.got == [2]
    trouble = Trouble(number=1, since=NOW, tries=1, why="400")
    assert (made.subscription.delivered, made.subscription.held_back) == (3, {"p": trouble})


def test_an_event_that_is_refused_for_too_long_is_given_up_and_the_next_one_follows():
    held = {"p": Trouble(number=1, since=NOW, tries=9, why="400")}
    made = progress(NOW + DAY, delivered=3, held_back=held)
    receiver = Answers(n1=EventRefused("400"))
    made.deliver_held("p", [event(1), event(3)], receiver, never)
    assert receiver.got == [3]
    [dead] = made.dead
    assert (dead.event["number"], dead.why, dead.at) == (1, "400", NOW + DAY)
    assert made.subscription.held_back["p"].number == 4


def test_all_that_is_refused_for_too_long_is_given_up_together():
    """One clock for all events of a plan: not another day for each that follows."""
    refusals = Answers(**{f"n{number}": EventRefused("404") for number in range(1, 88)})
    all_of_it = [event(number) for number in range(1, 88)]
    now, dead = [NOW], []
    made = BatchProgress(progress().subscription, give_up=DAY, clock=lambda: now[0])
    made.deliver_new(page(*all_of_it), refusals, never)
    while made.subscription.held_back and now[0] < NOW + 5 * DAY:
        now[0] += timedelta(hours=1)
        mine = made.subscription
        made = BatchProgress(mine, give_up=DAY, clock=lambda: now[0])
        left = [e for e in all_of_it if e["number"] >= mine.held_back["p"].number]
        made.deliver_held("p", left, refusals, never)
        dead += [one.event["number"] for one in made.dead]
    assert dead == list(range(1, 88))
    assert now[0] == NOW + timedelta(hours=25), "then the plan is held back no more"


def test_a_receiver_that_accepts_again_has_a_whole_day_for_what_it_refuses_then():
    held = {"p": Trouble(number=1, since=NOW, tries=9, why="400")}
    made = progress(NOW + DAY - timedelta(hours=1), delivered=3, held_back=held)
    made.deliver_held("p", [event(1), event(3)], Answers(n3=EventRefused("400")), never)
    assert made.dead == []
    assert made.subscription.held_back["p"].since == NOW + DAY - timedelta(hours=1)


def test_a_receiver_that_is_away_gets_nothing_more_in_this_batch():
    held = {"q": Trouble(number=1, since=NOW, tries=1, why="400")}
    made = progress(delivered=1, held_back=held)
    receiver = Answers(n2=Away("no route"))
    made.deliver_new(page(event(2), event(3)), receiver, never)
    made.deliver_held("q", [event(1, "q")], receiver, never)
    assert receiver.got == []
    away = Trouble(number=2, since=NOW, tries=1, why="no route")
    assert (made.subscription.delivered, made.subscription.away) == (1, away)
    assert made.subscription.held_back == held


def test_each_event_has_its_own_time_before_it_is_given_up():
    away = Trouble(number=1, since=NOW - DAY, tries=7, why="no route")
    made = progress(away=away)
    old, young = event(1, at=NOW - 2 * DAY), event(2, at=NOW - DAY / 2)
    made.give_up_old([old, young], {})
    assert [dead.event["number"] for dead in made.dead] == [1]
    assert (made.subscription.delivered, made.subscription.away) == (1, away)


def test_what_was_refused_before_the_receiver_went_away_is_given_up_as_well():
    held = {"p": Trouble(number=2, since=NOW - DAY, tries=9, why="400")}
    away = Trouble(number=5, since=NOW - DAY / 2, tries=7, why="no route")
    made = progress(delivered=4, held_back=held, away=away)
    old = [event(number, at=NOW - 2 * DAY) for number in (2, 3)]
    made.give_up_old([], {"p": [*old, event(4, at=NOW - DAY / 2)]})
    assert [(dead.event["number"], dead.why) for dead in made.dead] == [
        (2, "no route"),
        (3, "no route"),
    ]
    assert made.subscription.held_back["p"] == Trouble(4, NOW - DAY, 0, "")
    assert made.subscription.delivered == 4


def test_nothing_is_given_up_at_the_first_failure_however_old_it_is():
    made = progress()
    old = event(1, at=NOW - 9 * DAY)
    made.deliver_new(page(old), Answers(n1=Away("no route")), never)
    made.give_up_old([old], {})
    assert (made.dead, made.subscription.delivered) == ([], 0)


def test_a_batch_that_takes_long_ends_early():
    made, receiver = progress(), Answers()
    made.deliver_new(page(event(1), event(2)), receiver, lambda: len(receiver.got) == 1)
    assert (receiver.got, made.subscription.delivered) == ([1], 1)


@given(
    plans=st.lists(st.sampled_from("pqr"), min_size=1, max_size=12),
    refusals=st.lists(st.sampled_from(["ok", "ok", "refused", "away"]), min_size=40, max_size=40),
)
def test_in_the_end_each_event_has_arrived_in_the_order_of_its_plan(plans, refusals):
    events = [event(number, plan) for number, plan in enumerate(plans, start=1)]
    answers, got = iter(refusals), []

    def deliver(one):
        answer = next(answers, "ok")
        if answer == "refused":
            raise EventRefused("400")
        if answer == "away":
            raise Away("no route")
        got.append(one)

    mine, rounds = Subscription(name="ops", until=None, delivered=0), 0
    while mine.delivered < len(events) or mine.held_back:
        made = BatchProgress(mine, give_up=DAY, clock=lambda: NOW)
        for plan, trouble in mine.held_back.items():
            left = [e for e in events[trouble.number - 1 : mine.delivered] if e["plan"] == plan]
            made.deliver_held(plan, left, deliver, never)
        new = events[mine.delivered : mine.delivered + 3]
        if new:
            made.deliver_new(page(*new), deliver, never)
        mine, rounds = made.subscription, rounds + 1
        assert rounds < 200
    by_plan = defaultdict(list)
    for one in got:
        by_plan[one["plan"]].append(one["number"])
    for plan, numbers in by_plan.items():
        assert numbers == [e["number"] for e in events if e["plan"] == plan]
    assert len(got) == len(events)
