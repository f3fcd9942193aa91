# SPDX-License-Identifier: Apache-2.0
"""The gates, also while limits change, against a reference that scans everything again."""

from __future__ import annotations

import random
from collections import Counter, deque

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from applier.scheduling.gates import PATIENCE, Gates

NEVER = 10**9
often = settings(max_examples=examples(200))
seeds = st.integers(0, 1_000_000)


class Rescanning:
    """What the gates are to do: start the first by rank, then by submission, that fits."""

    def __init__(self, limits: dict[str, int], max_workers: int) -> None:
        self.limit, self.idle = Gates(limits, max_workers).limit, max_workers
        self.held: Counter[str] = Counter()
        self.waiting: dict[str, tuple[int, int]] = {}
        self.tokens: dict[str, list[str]] = {}
        #: The actions that need no worker.
        self.workerless: set[str] = set()

    def submit(self, key: str, tokens: list[str], rank: int, *, worker: bool) -> None:
        self.waiting[key] = (rank, len(self.tokens))
        self.tokens[key] = tokens
        if not worker:
            self.workerless.add(key)

    def fits(self, key: str) -> bool:
        limits = ((token, self.limit(token)) for token in self.tokens[key])
        return all(limit is None or self.held[token] < limit for token, limit in limits)

    def take(self) -> str | None:
        for key in sorted(self.waiting, key=self.waiting.__getitem__):
            if self.fits(key) and (self.idle > 0 or key in self.workerless):
                self.start(key)
                return key
        return None

    def start(self, key: str) -> None:
        del self.waiting[key]
        self.idle -= key not in self.workerless
        self.held.update(self.tokens[key])

    def release(self, key: str) -> None:
        self.idle += key not in self.workerless
        self.held.subtract(self.tokens[key])

    def withdraw(self, key: str) -> None:
        del self.waiting[key]


def tokens_at_random(chance: random.Random) -> list[str]:
    kinds = [chance.choice(["type:a", "type:b", "type:free"]), "busy"]
    nodes = [f"node:{chance.randint(0, 4)}", f"node:{chance.randint(5, 8)}"]
    return [token for token in kinds + nodes if chance.random() < 0.6]


class Story:
    """The same events, at random, for the gates and for the reference."""

    def __init__(self, seed: int, patience: int) -> None:
        self.chance = random.Random(seed)
        self.limits = {"type:a": 2, "type:b": 1, "node:*": 1, "node:0": 2, "busy": 4}
        workers = self.chance.randint(1, 6)
        self.gates = Gates({**self.limits}, workers, patience=patience)
        self.reference = Rescanning({**self.limits}, workers)
        self.running: list[str] = []
        self.count = 0

    def submit(self) -> None:
        key, tokens = f"a{self.count}", tokens_at_random(self.chance)
        rank, worker = self.chance.randint(0, 3), self.chance.random() < 0.7
        self.gates.submit(key, tokens, rank, worker=worker)
        self.reference.submit(key, tokens, rank, worker=worker)
        self.count += 1

    def release(self) -> None:
        key = self.running.pop(self.chance.randrange(len(self.running)))
        self.gates.release(key)
        self.reference.release(key)

    def withdraw(self) -> None:
        key = self.chance.choice(sorted(self.reference.waiting))
        self.gates.withdraw(key)
        self.reference.withdraw(key)

    def events(self, number: int):
        """Make that many events, then end everything; after each, actions may be taken."""
        for _ in range(number):
            what = self.chance.random()
            if what < 0.45:
                self.submit()
            elif what < 0.9 and self.running:
                self.release()
            elif self.reference.waiting:
                self.withdraw()
            if self.chance.random() < 0.8:
                yield
        yield
        while self.running or self.reference.waiting:
            assert self.running, "something waits, and nothing runs that could free it: deadlock"
            self.release()
            yield


@often
@given(seeds)
def test_without_collecting_it_is_what_rescanning_gives_and_why_is_what_lacks(seed):
    story = Story(seed, patience=NEVER)
    for _ in story.events(200):
        while (expected := story.reference.take()) is not None:
            assert story.gates.take() == expected
            story.running.append(expected)
        assert story.gates.take() is None
        for key in story.reference.waiting:
            token = story.gates.why(key)
            if token is None:
                assert story.reference.fits(key)
                assert not story.gates.idle
            else:
                assert story.reference.held[token] == story.reference.limit(token)


