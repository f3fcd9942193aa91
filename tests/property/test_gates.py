# SPDX-License-Identifier: Apache-2.0
"""The gates, also while limits change, against a reference that scans everything again."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from applier.scheduling.gates import PATIENCE, Gates

NEVER = 10**9
NAMES = ["type:a", "type:free", "node:*", "node:1", "busy", "max_workers"]
often = settings(max_examples=examples(400))
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
    """The same events, at random, for the gates and for the reference.

    With ``changes`` limits are set between the events, and some of what runs is lost.
    """

    def __init__(self, seed: int, patience: int, *, changes: bool) -> None:
        self.chance, self.changes = random.Random(seed), changes
        self.limits = {"type:a": 2, "type:b": 1, "node:*": 1, "node:0": 2, "busy": 4}
        self.workers = self.chance.randint(1, 6)
        self.gates = Gates({**self.limits}, self.workers, patience=patience)
        self.reference = Rescanning({**self.limits}, self.workers)
        self.running: list[str] = []
        self.lost: list[str] = []
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

    def withdraw(self, key: str) -> None:
        self.gates.withdraw(key)
        self.reference.withdraw(key)

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

    def events(self, number: int) -> Iterator[None]:
        """Make that many events, then end everything; after each, actions may be taken.

        What waits for ever for what was lost is withdrawn.
        """
        for _ in range(number):
            what = self.chance.random()
            if self.changes and self.chance.random() < 0.1:
                self.change()
            elif self.changes and self.running and self.chance.random() < 0.015:
                self.lose()
            elif what < 0.45:
                self.submit()
            elif what < 0.9 and self.running:
                self.release()
            elif self.reference.waiting:
                self.withdraw(self.chance.choice(sorted(self.reference.waiting)))
            if self.chance.random() < 0.8:
                yield
        yield
        while self.running or self.reference.waiting:
            if self.running:
                self.release()
            else:
                stuck = [key for key in self.reference.waiting if self.gates.unobtainable(key)]
                assert stuck, "something waits, and nothing runs that could free it: deadlock"
                for key in stuck:
                    self.withdraw(key)
            yield


@often
@given(seeds, st.booleans())
def test_without_collecting_it_is_what_rescanning_gives_and_why_is_what_lacks(seed, changes):
    story = Story(seed, NEVER, changes=changes)
    for _ in story.events(150):
        while (expected := story.reference.take()) is not None:
            assert story.gates.take() == expected
            story.running.append(expected)
        assert story.gates.take() is None
        for key in story.reference.waiting:
            token = story.gates.why(key)
            if token is None:
                assert story.reference.fits(key)
                assert story.gates.idle <= 0
            else:
                limit = story.reference.limit(token)
                assert limit is not None
                assert story.reference.held[token] >= limit


@often
@given(seeds, st.sampled_from([1, 2, PATIENCE]), st.booleans())
def test_with_collecting_all_start_within_the_limits(seed, patience, changes):
    """Nobody else holds anything back: with a worker idle, all other free tokens are used."""
    story = Story(seed, patience, changes=changes)
    for _ in story.events(150):
        while (key := story.gates.take()) is not None:
            assert story.reference.fits(key), f"{key} started beyond a limit"
            story.reference.start(key)
            story.running.append(key)
        waiting = story.reference.waiting
        assert story.running or story.lost or not waiting, "somebody waits for nothing"
        if patience > 1 or changes:
            continue
        if story.reference.idle:
            kept = {story.gates.why(key) for key in waiting if story.reference.fits(key)}
            assert None not in kept, "something fits, and nothing keeps it"
            assert len(kept) <= 3, "the collector keeps less than all of its four tokens"
        if len(waiting) == 1:
            (token,) = map(story.gates.why, waiting)
            alone = token is None or story.reference.held[token] == story.reference.limit(token)
            assert alone, "it lacks what it keeps itself"
