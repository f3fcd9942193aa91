# SPDX-License-Identifier: Apache-2.0
"""Gates whose limits change, beside the reference that scans everything again."""

from __future__ import annotations

from hypothesis import given
from test_gates import NEVER, Story, often, seeds

from applier.scheduling.gates import PATIENCE, Gates

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