@often
@given(seeds, st.sampled_from([1, 2, PATIENCE]))
def test_with_collecting_all_start_within_the_limits(seed, patience):
    story = Story(seed, patience)
    for _ in story.events(200):
        while (key := story.gates.take()) is not None:
            assert story.reference.fits(key), f"{key} started beyond a limit"
            story.reference.start(key)
            story.running.append(key)


@often
@given(seeds)
def test_what_fits_and_does_not_start_lacks_what_the_collector_keeps(seed):
    """Nobody else holds anything back: with a worker idle, all other free tokens are used."""
    story = Story(seed, patience=1)
    for _ in story.events(200):
        while (key := story.gates.take()) is not None:
            story.reference.start(key)
            story.running.append(key)
        fitting = [key for key in story.reference.waiting if story.reference.fits(key)]
        if story.reference.idle:
            kept = {story.gates.why(key) for key in fitting}
            assert None not in kept, "something fits, and nothing keeps it"
            assert len(kept) <= 3, "the collector keeps less than all of its four tokens"
        if len(story.reference.waiting) == 1:
            (token,) = {story.gates.why(key) for key in story.reference.waiting}
            alone = token is None or story.reference.held[token] == story.reference.limit(token)
            assert alone, "it lacks what it keeps itself"


def test_who_needs_no_worker_does_not_wait_for_one_behind_another_of_its_token():
    gates = Gates({"x": 1}, 1)
    gates.submit("holds x", ["x"], worker=False)
    gates.submit("works")
    assert [gates.take(), gates.take()] == ["holds x", "works"]
    gates.submit("wants both", ["x"], rank=0)
    gates.submit("wants x", ["x"], rank=1, worker=False)
    assert gates.take() is None
    gates.release("holds x")
    assert gates.take() == "wants x"


def test_an_action_of_two_tokens_is_not_starved_by_those_of_one():
    """It is first by rank, but whenever one of its tokens comes free, the other is held."""
    gates = Gates({"a": 1, "b": 1}, max_workers=3)
    running, started = deque[str](), []
    for number in range(20 * PATIENCE):
        gates.submit(f"a{number}", ["a"], rank=1)
        gates.submit(f"b{number}", ["b"], rank=1)
        while (key := gates.take()) is not None:
            running.append(key)
            started.append(key)
        if number == 0:
            gates.submit("both", ["a", "b"], rank=0)
        gates.release(running.popleft())
    assert PATIENCE // 2 < started.index("both") < 2 * PATIENCE


def test_the_tokens_of_a_collector_that_is_withdrawn_come_back():
    gates = Gates({"a": 1, "b": 1}, max_workers=3, patience=1)
    gates.submit("first", ["a"])
    assert gates.take() == "first"
    gates.submit("both", ["a", "b"], rank=1)
    assert gates.take() is None  # it has b now, and waits for a
    gates.submit("other", ["b"], rank=2)
    assert gates.take() is None
    assert gates.why("other") == "b"
    gates.withdraw("both")
    assert gates.take() == "other"


def test_an_action_that_is_submitted_again_after_it_was_withdrawn_starts_once():
    gates = Gates({}, max_workers=3)
    gates.submit("a")
    gates.withdraw("a")
    gates.submit("a")
    assert [gates.take(), gates.take()] == ["a", None]


def test_a_token_named_twice_is_held_once():
    gates = Gates({"a": 2}, max_workers=2)
    gates.submit("twice", ["a", "a"])
    gates.submit("once", ["a"])
    assert [gates.take(), gates.take()] == ["twice", "once"]


def test_who_has_collected_all_gets_the_next_worker():
    """It holds what others wait for, so nobody of a better rank goes first."""
    gates = Gates({"a": 1, "b": 1}, max_workers=2, patience=1)
    gates.submit("first", ["a"])
    assert gates.take() == "first"
    gates.submit("both", ["a", "b"], rank=9)
    assert gates.take() is None
    gates.submit("second")
    assert gates.take() == "second"
    gates.submit("third")
    gates.release("first")
    assert [gates.take(), gates.take()] == ["both", None]


LOADS = {
    "nothing limited": ({}, 4, lambda _i, _chance: ()),
    "one type, few at once": ({"type:a": 2}, 50, lambda _i, _chance: ("type:a",)),
    "migrations between hosts": (
        {"type:migrate": 20, "node:*": 1, "instance:*": 1},
        50,
        lambda i, chance: (
            "type:migrate",
            f"instance:{i}",
            f"node:{chance.randint(0, 99)}",
            f"node:{chance.randint(100, 199)}",
        ),
    ),
    "deployment: one task a node, 50 busy, 5 of an id": (
        {"node:*": 1, "busy": 50, "task:*": 5},
        200,
        lambda i, chance: (f"node:{chance.randint(0, 99)}", "busy", f"task:{i % 150}"),
    ),
    "every second on one node": (
        {"type:a": 2, "node:*": 1},
        50,
        lambda i, _chance: ("type:a", "node:0" if i % 2 else f"node:{i}"),
    ),
}


@pytest.mark.parametrize("load", LOADS)
def test_the_work_for_an_action_does_not_grow_with_the_number_of_actions(load):
    assert examined(load, 8000) <= 1.3 * examined(load, 1000) + 0.1


def examined(load: str, number: int) -> float:
    """How often an action was examined, on average."""
    limits, workers, tokens = LOADS[load]
    chance, gates = random.Random(1), Gates(limits, workers)
    for i in range(number):
        gates.submit(f"a{i}", tokens(i, chance), chance.random())
    running: deque[str] = deque()
    for _ in range(number):
        while (key := gates.take()) is not None:
            running.append(key)
        gates.release(running.popleft())
    print(f"{load}: {number} actions, each examined {gates.examined / number:.2f} times")
    return gates.examined / number


# Gates whose limits change, beside the reference that scans everything again.

NAMES = ["type:a", "type:free", "node:*", "node:1", "busy", "max_workers"]


class Changing(Story):
    """Between the events limits are set, and some of what runs is lost."""

    def __init__(self, seed: int, patience: int) -> None:
        super().__init__(seed, patience)
        self.lost: list[str] = []
        self.workers = self.reference.idle

    def submit(self) -> None:
        if self.chance.random() < 0.2:
            self.change()
        elif self.running and self.chance.random() < 0.03:
            self.lose()
        else:
            super().submit()

    def change(self) -> None:
        name, number = self.chance.choice(NAMES), self.chance.randint(1, 4)
        if name == "max_workers":
            self.gates.set_workers(number)
            self.reference.idle += number - self.workers
            self.workers = number
        else:
            self.gates.set_limit(name, number)
            self.limits[name] = number
            self.reference.limit = Gates({**self.limits}, 1).limit

    def lose(self) -> None:
        key = self.running.pop()
        self.gates.give_up(key)
        self.lost.append(key)
        self.reference.idle += key not in self.reference.workerless

    def run(self, number: int):
        """Make events; at the end let in, or withdraw, whatever is left."""
        for _ in self.events(number):
            yield
            if not self.running and self.reference.waiting and self.lost:
                for key in [k for k in self.reference.waiting if self.gates.unobtainable(k)]:
                    self.gates.withdraw(key)
                    self.reference.withdraw(key)
                yield


@often
@given(seeds)
def test_whatever_changes_the_first_that_fits_starts(seed):
    story = Changing(seed, NEVER)
    for _ in story.run(120):
        while True:
            expected = story.reference.take()
            assert story.gates.take() == expected
            if expected is None:
                break
            story.running.append(expected)


@often
@given(seeds)
def test_with_patience_limits_hold_and_all_ends(seed):
    story = Changing(seed, 2)
    for _ in story.run(120):
        while (key := story.gates.take()) is not None:
            assert story.reference.fits(key), f"{key} starts, and its tokens are not free"
            story.reference.start(key)
            story.running.append(key)
        # The reference has started what the gates did: nobody waits for nothing.
        if not story.running and not story.lost:
            assert not story.reference.waiting


def test_a_collector_starts_anew_when_a_limit_changes():
    gates = Gates({"node:*": 1}, max_workers=9)
    gates.submit("x", ("node:1",))
    gates.submit("y", ("node:2",))
    assert (gates.take(), gates.take()) == ("x", "y")
    gates.submit("big", ("node:1", "node:2"))
    for number in range(PATIENCE):
        gates.submit(f"s{number}", ("node:1",), rank=-number)
        assert gates.take() is None
    gates.set_limit("node:1", 2)
    gates.release("y")
    started = [gates.take() for _ in range(2)]
    assert len([key for key in started if key]) == 1, "one unit of node:1 came free"
